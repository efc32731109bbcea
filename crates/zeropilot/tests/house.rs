//! The house is as `docs/architecture.md` draws it: which crates and modules may use which, and who touches files,
//! clocks and sockets.

#[path = "house/modules.rs"]
mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where a crate is: the lowest is beside its data.
fn directory(name: &str) -> PathBuf {
    match name {
        "zeropilot_knowledge" => root().join("knowledge"),
        name => root().join("crates").join(name),
    }
}

fn architecture() -> String {
    fs::read_to_string(root().join("docs/architecture.md")).expect("the document")
}

/// Crates by floor, the highest first.
fn floors() -> Vec<Vec<String>> {
    floors_in(&architecture())
}

fn floors_in(text: &str) -> Vec<Vec<String>> {
    let drawing = text.split("```").nth(1).expect("a drawing of the floors");
    let names = |line: &str| -> Vec<String> {
        let crates = line.split_whitespace().take_while(|word| word.starts_with("zeropilot"));
        crates.map(str::to_owned).collect()
    };
    drawing.lines().map(names).filter(|floor| !floor.is_empty()).collect()
}

/// The crates of this workspace that each crate is built with, tests aside.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let crates = fs::read_dir(root().join("crates")).expect("crates");
    crates
        .map(|entry| entry.expect("a crate").path())
        .chain([directory("zeropilot_knowledge")])
        .map(|path| {
            let text = fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
            let manifest: toml::Table = text.parse().expect("TOML");
            let targets = manifest.get("target").and_then(toml::Value::as_table);
            let somewhere = targets.into_iter().flat_map(toml::Table::values);
            let needed = somewhere.filter_map(|target| target.get("dependencies"));
            let needed =
                needed.chain(manifest.get("dependencies")).filter_map(toml::Value::as_table);
            let ours = needed.flat_map(toml::Table::keys);
            let ours = ours.filter(|name| name.starts_with("zeropilot")).cloned().collect();
            (manifest["package"]["name"].as_str().expect("a name").to_owned(), ours)
        })
        .collect()
}

/// Written for this repository only, on no floor.
const UNPUBLISHED: [&str; 3] = ["zeropilot_accuracy", "zeropilot_field_study", "zeropilot_oracle"];

#[test]
fn a_crate_uses_only_crates_of_lower_floors() {
    let floors = floors();
    let floor = |name: &str| floors.iter().position(|floor| floor.iter().any(|one| one == name));
    for (user, used) in uses() {
        if UNPUBLISHED.contains(&user.as_str()) {
            continue;
        }
        let own = floor(&user).unwrap_or_else(|| panic!("{user} is on no floor"));
        for below in used {
            let its = floor(&below).unwrap_or_else(|| panic!("{below} is on no floor"));
            assert!(its > own, "{user} must not use {below}");
        }
    }
}

#[test]
fn every_crate_on_a_floor_exists_and_says_what_it_must_not_know() {
    let (uses, text) = (uses(), architecture());
    for name in floors().concat() {
        assert!(uses.contains_key(&name), "there is no {name}");
        assert!(text.contains(&format!("\n| `{name}` | ")), "{name} is not described");
    }
}

#[test]
fn the_chinese_chapter_draws_the_same_house() {
    let path = root().join("docs/zh/architecture.md");
    let text = fs::read_to_string(path).expect("the chapter");
    assert_eq!(floors_in(&text), floors());
    for name in floors().concat() {
        assert!(text.contains(&format!("\n| `{name}` | ")), "{name} is not described");
    }
}

/// What a browser has not, by how Rust names it.
const OUTSIDE: [&str; 6] =
    ["std::fs", "std::net", "std::process", "std::thread", "std::time", "std::env::"];

/// Modules that are compiled only with a feature that no browser turns on.
const WITH_A_FEATURE: [(&str, &str, &str); 6] = [
    ("zeropilot_job", "local", "scripts"),
    ("zeropilot_config", "installed", "fs"),
    ("zeropilot_model", "local", "fs"),
    ("zeropilot_model", "source", "hub"),
    ("zeropilot_model", "hub", "hub"),
    ("zeropilot_doctor", "look", "os"),
];

#[test]
fn modules_for_files_and_sockets_are_behind_their_feature() {
    for (name, module, feature) in WITH_A_FEATURE {
        let library = root().join("crates").join(name).join("src/lib.rs");
        let text = fs::read_to_string(library).expect("source");
        let gate = format!("#[cfg(feature = \"{feature}\")]\n");
        let gated = ["mod", "pub mod"].map(|word| format!("{gate}{word} {module};"));
        assert!(gated.iter().any(|line| text.contains(line)), "{name}: {module}");
    }
}

