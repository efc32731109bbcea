//! Laws that hold for every rule: its words in both languages, its examples, its fixes.

use std::collections::HashSet;

use zeropilot_lint::{Diagnostic, RULES, Severity, Verdict, apply, check, rule};
use zeropilot_text::{Language, Text};

const LANGUAGES: [Language; 2] = [Language::English, Language::Chinese];

/// Every text a rule can say.
fn texts() -> Vec<(&'static str, Text)> {
    RULES
        .iter()
        .flat_map(|rule| {
            let words = rule.wordings.iter().flat_map(|word| [word.message, word.why, word.help]);
            words.chain([rule.summary]).map(|text| (rule.code, text))
        })
        .collect()
}

#[test]
fn codes_and_names_are_unique_and_well_formed() {
    let mut codes = HashSet::new();
    let mut names = HashSet::new();
    for rule in RULES {
        assert!(codes.insert(rule.code), "{} twice", rule.code);
        assert!(names.insert(rule.name), "{} twice", rule.name);
        assert!(rule.code.starts_with(rule.group.letter()), "{}", rule.code);
        assert_eq!(rule.code.len(), 3, "{}", rule.code);
        let is_kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(rule.name.chars().all(is_kebab), "{}", rule.name);
        assert!(!rule.wordings.is_empty(), "{}", rule.code);
    }
    assert_eq!(rule("b03").map(|rule| rule.code), Some("B03"));
    assert!(rule("Z99").is_none());
}

#[test]
fn every_text_exists_in_both_languages() {
    for (code, text) in texts() {
        assert!(!text.en.is_empty() && !text.zh.is_empty(), "{code}");
        assert!(!text.en.chars().any(is_chinese), "{code}: {}", text.en);
        assert!(text.zh.chars().any(is_chinese), "{code}: {}", text.zh);
        let names = |language| text.names(language).into_iter().collect::<HashSet<_>>();
        let missing: Vec<_> = names(Language::Chinese)
            .symmetric_difference(&names(Language::English))
            .copied()
            .collect();
        assert!(missing.is_empty(), "{code}: {missing:?} only in one language");
    }
}

/// Five English words in a row, outside backticks, are a sentence that was not translated.
#[test]
fn chinese_texts_hold_no_english_sentences() {
    for (code, text) in texts() {
        let outside: String = text.zh.split('`').step_by(2).collect::<Vec<_>>().join("，");
        for run in outside.split(|c: char| !(c.is_ascii_alphabetic() || c == ' ')) {
            assert!(run.split_whitespace().count() < 5, "{code}: {run}");
        }
        for half_width in [", ", ". ", "; "] {
            assert!(!outside.contains(half_width), "{code}: {half_width:?} in {outside}");
        }
    }
}

fn is_chinese(character: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&character)
}

#[test]
fn every_rule_has_an_example_that_it_finds() {
    // Bytes that are not UTF-8 and devices other than GPUs cannot be written as an example.
    let without: Vec<_> =
        RULES.iter().filter(|rule| rule.examples.is_empty()).map(|rule| rule.code).collect();
    assert_eq!(without, ["K20", "F14"]);
    for rule in RULES {
        for example in rule.examples {
            let report = example.judge();
            let found: HashSet<_> =
                report.diagnostics.iter().map(|found| found.rule.code).collect();
            assert_eq!(found, HashSet::from([rule.code]), "{}: {}", rule.code, example.config);
        }
    }
}

#[test]
fn nothing_is_found_in_a_good_example() {
    for rule in RULES {
        for example in rule.good {
            let report = example.judge();
            let found: Vec<_> = report.diagnostics.iter().map(|found| found.rule.code).collect();
            assert!(found.is_empty(), "{}: {} gives {found:?}", rule.code, example.config);
        }
        let is_without = rule.good.is_empty() && !rule.examples.is_empty();
        assert!(!is_without, "{} has no good example", rule.code);
    }
}

#[test]
fn every_sentence_of_every_example_is_complete() {
    for rule in RULES {
        for example in rule.examples {
            for diagnostic in example.judge().diagnostics {
                complete(&diagnostic);
            }
        }
    }
}

/// No name of a template is left, and no piece is missing.
fn complete(diagnostic: &Diagnostic) {
    for language in LANGUAGES {
        let sentences = [
            Some(diagnostic.message(language)),
            Some(diagnostic.why(language)),
            Some(diagnostic.help(language)),
            diagnostic.fix_title(language),
        ];
        for sentence in sentences.into_iter().flatten() {
            let code = diagnostic.rule.code;
            let mut rest = sentence.as_str();
            while let Some(at) = rest.find('{') {
                let name: String = rest[at + 1..]
                    .chars()
                    .take_while(|c| c.is_ascii_lowercase() || *c == '_')
                    .collect();
                assert!(
                    name.is_empty() || !rest[at + 1 + name.len()..].starts_with('}'),
                    "{code}: {sentence}"
                );
                rest = &rest[at + 1..];
            }
            assert!(!sentence.contains("``") && !sentence.contains("  "), "{code}: {sentence}");
        }
    }
}

/// A fix leads to a config that is accepted, and without the finding it belongs to.
#[test]
fn every_fix_of_every_example_is_accepted() {
    let mut fixes = 0;
    for rule in RULES {
        for example in rule.examples {
            let report = example.judge();
            let mut text = example.config.to_owned();
            let mut edits: Vec<_> = report
                .diagnostics
                .iter()
                .filter_map(|diagnostic| diagnostic.fix.as_ref())
                .flat_map(|fix| fix.edits.clone())
                .collect();
            edits.sort_by_key(|edit| edit.span);
            edits.dedup();
            if edits.is_empty() {
                continue;
            }
            fixes += 1;
            text = apply(&text, &edits);
            let fixed = check(text.as_bytes(), &example.settings());
            let left: Vec<_> = fixed
                .diagnostics
                .iter()
                .filter(|left| left.severity == Severity::Error)
                .map(|left| left.message(Language::English))
                .collect();
            // The first finding can stand before another one, which has no fix.
            if report
                .diagnostics
                .iter()
                .all(|found| found.fix.is_some() || found.severity != Severity::Error)
                && rule.code != "I02"
            {
                assert_eq!(fixed.verdict, Verdict::Accept, "{}: {text}: {left:?}", rule.code);
            }
            let still = fixed.diagnostics.iter().any(|found| found.rule.code == rule.code);
            assert!(!still, "{}: {text}: {left:?}", rule.code);
        }
    }
    assert!(fixes > 25, "only {fixes}");
}
