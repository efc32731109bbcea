//! Hostfiles: `host slots=8`, one per line.

/// How many slots all hosts have together, if every line can be read.
pub(crate) fn slots(text: &str) -> Option<usize> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    let mut total: usize = 0;
    let mut any = false;
    for line in lines.filter(|line| !line.is_empty()) {
        let slots = line.split_whitespace().find_map(|word| word.strip_prefix("slots="))?;
        total = total.checked_add(slots.parse().ok()?)?;
        any = true;
    }
    any.then_some(total)
}

/// A line of a hostfile that is neither blank nor a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The host, where the line begins with one and its slots; `None` where the launcher ends.
    pub host: Option<&'a str>,
    /// The line.
    pub line: &'a str,
    /// Where it begins in the text.
    pub start: usize,
}

/// The lines of a hostfile as the launcher reads them: a host, blanks, `slots=` and a number; what follows is not
/// looked at.
pub fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    for whole in text.split_inclusive('\n') {
        let line = whole.trim();
        let at = start + whole.len() - whole.trim_start().len();
        start += whole.len();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (host, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let slots = rest.trim_start().strip_prefix("slots=");
        let is_counted = slots.is_some_and(|slots| slots.starts_with(|c: char| c.is_ascii_digit()));
        found.push(Entry { host: is_counted.then_some(host), line, start: at });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_what_the_launcher_takes() {
        let hosts = |text| entries(text).iter().map(|entry| entry.host).collect::<Vec<_>>();
        assert_eq!(hosts("# a\n\n  b slots=8 # c\nd\tslots=4x\n"), [Some("b"), Some("d")]);
        assert_eq!(hosts("b\nc:8\nd slots = 8\ne slots=\n"), [None; 4]);
        let text = "a slots=1\n bad\n";
        let bad = entries(text)[1];
        assert_eq!(&text[bad.start..bad.start + bad.line.len()], "bad");
    }

    #[test]
    fn slots_add_up() {
        assert_eq!(slots("# nodes\nworker-1 slots=8\nworker-2 slots=4\n\n"), Some(12));
        assert_eq!(slots("worker-1\n"), None);
        assert_eq!(slots(""), None);
    }
}
