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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_add_up() {
        assert_eq!(slots("# nodes\nworker-1 slots=8\nworker-2 slots=4\n\n"), Some(12));
        assert_eq!(slots("worker-1\n"), None);
        assert_eq!(slots(""), None);
    }
}
