//! What chats, mails and web pages wrap around a text.

use super::{Change, speaks_of_config};

/// The block between code fences that counts: the first that `wanted` says yes to, or else the first.
pub(super) fn fenced(text: &str, wanted: &dyn Fn(&str) -> bool) -> Option<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in text.lines() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (&mut open, mark) {
            (None, Some(mark)) => {
                // On one line: ```{…}```
                let rest = line.trim_start().trim_start_matches(['`', '~']);
                if let Some((inside, _)) = rest.split_once(mark) {
                    blocks.push(inside.to_owned());
                } else {
                    let content = rest.trim_start_matches(|mark: char| {
                        mark.is_ascii_alphanumeric() || mark == ' '
                    });
                    let content =
                        if content.is_empty() { String::new() } else { format!("{content}\n") };
                    open = Some((mark, content));
                }
            }
            (Some((opened, block)), Some(mark)) if *opened == mark => {
                blocks.push(std::mem::take(block));
                open = None;
            }
            (Some((_, block)), _) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks.extend(open.map(|(_, block)| block));
    let chosen = blocks.iter().position(|block| wanted(block)).unwrap_or(0);
    (chosen < blocks.len())
        .then(|| blocks.swap_remove(chosen))
        .filter(|block| !block.trim().is_empty())
}

/// Takes off marks at the beginning of every line, escapes and entities.
pub(super) fn layers(text: &str, changes: &mut Vec<Change>) -> String {
    let mut text = text.to_owned();
    if let Some(bare) = without_prefix(&text) {
        changes.push(Change::LinePrefix);
        text = bare;
    }
    if text.contains("&quot;") {
        changes.push(Change::Entities);
        for (entity, mark) in [
            ("&quot;", "\""),
            ("&#39;", "'"),
            ("&nbsp;", " "),
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&amp;", "&"),
        ] {
            text = text.replace(entity, mark);
        }
    }
    let trimmed = text.trim().trim_matches(['"', '\'']);
    let is_escaped = trimmed.trim_start_matches("\\n").trim_start().starts_with('{')
        && trimmed
            .trim_start_matches(['{', ' '])
            .trim_start_matches("\\n")
            .trim_start()
            .starts_with("\\\"");
    if is_escaped && speaks_of_config(trimmed) {
        changes.push(Change::Escapes);
        text = trimmed
            .replace("\\n", "\n")
            .replace("\\t", " ")
            .replace("\\\"", "\"")
            .replace("\\\\", "\\");
    }
    text
}

/// The text without `> `, `+` or a line number before every line.
fn without_prefix(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let filled = || lines.iter().filter(|line| !line.trim().is_empty());
    if filled().count() < 2 {
        return None;
    }
    let strips: [fn(&str) -> Option<&str>; 4] = [
        |line| line.trim_start().strip_prefix('>'),
        |line| line.strip_prefix('+'),
        |line| line.trim_start().strip_prefix('|'),
        numbered,
    ];
    for strip in strips {
        if filled().all(|line| strip(line).is_some()) {
            let bare = lines.iter().map(|line| strip(line).unwrap_or(""));
            return Some(bare.collect::<Vec<_>>().join("\n"));
        }
    }
    None
}

fn numbered(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=5).contains(&digits) {
        return None;
    }
    let rest = &rest[digits..];
    let rest = rest.strip_prefix([':', '|', '.', ')']).unwrap_or(rest);
    (rest.is_empty() || rest.starts_with([' ', '\t', '{', '}', '|']))
        .then(|| rest.strip_prefix([' ', '\t']).unwrap_or(rest))
}
