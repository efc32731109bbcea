//! From what a person types to the key that is meant.

use std::collections::BTreeSet;

use crate::nearest::nearest;
use crate::schema::{EngineVersion, Located};

use super::mesh::{DATA, SEQUENCE};
use super::text::texts;

/// What an asked name turns out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// One key, by the path under which its text is kept.
    Key(String),
    /// A member of something that is handed on whole: its path, and the path of what holds it.
    HandedOn {
        /// As asked.
        path: String,
        /// The nearest key above it that has a text.
        within: String,
    },
    /// A key that older engines read and the newest known one does not.
    Gone(String),
    /// Several keys end in this name.
    Several(Vec<String>),
    /// No key; perhaps a slip of the pen for this one.
    Unknown(Option<String>),
}

/// Finds the key a person means: by its path, by its last part alone, by the engine's own name for
/// it, by an old spelling.
pub fn find(asked: &str) -> Found {
    let asked = asked.trim().trim_matches(['"', '`', '\'']).replace('-', "_").to_lowercase();
    if let Some(path) = canonical(&asked) {
        return Found::Key(path);
    }
    if asked == DATA {
        return Found::Key(SEQUENCE.to_owned());
    }
    let newest = EngineVersion::NEWEST.schema();
    if let Some(Located::HandedOn) = newest.locate(&asked) {
        return handed_on(asked);
    }
    match ending_in(&asked, texts().keys().map(AsRef::as_ref)).as_slice() {
        [] => {}
        [path] => return Found::Key(path.clone()),
        several => return Found::Several(several.to_vec()),
    }
    if let Some(path) = by_engine_name(&asked) {
        return Found::Key(path);
    }
    if let Some(path) = gone(&asked) {
        return Found::Gone(path);
    }
    Found::Unknown(suggestion(&asked))
}

/// The path under which the text of a key is kept, if it is one of the newest engine's.
pub fn canonical(path: &str) -> Option<String> {
    let texts = texts();
    if texts.contains_key(path) {
        return Some(path.to_owned());
    }
    let schema = EngineVersion::NEWEST.schema();
    if let Some((section, rest)) = path.split_once('.')
        && let Some(model) = schema.sections.get(section)
    {
        // Two names of one section have the same members.
        let twins = schema.sections.iter().filter(|(_, other)| *other == model);
        let found = twins.map(|(twin, _)| format!("{twin}.{rest}"));
        if let Some(twin) = found.into_iter().find(|path| texts.contains_key(path.as_str())) {
            return Some(twin);
        }
    }
    let (parent, _) = path.rsplit_once('.')?;
    let wild = format!("{parent}.*");
    match schema.locate(path)? {
        Located::Field(field) => {
            let path = format!("{parent}.{}", field.key());
            texts.contains_key(path.as_str()).then_some(path)
        }
        Located::Raw(_) => texts.contains_key(wild.as_str()).then_some(wild),
        _ => None,
    }
}

/// Keys whose path ends in what was asked, at a dot.
fn ending_in<'k>(asked: &str, paths: impl Iterator<Item = &'k str>) -> Vec<String> {
    let ends = |path: &&str| {
        path.strip_suffix(asked).is_some_and(|head| head.is_empty() || head.ends_with('.'))
    };
    paths.filter(ends).map(str::to_owned).collect()
}

/// `prefetch_bucket_size` is the field behind `stage3_prefetch_bucket_size`.
fn by_engine_name(asked: &str) -> Option<String> {
    let zero = EngineVersion::NEWEST.schema().section_model("zero_optimization")?;
    let name = asked.rsplit('.').next()?;
    let field = zero.fields.iter().find(|field| field.name == name)?;
    canonical(&format!("zero_optimization.{}", field.key()))
}

fn gone(asked: &str) -> Option<String> {
    EngineVersion::all().rev().find_map(|version| {
        let schema = version.schema();
        let removed = schema.rejected_when_present.iter().map(|removed| removed.path.clone());
        let paths: BTreeSet<String> = schema.paths().into_iter().chain(removed).collect();
        let mut found = ending_in(asked, paths.iter().map(String::as_str));
        found.sort_by_key(String::len);
        found.into_iter().next()
    })
}

fn handed_on(path: String) -> Found {
    let mut within = path.as_str();
    while let Some((parent, _)) = within.rsplit_once('.') {
        within = parent;
        if let Some(holder) = canonical(within) {
            return Found::HandedOn { path: path.clone(), within: holder };
        }
    }
    Found::Unknown(None)
}

/// The key nearest to a misspelt one, by its whole path or by its last part.
fn suggestion(asked: &str) -> Option<String> {
    let last = |path: &'static str| path.rsplit('.').next().unwrap_or(path);
    let paths = || texts().keys().map(|path| -> &'static str { path.as_ref() });
    if let Some(path) = nearest(asked, paths()) {
        return Some(path);
    }
    let name = nearest(asked.rsplit('.').next()?, paths().map(last))?;
    paths().find(|path| last(path) == name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str) -> Found {
        Found::Key(path.to_owned())
    }

    #[test]
    fn a_key_is_found_however_it_is_named() {
        let live = key("zero_optimization.stage3_max_live_parameters");
        for asked in [
            "zero_optimization.stage3_max_live_parameters",
            "stage3_max_live_parameters",
            "max_live_parameters",
            "zero_optimization.max_live_parameters",
            "\"stage3_max_live_parameters\"",
            "stage3-max-live-parameters",
            "Stage3_Max_Live_Parameters",
        ] {
            assert_eq!(find(asked), live, "{asked}");
        }
        assert_eq!(find("bfloat16.enabled"), key("bf16.enabled"));
        assert_eq!(find("offload_param.device"), key("zero_optimization.offload_param.device"));
        assert_eq!(find("pipeline.stages"), key("pipeline.*"));
        assert_eq!(find("lr"), key("optimizer.params.lr"));
        assert_eq!(find("data_parallel_size"), key("sequence_parallel_size"));
    }

    #[test]
    fn a_name_of_several_keys_lists_them() {
        let Found::Several(paths) = find("pin_memory") else { panic!("several keys") };
        assert_eq!(
            paths,
            [
                "data_efficiency.data_sampling.pin_memory",
                "zero_optimization.offload_optimizer.pin_memory",
                "zero_optimization.offload_param.pin_memory",
            ]
        );
    }

    #[test]
    fn keys_that_are_gone_are_known_as_such() {
        assert_eq!(
            find("mics_shard_size"),
            Found::Gone("zero_optimization.mics_shard_size".into())
        );
        assert_eq!(find("elasticity"), Found::Gone("elasticity".into()));
        assert_eq!(find("elasticity.min_gpus"), Found::Gone("elasticity.min_gpus".into()));
    }

    #[test]
    fn what_is_handed_on_leads_to_what_holds_it() {
        let found = find("optimizer.params.momentum");
        let within = "optimizer.params".to_owned();
        assert_eq!(found, Found::HandedOn { path: "optimizer.params.momentum".to_owned(), within });
    }

    #[test]
    fn slips_of_the_pen_are_guessed_and_nonsense_is_not() {
        let near = |asked| match find(asked) {
            Found::Unknown(near) => near,
            other => panic!("{other:?}"),
        };
        assert_eq!(near("zero_optimisation").as_deref(), Some("zero_optimization"));
        assert_eq!(
            near("stage3_max_live_paramters").as_deref(),
            Some("zero_optimization.stage3_max_live_parameters")
        );
        assert_eq!(near("use_dynamic_tiling"), None);
        assert_eq!(near(""), None);
    }
}
