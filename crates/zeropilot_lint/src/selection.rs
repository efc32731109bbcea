//! Which findings are wanted: by code on the command line, by comment in the file.

use zeropilot_config::syntax::Document;

use crate::diagnostic::Diagnostic;

/// Codes, or beginnings of codes, that are wanted and that are not. The default wants all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these, if there are any.
    pub select: Vec<String>,
    /// Not these.
    pub ignore: Vec<String>,
}

impl Selection {
    /// Whether findings of a rule are wanted. The longer beginning decides: with `K` ignored and
    /// `K05` selected, `K05` is wanted.
    pub fn wants(&self, code: &str) -> bool {
        let longest = |parts: &[String]| {
            let fitting = parts.iter().filter(|part| code.starts_with(part.as_str()));
            fitting.map(String::len).max()
        };
        match (longest(&self.select), longest(&self.ignore)) {
            (None, _) => self.select.is_empty() && longest(&self.ignore).is_none(),
            (Some(_), None) => true,
            (Some(selected), Some(ignored)) => selected > ignored,
        }
    }
}

/// Takes out what a comment in the file asks not to be told: `# zeropilot: ignore[K05, O11]` on the
/// line of the finding, or alone on the line above it. Without codes it means every rule.
pub(crate) fn without_suppressed(document: &Document, found: &mut Vec<Diagnostic>) {
    let text = document.text();
    let wishes: Vec<(usize, Vec<&str>)> = document
        .comments()
        .iter()
        .filter_map(|comment| {
            let codes = wish(comment.span.of(text)?)?;
            let line = line_of(text, comment.span.start);
            let before = text[..comment.span.start].rsplit('\n').next().unwrap_or("");
            Some((if before.trim().is_empty() { line + 1 } else { line }, codes))
        })
        .collect();
    if wishes.is_empty() {
        return;
    }
    found.retain(|found| {
        let line = line_of(text, found.span.start);
        !wishes.iter().any(|(place, codes)| {
            *place == line && (codes.is_empty() || codes.contains(&found.rule.code))
        })
    });
}

/// The codes a comment names, if it is one of these.
fn wish(comment: &str) -> Option<Vec<&str>> {
    let (_, rest) = comment.split_once("zeropilot:")?;
    let rest = rest.trim_start().strip_prefix("ignore")?;
    let Some(list) = rest.trim_start().strip_prefix('[') else { return Some(Vec::new()) };
    let (codes, _) = list.split_once(']')?;
    Some(codes.split(',').map(str::trim).filter(|code| !code.is_empty()).collect())
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;
    use crate::settings::Settings;
    use zeropilot_config::front_end::FrontEnd;

    fn codes(config: &str, selection: Selection) -> Vec<&'static str> {
        let front_end = Some(FrontEnd::DeepSpeed);
        let settings = Settings { selection, front_end, ..Settings::default() };
        let report = check(config.as_bytes(), &settings);
        report.diagnostics.iter().map(|found| found.rule.code).collect()
    }

    #[test]
    fn the_longer_beginning_decides() {
        let list = |codes: &[&str]| codes.iter().map(|code| (*code).to_owned()).collect();
        let wants = |select: &[&str], ignore: &[&str], code| {
            Selection { select: list(select), ignore: list(ignore) }.wants(code)
        };
        assert!(wants(&[], &[], "K01") && !wants(&[], &["K"], "K01"));
        assert!(wants(&["K"], &[], "K01") && !wants(&["K"], &[], "B01"));
        assert!(wants(&["K05"], &["K"], "K05") && !wants(&["K"], &["K05"], "K05"));
    }

    #[test]
    fn comments_silence_their_line_or_the_next() {
        let config = "{\n  train_batch_size: 8\n  nobody: 1 # mine\n  # zeropilot: ignore[K01]\n  other: 2\n  third: 3\n}";
        assert_eq!(codes(config, Selection::default()), ["K01", "K01"]);
        let all = "{\n  train_batch_size: 8\n  # zeropilot: ignore\n  other: 2\n}";
        assert_eq!(codes(all, Selection::default()), [""; 0]);
        let another = "{\n  train_batch_size: 8\n  # zeropilot: ignore[K02]\n  other: 2\n}";
        assert_eq!(codes(another, Selection::default()), ["K01"]);
    }
}
