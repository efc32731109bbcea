//! What rules claim about loading a config, asked of every engine version.
//!
//! A file we refuse is refused; a fixed one is accepted, and none that was accepted is refused
//! afterwards; what is taken out because nobody reads it leaves everything the engine resolves as
//! it was. The other side is `oracle/verdict_server.py`; each engine is started once for all claims.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_hjson;
use zeropilot_lint::{Example, RULES, Report, Rule, Settings, Verdict, check, fix};
use zeropilot_oracle::Oracle;

/// Something an engine can confirm.
struct Claim {
    /// The rules it comes from; a public file has none.
    code: &'static str,
    what: String,
    questions: Vec<Value>,
    holds: fn(&[Value]) -> bool,
}

fn is_accepted(answer: &Value) -> bool {
    answer["accept"] == true
}

fn question(text: &str, settings: &Settings) -> Value {
    json!({"text": text, "world_size": settings.world_size.unwrap_or(1)})
}

/// The examples that bare DeepSpeed reads and that are about this engine, judged for it.
fn examples(version: EngineVersion) -> Vec<(&'static Rule, &'static Example, Settings, Report)> {
    let all = RULES.iter().flat_map(|rule| rule.examples.iter().map(move |one| (*rule, one)));
    all.filter(|(_, example)| !example.is_job && example.front_end == FrontEnd::DeepSpeed)
        .filter_map(|(rule, example)| {
            let named = example.version.and_then(|name| EngineVersion::nearest(name).ok());
            let settings = Settings { version, ..example.settings() };
            let report = check(example.config.as_bytes(), &settings);
            let is_found = report.diagnostics.iter().any(|found| found.rule == rule);
            let is_meant = is_found && named.is_none_or(|named| named == version);
            is_meant.then_some((rule, example, settings, report))
        })
        .collect()
}

/// What is said to be refused is refused, on every engine for which it is said.
fn refusals(version: EngineVersion) -> Vec<Claim> {
    let all = examples(version).into_iter();
    all.filter(|(_, _, settings, report)| {
        report.verdict == Verdict::Reject && settings.world_size.is_some()
    })
    .map(|(rule, example, settings, _)| Claim {
        code: rule.code,
        what: format!("{} is refused", example.config),
        questions: vec![question(example.config, &settings)],
        holds: |answers| !is_accepted(&answers[0]),
    })
    .collect()
}

fn fixed_examples(version: EngineVersion) -> Vec<Claim> {
    let all = examples(version).into_iter().filter_map(|(rule, example, settings, _)| {
        let fixed = fix(example.config.as_bytes(), &settings, true)?;
        let stays = fixed.report.diagnostics.iter().any(|found| found.rule == rule);
        assert!(!stays, "{} stays in {}", rule.code, fixed.text);
        let is_accepted_by_us = fixed.report.verdict == Verdict::Accept;
        is_accepted_by_us.then(|| Claim {
            code: rule.code,
            what: format!("{} fixed to {} is accepted", example.config, fixed.text),
            questions: vec![question(&fixed.text, &settings)],
            holds: |answers| is_accepted(&answers[0]),
        })
    });
    all.collect()
}

fn fixed_public_files(
    files: &[zeropilot_oracle::ConfigFile],
    version: EngineVersion,
) -> Vec<Claim> {
    let settings = Settings {
        version,
        world_size: Some(8),
        front_end: Some(FrontEnd::DeepSpeed),
        ..Settings::default()
    };
    let mut claims = Vec::new();
    for file in files {
        for guesses in [false, true] {
            let Some(fixed) = fix(&file.data, &settings, guesses) else { continue };
            assert!(parse_hjson(&fixed.text).is_ok(), "{}: {}", file.name, fixed.text);
            assert!(!fixed.report.fixed.is_empty(), "{}", file.name);
            let before = json!({"text_b64": zeropilot_oracle::base64(&file.data), "world_size": 8});
            claims.push(Claim {
                code: "",
                what: format!("{} fixed to {} is no worse", file.name, fixed.text),
                questions: vec![before, question(&fixed.text, &settings)],
                holds: |answers| !is_accepted(&answers[0]) || is_accepted(&answers[1]),
            });
        }
    }
    claims
}