#[test]
fn crates_for_browsers_touch_no_files_clocks_threads_or_sockets() {
    let text = architecture();
    let (_, list) = text.split_once(" use no files, clocks, threads or sockets").expect("the list");
    let list = list.split("\n\n").next().expect("a paragraph");
    let is_pure = |name: &str| list.contains(&format!("`{}`", &name["zeropilot_".len()..]));
    let pure: Vec<String> =
        floors().concat().into_iter().filter(|name| name.contains('_') && is_pure(name)).collect();
    assert!(pure.len() >= 11, "{pure:?}");
    let mut sources = Vec::new();
    for name in &pure {
        list_sources(&directory(name).join("src"), &mut sources);
    }
    for path in sources {
        let shown = path.to_string_lossy().replace('\\', "/");
        let is_gated = |(name, module, _): &(&str, &str, &str)| {
            let place = format!("{name}/src/{module}");
            shown.contains(&format!("{place}.rs")) || shown.contains(&format!("{place}/"))
        };
        if WITH_A_FEATURE.iter().any(is_gated) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("source");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in OUTSIDE {
            let found =
                code.lines().find(|line| line.contains(word) && !line.trim().starts_with("//"));
            assert!(found.is_none(), "{shown}: {}", found.unwrap_or_default());
        }
    }
}

/// Crates whose modules use each other in one direction only.
const WITHOUT_CIRCLES: &[&str] = &["zeropilot", "zeropilot_lint"];

#[test]
fn modules_use_each_other_in_one_direction() {
    for name in WITHOUT_CIRCLES {
        let edges = modules::edges(&root().join("crates").join(name).join("src"));
        assert!(edges.len() > 10, "{name}: {edges:?}");
        if let Some(circle) = modules::circle(&edges) {
            let lines = circle
                .iter()
                .map(|edge| format!("  {} uses {} in src/{}", edge.user, edge.used, edge.place));
            panic!("{name} has a circle:\n{}", lines.collect::<Vec<_>>().join("\n"));
        }
    }
}

/// Ways to look for a text in another.
const SEARCHES: [&str; 9] = [
    ".replace(",
    ".replacen(",
    ".contains(",
    ".starts_with(",
    ".ends_with(",
    ".strip_prefix(",
    ".strip_suffix(",
    ".split_once(",
    "== ",
];

/// A message is made from data in the language of the reader. One that is made in English, searched for its words and
/// put into Chinese stays English as soon as somebody rewords it.
#[test]
fn no_sentence_is_searched_for_its_words() {
    let mut sources = Vec::new();
    for name in ["zeropilot", "zeropilot_view"] {
        list_sources(&directory(name).join("src"), &mut sources);
    }
    sources.retain(|path| !path.ends_with("tests.rs"));
    for path in sources {
        let text = fs::read_to_string(&path).expect("source");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for search in SEARCHES {
            for searched in code.split(search).skip(1) {
                let Some(literal) = searched.trim_start().strip_prefix('"') else { continue };
                let literal = literal.split('"').next().unwrap_or_default();
                let is_word = |word: &&str| {
                    word.len() > 1 && word.chars().all(|letter| letter.is_ascii_lowercase())
                };
                let words = literal.split(' ').filter(is_word).count();
                assert!(words < 2, "{}: {search}\"{literal}\"", path.display());
            }
        }
    }
}

#[test]
fn the_rule_that_the_document_says_to_copy_is_called() {
    let text = architecture();
    let (_, rest) = text.split_once(" Copy `").expect("a rule to copy");
    let path = rest.split('`').next().expect("its file");
    let source = fs::read_to_string(root().join(path)).expect("source");
    let code = source.split("code: \"").nth(1).and_then(|rest| rest.get(..3)).expect("a code");
    assert!(zeropilot_lint::rule(code).expect("a rule").looks_at_configs(), "{code}");
}

fn list_sources(directory: &Path, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            list_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
}

/// Every build and test uses the compiler that is pinned, so that the promised one is tried.
#[test]
fn the_compiler_is_the_oldest_that_is_supported() {
    let read = |path: &str| -> toml::Table {
        fs::read_to_string(root().join(path)).expect("a file").parse().expect("TOML")
    };
    let (pinned, manifest) = (read("rust-toolchain.toml"), read("Cargo.toml"));
    let oldest = manifest["workspace"]["package"]["rust-version"].as_str().expect("a version");
    assert_eq!(pinned["toolchain"]["channel"].as_str(), Some(&*format!("{oldest}.0")));
}
