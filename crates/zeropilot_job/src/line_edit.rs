//! Lines of scripts and YAML with another value in them, and everything else as it is written.

use crate::recipe::ARGUMENTS;

/// A line that says a field of a job, with another value; `None` if the value is not written out on it. Switches are
/// `true` and `false`, however the line spells them.
pub fn with_value(line: &str, field: &str, now: &str, to: &str) -> Option<String> {
    let spellings =
        ARGUMENTS.names(field).flat_map(|name| [name.to_owned(), name.replace('_', "-")]);
    spellings.into_iter().find_map(|name| with_value_of(line, &name, now, to))
}

/// The same by the name that the line has for the field.
pub fn with_value_of(line: &str, name: &str, now: &str, to: &str) -> Option<String> {
    let start = word(line, name)?;
    let rest = &line[start + name.len()..];
    let value = rest.trim_start_matches([' ', '\t', '=', ':', '"', '\'']);
    let token = value.split([' ', '\t', ',', ')', '"', '\'', '#', ';']).next().unwrap_or_default();
    let at = line.len() - value.len();
    if token.eq_ignore_ascii_case(now) {
        let to =
            if token.starts_with(char::is_uppercase) { capitalized(to) } else { to.to_owned() };
        return Some(format!("{}{to}{}", &line[..at], &value[token.len()..]));
    }
    let is_flag = (now, to) == ("true", "false")
        && (token.is_empty() || token == "\\" || token.starts_with("--"));
    let before = line[..start].strip_suffix("--").filter(|_| is_flag)?;
    Some(format!("{}{rest}", before.trim_end_matches(' ')))
}

/// The line of a key of a whole YAML file, counted from 1, and its value; the last one, as it counts.
pub fn yaml_value<'t>(text: &'t str, name: &str) -> Option<(usize, &'t str)> {
    let of = |line: &'t str| {
        let value = line.strip_prefix(name)?.trim_start().strip_prefix(':')?;
        let value = value.split(" #").next().unwrap_or_default();
        Some(value.trim().trim_matches(['"', '\'']))
    };
    let lines = text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, of(line)?)));
    lines.last()
}

/// The line of a file that names the config of a job, with an argument beside it; `None` if the name is not written out
/// on it.
pub fn with_argument(file: &str, line: &str, config: &str, name: &str, to: &str) -> Option<String> {
    let after = line.find(config)? + config.len();
    let after = after + usize::from(line[after..].starts_with(['"', '\'']));
    let (before, rest) = line.split_at(after);
    Some(match file.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "yaml" | "yml" => {
            let indent = &line[..line.len() - line.trim_start().len()];
            format!("{line}\n{indent}{name}: {to}")
        }
        "py" => format!("{before}, {name}={}{rest}", capitalized(to)),
        _ => format!("{before} --{name} {to}{rest}"),
    })
}

/// Where a name stands in a line, not as a part of another.
fn word(line: &str, name: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).map(|(start, _)| start).find(|start| {
        !line[..*start].ends_with(is_part) && !line[start + name.len()..].starts_with(is_part)
    })
}

/// A switch as Python writes it.
fn capitalized(switch: &str) -> String {
    match switch {
        "true" => "True".to_owned(),
        "false" => "False".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_exchanged_in_its_place() {
        for (field, line, now, to, expected) in [
            (
                "micro_batch",
                "t.py --per_device_train_batch_size 1 --lr 1 \\",
                "1",
                "4",
                "t.py --per_device_train_batch_size 4 --lr 1 \\",
            ),
            (
                "micro_batch",
                "t.py --per-device-train-batch-size=1",
                "1",
                "4",
                "t.py --per-device-train-batch-size=4",
            ),
            ("micro_batch", "micro_batch_size: 1  # one", "1", "4", "micro_batch_size: 4  # one"),
            (
                "grad_accum",
                "f(gradient_accumulation_steps=8, lr=8)",
                "8",
                "2",
                "f(gradient_accumulation_steps=2, lr=8)",
            ),
            (
                "grad_checkpointing",
                "f(gradient_checkpointing=True)",
                "true",
                "false",
                "f(gradient_checkpointing=False)",
            ),
            (
                "grad_checkpointing",
                "t.py --gradient_checkpointing --bf16",
                "true",
                "false",
                "t.py --bf16",
            ),
            ("grad_checkpointing", "  --gradient_checkpointing \\", "true", "false", " \\"),
        ] {
            assert_eq!(with_value(line, field, now, to).as_deref(), Some(expected), "{line}");
        }
        for (field, line, now) in [
            ("micro_batch", "t.py --per_device_train_batch_size $MICRO", "1"),
            ("grad_checkpointing", "gradient_checkpointing_kwargs: true", "true"),
            ("grad_checkpointing", "disable_gradient_checkpointing: true", "true"),
        ] {
            assert_eq!(with_value(line, field, now, "2"), None, "{line}");
        }
    }

    #[test]
    fn a_key_of_yaml_is_where_it_counts() {
        let text = "a: 1\nb:\n  off: 2\noff: true # once\noff_too: 3\noff: \"false\"  # no\n";
        assert_eq!(yaml_value(text, "off"), Some((6, "false")));
        assert_eq!(yaml_value(text, "c"), None);
        let line = text.lines().nth(5).expect("a line");
        assert_eq!(
            with_value_of(line, "off", "false", "true").as_deref(),
            Some("off: \"true\"  # no")
        );
    }

    #[test]
    fn an_argument_is_added_as_the_file_writes_them() {
        let added = |file: &str, line: &str| with_argument(file, line, "ds.json", "bf16", "true");
        assert_eq!(
            added("a.sh", "t.py --deepspeed 'ds.json' \\").as_deref(),
            Some("t.py --deepspeed 'ds.json' --bf16 true \\")
        );
        assert_eq!(
            added("a.py", "f(deepspeed=\"ds.json\")").as_deref(),
            Some("f(deepspeed=\"ds.json\", bf16=True)")
        );
        assert_eq!(
            added("a.yaml", "deepspeed: ds.json").as_deref(),
            Some("deepspeed: ds.json\nbf16: true")
        );
        assert_eq!(added("a.sh", "t.py --deepspeed $CONFIG"), None);
    }
}