/// Rules that say that nobody reads a key. What is read and then not used, such as a key of another
/// stage, stays in the engine's config object; that training is the same without it is asked in
/// `engine_start.rs`.
const READ_BY_NOBODY: [&str; 2] = ["K01", "K13"];

/// Without a key that nobody reads the engine resolves the same: in examples and in public files.
fn idle(files: &[zeropilot_oracle::ConfigFile], version: EngineVersion) -> Vec<Claim> {
    let public = Settings {
        version,
        world_size: Some(8),
        front_end: Some(FrontEnd::DeepSpeed),
        ..Settings::default()
    };
    let own = examples(version)
        .into_iter()
        .map(|(_, example, settings, report)| (example.config.to_owned(), settings, report));
    let others = files.iter().filter_map(|file| {
        let text = String::from_utf8(file.data.clone()).ok()?;
        let report = check(text.as_bytes(), &public);
        Some((text, public.clone(), report))
    });
    let mut claims = Vec::new();
    for (text, settings, report) in own.chain(others) {
        let Ok(tree) = serde_json::from_str::<Value>(&text) else { continue };
        if report.verdict == Verdict::Reject {
            continue;
        }
        for found in
            report.diagnostics.iter().filter(|found| READ_BY_NOBODY.contains(&found.rule.code))
        {
            let mut without = tree.clone();
            let Some((key, parents)) = found.path.0.split_last() else { continue };
            let object = parents.iter().try_fold(&mut without, |node, part| node.get_mut(part));
            let removed =
                object.and_then(Value::as_object_mut).and_then(|object| object.shift_remove(key));
            assert!(removed.is_some(), "{} in {text}", found.path);
            claims.push(Claim {
                code: found.rule.code,
                what: format!("{} has no effect in {text}", found.path),
                questions: [&tree, &without]
                    .map(|tree| question(&tree.to_string(), &settings))
                    .to_vec(),
                holds: |answers| {
                    is_accepted(&answers[1]) && answers[0]["resolved"] == answers[1]["resolved"]
                },
            });
        }
    }
    claims
}

#[test]
fn every_claim_about_loading_holds_on_every_engine_it_is_made_for() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let Some(files) = zeropilot_oracle::corpus() else {
        return zeropilot_oracle::missing("ZEROPILOT_CORPUS");
    };
    let mut wrong = Vec::new();
    let mut counts = [0; 4];
    let mut codes: [BTreeSet<&str>; 4] = Default::default();
    for version in EngineVersion::all() {
        let kinds = [
            refusals(version),
            fixed_examples(version),
            fixed_public_files(&files, version),
            idle(&files, version),
        ];
        let all = || kinds.iter().flatten();
        let questions = all().flat_map(|claim| claim.questions.clone()).collect();
        let mut engine = Oracle::start_with_engine(&home, "verdict_server.py", version.name());
        let answers = engine.answers(questions);
        let mut rest = answers.as_slice();
        for claim in all() {
            let (own, others) = rest.split_at(claim.questions.len());
            rest = others;
            if !(claim.holds)(own) {
                let messages: Vec<_> = own.iter().map(|answer| &answer["message"]).collect();
                wrong.push(format!("{} on {version}: {}: {messages:?}", claim.code, claim.what));
            }
        }
        for (kind, claims) in kinds.iter().enumerate() {
            counts[kind] += claims.len();
            codes[kind].extend(claims.iter().map(|claim| claim.code));
        }
    }
    let rules = codes.each_ref().map(BTreeSet::len);
    println!("refusals, fixed examples, fixed public files, idle: {counts:?} of {rules:?} rules");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rules[0] > 30 && rules[1] > 25 && counts[2] > 100 && counts[3] > 100, "{rules:?}");
}
