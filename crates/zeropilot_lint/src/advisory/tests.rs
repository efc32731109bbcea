//! The advisories as they are written: their names, versions, keys and words. `tests/advisories.rs` asks the engines.

use std::collections::HashSet;

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::keys::canonical;
use zeropilot_config::packages::TRAINING_PACKAGES;
use zeropilot_config::schema::EngineVersion;

use super::*;
use crate::check::check;
use crate::registry::rule;
use crate::settings::Settings;

fn leaves(conditions: &'static [Condition]) -> Vec<&'static Condition> {
    conditions
        .iter()
        .flat_map(|condition| match condition {
            Condition::Any(inner) => leaves(inner),
            one => vec![one],
        })
        .collect()
}

#[test]
fn advisories_are_named_after_a_package_and_a_pull_request() {
    assert!(advisories().len() >= 40);
    let mut ids = HashSet::new();
    for advisory in advisories() {
        assert!(ids.insert(&advisory.id), "{} twice", advisory.id);
        let (package, number) = advisory.id.rsplit_once('-').expect("a dash");
        assert_eq!(advisory.affects[0].package, package, "{}", advisory.id);
        assert!(number.parse::<u32>().is_ok(), "{}", advisory.id);
        let (_, evidence) = advisory.evidence[0].split_once('#').expect("a number");
        assert_eq!(evidence, number, "{}", advisory.id);
        for source in &advisory.evidence {
            let (repository, number) = source.split_once('#').expect("a number");
            assert!(repository.contains('/') && number.parse::<u32>().is_ok(), "{source}");
        }
        assert!(
            advisory.rule.as_deref().is_none_or(|code| rule(code).is_some()),
            "{}",
            advisory.id
        );
    }
    assert!(std::ptr::eq(
        advisory("DeepSpeed-7707").expect("one"),
        advisory("deepspeed-7707").expect("one")
    ));
}

#[test]
fn every_advisory_has_a_release_that_fixes_it() {
    for advisory in advisories() {
        assert!(advisory.affects[0].fixed.is_some(), "{}", advisory.id);
        for affected in &advisory.affects {
            assert!(TRAINING_PACKAGES.contains(&affected.package.as_str()), "{}", advisory.id);
            let release = |text: &Option<String>| {
                text.as_deref().map(|text| Release::parse(text).expect("a version"))
            };
            if let (Some(from), Some(fixed)) = (release(&affected.from), release(&affected.fixed)) {
                assert_eq!(from.is_before(&fixed), Some(true), "{}", advisory.id);
            }
        }
        if let Some(Reproduced { affected, fixed }) = &advisory.reproduced {
            let with = |version: &str| {
                let mut packages: Vec<(&str, &str)> = vec![("torch", "2.13.0"), ("trl", "1.0.0")];
                packages.push(("deepspeed", version));
                advisory.is_in(&packages.into_iter().collect())
            };
            assert_eq!(with(affected), Answer::Yes, "{}", advisory.id);
            assert_eq!(with(fixed), Answer::No, "{}", advisory.id);
        }
    }
}

/// A key that no engine reads can never have the value that a condition asks for.
#[test]
fn conditions_ask_for_keys_and_readers_that_exist() {
    for advisory in advisories() {
        assert!(!advisory.when.is_empty(), "{}", advisory.id);
        for condition in leaves(&advisory.when) {
            match condition {
                Condition::Key { path, .. } => {
                    let section = path.rsplit_once('.').map_or("", |(section, _)| section);
                    let is_parameter =
                        section == "scheduler.params" || section == "optimizer.params";
                    assert!(is_parameter || canonical(path).is_some(), "{}: {path}", advisory.id);
                }
                Condition::FrontEnd(names) => {
                    assert!(names.iter().all(|name| name.parse::<FrontEnd>().is_ok()), "{names:?}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn texts_exist_in_both_languages() {
    let is_chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    for advisory in advisories() {
        let mut texts = vec![advisory.title(), advisory.what(), advisory.workaround()];
        texts.extend(leaves(&advisory.when).into_iter().filter_map(|condition| match condition {
            Condition::Other(words) => Some(words.text()),
            _ => None,
        }));
        for text in texts {
            assert!(!text.en.is_empty() && !text.en.chars().any(is_chinese), "{}", text.en);
            assert!(text.zh.chars().any(is_chinese), "{}: {}", advisory.id, text.zh);
        }
        assert!(advisory.title().en.chars().count() <= 100, "{}", advisory.id);
        assert!(
            advisory.what().en.ends_with('.') && advisory.what().zh.ends_with('。'),
            "{}",
            advisory.id
        );
        assert!(!advisory.workaround().en.ends_with('.'), "{}", advisory.id);
    }
}

fn found(config: &str, packages: &[(&str, &str)]) -> Vec<String> {
    let packages: Packages = packages.iter().copied().collect();
    let version = packages.version("deepspeed").and_then(|text| EngineVersion::nearest(text).ok());
    let settings = Settings {
        version: version.unwrap_or(EngineVersion::NEWEST),
        packages,
        ..Settings::default()
    };
    let report = check(config.as_bytes(), &settings);
    let own = report.diagnostics.iter().filter(|found| found.rule.code == "V11");
    own.map(|found| found.message(zeropilot_text::Language::English)).collect()
}

const ACCUMULATING: &str = r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2, "overlap_comm": false}}"#;

#[test]
fn only_versions_with_the_defect_are_told_of_it() {
    let title = "known defect deepspeed-7509: ZeRO-2 uses only the last micro-batch of each step";
    for version in ["0.17.6", "0.18.0", "0.18.2", "0.18.2+cu126"] {
        let messages = found(ACCUMULATING, &[("deepspeed", version)]);
        assert!(messages.contains(&title.to_owned()), "{version}: {messages:?}");
    }
    for version in ["0.17.5", "0.18.3", "0.19.8"] {
        let messages = found(ACCUMULATING, &[("deepspeed", version)]);
        assert!(!messages.contains(&title.to_owned()), "{version}: {messages:?}");
    }
    let early = found(ACCUMULATING, &[("deepspeed", "0.18.3rc1")]);
    assert!(early.iter().all(|message| !message.contains("7509")), "{early:?}");
    assert!(early.iter().any(|message| message.contains("may apply")), "{early:?}");
    assert_eq!(found(ACCUMULATING, &[]), [""; 0]);
}

#[test]
fn keys_decide_whether_an_advisory_applies() {
    let once = ACCUMULATING.replace("_steps\": 4", "_steps\": 1");
    assert!(!found(&once, &[("deepspeed", "0.18.2")]).iter().any(|it| it.contains("7509")));
    // The Trainer fills the number of steps when it runs.
    let later = ACCUMULATING.replace("_steps\": 4", "_steps\": \"auto\"");
    let messages = found(&later, &[("deepspeed", "0.18.2")]);
    assert!(messages.iter().any(|message| message.contains("may apply")), "{messages:?}");
    assert!(!messages.iter().any(|message| message.contains("7509")), "{messages:?}");
}

#[test]
fn all_packages_of_an_advisory_must_be_installed() {
    let config = r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"}}"#;
    let named = |packages: &[(&str, &str)]| {
        found(config, packages).iter().any(|message| message.contains("transformers-33402"))
    };
    assert!(named(&[("deepspeed", "0.15.4"), ("transformers", "4.44.2")]));
    assert!(!named(&[("deepspeed", "0.14.5"), ("transformers", "4.44.2")]));
    assert!(!named(&[("deepspeed", "0.15.4"), ("transformers", "4.45.0")]));
    assert!(!named(&[("transformers", "4.44.2")]));
}
