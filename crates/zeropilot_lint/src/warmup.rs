//! What the files of a job say about the steps of its scheduler: whether there are any, and whether the learning rate
//! warms up by the arguments of the HF Trainer. Defaults that another module of the program changes are not seen.

use zeropilot_job::{Call, Launch, PythonScript};

/// Arguments of the HF Trainer that make a warmup.
const ARGUMENTS: [&str; 2] = ["warmup_steps", "warmup_ratio"];

/// Endings of files that may hold arguments of their own.
const SETTINGS: [&str; 5] = [".json", ".yaml", ".yml", ".toml", ".cfg"];

/// What options that name such a file have in their names.
const NAMES_SETTINGS: [&str; 4] = ["config", "cfg", "args", "yaml"];

/// Whether the arguments of the HF Trainer have a warmup; `None` if the files of the job do not settle it.
pub(crate) fn of_launch(launch: &Launch) -> Option<bool> {
    let given = &launch.given;
    if ARGUMENTS.iter().any(|name| given.unknown.iter().any(|unknown| unknown == name)) {
        return None;
    }
    let said = ARGUMENTS.iter().filter_map(|name| given.value(name));
    let said: Option<Vec<f64>> = said.map(|value| value.parse().ok()).collect();
    if said.as_ref()?.iter().any(|steps| *steps != 0.0) {
        return Some(true);
    }
    let script = launch.script.as_ref();
    if script.is_some_and(sets_warmup) {
        return None;
    }
    let is_default = script.is_some_and(|script| {
        let is_written = script.training_arguments().next().is_some()
            && !script.training_arguments().any(|call| call.has_more);
        is_written && (!script.reads_command_line() || is_line_known(launch))
    });
    (is_default || said.is_some_and(|said| !said.is_empty())).then_some(false)
}

/// Whether the program trains only if it is told to, and is not.
pub(crate) fn only_evaluates(launch: &Launch) -> bool {
    let Some(script) = launch.script.as_ref() else { return false };
    let mut trains = script
        .calls
        .iter()
        .filter(|call| call.name() == "train" && call.object().to_lowercase().contains("trainer"))
        .peekable();
    let is_asked_for = |call: &Call| {
        call.guards.iter().filter(|guard| guard.holds).any(|guard| {
            let is_it = |part: &str| part.trim().ends_with("do_train");
            !guard.condition.contains(" or ") && guard.condition.split(" and ").any(is_it)
        })
    };
    let is_off = match launch.given.said("do_train") {
        Some(_) => launch.given.switch("do_train") == Some(false),
        None => !launch.given.unknown.iter().any(|name| name == "do_train"),
    };
    let is_set = script.assignments.iter().any(|assigned| is_called(&assigned.target, "do_train"));
    trains.peek().is_some()
        && trains.all(is_asked_for)
        && is_off
        && !is_set
        && script.reads_command_line()
        && is_line_known(launch)
}

/// Whether all arguments are on the command line, and none in a file that it names.
fn is_line_known(launch: &Launch) -> bool {
    let words = launch.program_words().unwrap_or_default();
    let texts: Vec<&str> = words.iter().filter_map(|word| word.text.as_deref()).collect();
    launch.is_written_out() && !names_settings(&texts, launch.config_word.as_deref())
}

/// Whether words name a file of arguments: alone, or as the value of an option that sounds like it.
fn names_settings(words: &[&str], config: Option<&str>) -> bool {
    words.iter().enumerate().any(|(index, word)| {
        let before = index.checked_sub(1).map(|before| words[before]);
        let (option, value) = match (word.split_once('='), before) {
            (Some((option, value)), _) => (Some(option), value),
            (None, Some(before)) if before.starts_with('-') => (Some(before), *word),
            (None, _) => (None, *word),
        };
        let is_named = option.is_none_or(|name| NAMES_SETTINGS.iter().any(|it| name.contains(it)));
        is_named && Some(value) != config && SETTINGS.iter().any(|ending| value.ends_with(ending))
    })
}

/// Whether a program sets a warmup itself, as the default of a field or as an argument.
fn sets_warmup(script: &PythonScript) -> bool {
    let is_it = |name: &str| ARGUMENTS.iter().any(|argument| is_called(name, argument));
    script.assignments.iter().any(|assigned| is_it(&assigned.target))
        || script.calls.iter().flat_map(|call| &call.keywords).any(|(name, ..)| is_it(name))
}

/// Whether a name is this one, or an attribute or member by this name.
fn is_called(name: &str, wanted: &str) -> bool {
    let last = name.trim_end_matches(']').rsplit(['.', '[']).next().unwrap_or(name);
    last.trim_matches(['"', '\'']) == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(line: &str, program: &str) -> Launch {
        let files = |name: &str| (name == "t.py").then(|| program.to_owned());
        let mut launches = zeropilot_job::read(line, &Default::default(), &files).launches;
        assert_eq!(launches.len(), 1, "{line}");
        launches.remove(0)
    }

    const PARSES: &str = "args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\ntrainer = Trainer(model, args)\nif args.do_train:\n    trainer.train()\n";

    const LINE: &str = "deepspeed --num_gpus 2 t.py --deepspeed ds.json";

    #[test]
    fn a_warmup_is_known_where_all_arguments_are() {
        for (more, program, expected) in [
            (" --warmup_steps 400", PARSES, Some(true)),
            (" --warmup_ratio 0.03", PARSES, Some(true)),
            (" --warmup_steps 0 --warmup_ratio 0.03", PARSES, Some(true)),
            (" --warmup_steps 0", PARSES, Some(false)),
            (" --bf16 --data train.json", PARSES, Some(false)),
            (" --warmup_steps $STEPS", PARSES, None),
            (" --bf16 $MORE", PARSES, None),
            (" --config run.yaml", PARSES, None),
            (" run.json", PARSES, None),
            (" --warmup_steps lots", PARSES, None),
        ] {
            assert_eq!(of_launch(&launch(&format!("{LINE}{more}"), program)), expected, "{more}");
        }
        let own = format!("class Own(TrainingArguments):\n    warmup_ratio: float = 0.1\n{PARSES}");
        assert_eq!(of_launch(&launch(LINE, &own)), None);
        assert_eq!(of_launch(&launch(&format!("{LINE} --warmup_steps 0"), &own)), None);
        let written = "args = TrainingArguments(output_dir='o', deepspeed='ds.json')\n";
        assert_eq!(of_launch(&launch(LINE, written)), Some(false));
        let written = "args = TrainingArguments(output_dir='o', deepspeed='ds.json', **more)\n";
        assert_eq!(of_launch(&launch(LINE, written)), None);
        // Of a program that is not here, nothing is known.
        assert_eq!(of_launch(&launch("deepspeed other.py --deepspeed ds.json", "")), None);
    }

    #[test]
    fn a_job_that_is_not_told_to_train_only_evaluates() {
        for (more, program, expected) in [
            (" --do_predict", PARSES, true),
            (" --do_eval --do_train False", PARSES, true),
            (" --do_train", PARSES, false),
            (" --do_train $TRAIN", PARSES, false),
            (" --do_predict $MORE", PARSES, false),
            (" --do_predict", "args, = p.parse_args_into_dataclasses()\ntrainer.train()\n", false),
            (" --do_predict", "args, = p.parse_args_into_dataclasses()\npredict()\n", false),
        ] {
            let found = only_evaluates(&launch(&format!("{LINE}{more}"), program));
            assert_eq!(found, expected, "{more}: {program}");
        }
    }
}
