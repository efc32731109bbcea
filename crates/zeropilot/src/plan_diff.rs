//! `zeropilot plan JOB --diff`: the lines of a job's files that must change for the recommended strategy.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use zeropilot_ask::{ArgumentChange, Changes, ConfigChange};
use zeropilot_job::local::Places;
use zeropilot_job::{ConfigContent, Framework, JobConfig, Origin, Sourced, TrainingJob, line_edit};
use zeropilot_text::Language;
use zeropilot_view::plan::changes as words;

use crate::mend::unified;

/// What must change, a line each, and below it a patch with all of that which is written out in a file.
pub(crate) fn text(
    job: &TrainingJob,
    places: &Places,
    changes: &Changes,
    language: Language,
) -> String {
    let Made { patch, is_config_by_hand, arguments } = Made::of(job, places, changes);
    let mut text = String::new();
    if is_config_by_hand {
        text.push_str(&words::config_by_hand(job.config.as_ref(), language));
    }
    for (change, is_patched) in &arguments {
        text.push_str(&words::argument(change, job.config.as_ref(), *is_patched, language));
    }
    let is_whole = !is_config_by_hand && arguments.iter().all(|(_, is_patched)| *is_patched);
    if !is_whole && patch.is_any() {
        text.push_str(words::together(language));
    }
    for (path, (before, after)) in &patch.files {
        text.push_str(&unified(before.as_bytes(), after, &path.to_string_lossy()));
    }
    text
}

/// Whether a patch can make any of the changes.
pub(crate) fn is_possible(job: &TrainingJob, places: &Places, changes: &Changes) -> bool {
    Made::of(job, places, changes).patch.is_any()
}

/// The changes, with the place of what the YAML of the job says already: a second line with the same key would be another
/// value, and only the last of them counts.
pub(crate) fn placed(job: &TrainingJob, places: &Places, mut changes: Changes) -> Changes {
    let Some(Origin::File { name: file, .. }) = job.config.as_ref().map(|it| &it.origin) else {
        return changes;
    };
    let path = places.find(file).filter(|_| is_yaml(file) && has_arguments_in_yaml(job));
    let Some(text) = path.and_then(|path| fs::read_to_string(path).ok()) else { return changes };
    for change in changes.arguments.iter_mut().filter(|one| place(one).is_none()) {
        let said = change.name.and_then(|name| line_edit::yaml_value(&text, name));
        if let Some((line, value)) = said {
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            let origin = Origin::File { name: file.clone(), line };
            change.now = Some(Sourced { value, origin });
        }
    }
    changes
}

/// A patch and what it could not do.
struct Made<'a> {
    patch: Patch<'a>,
    is_config_by_hand: bool,
    /// All, and whether they are in the patch.
    arguments: Vec<(&'a ArgumentChange, bool)>,
}

impl<'a> Made<'a> {
    fn of(job: &'a TrainingJob, places: &'a Places, changes: &'a Changes) -> Self {
        let mut patch = Patch { job, places, files: BTreeMap::new() };
        let is_config_by_hand = match &changes.config {
            ConfigChange::Nothing => false,
            ConfigChange::Text(now) => patch.config(now).is_none(),
            ConfigChange::NoText => true,
        };
        // Lines that are added move those below them.
        let (set, added): (Vec<_>, Vec<_>) =
            changes.arguments.iter().partition(|one| place(one).is_some());
        let all = set.into_iter().chain(added);
        let arguments = all.map(|one| (one, patch.argument(one).is_some())).collect();
        Self { patch, is_config_by_hand, arguments }
    }
}

struct Patch<'a> {
    job: &'a TrainingJob,
    places: &'a Places,
    /// Files by where they are, as they are and as they become.
    files: BTreeMap<PathBuf, (String, String)>,
}

impl Patch<'_> {
    /// Whether it changes anything.
    fn is_any(&self) -> bool {
        self.files.values().any(|(before, after)| before != after)
    }

    /// The file of a name; `None` if it is not there.
    fn file(&mut self, name: &str) -> Option<&mut (String, String)> {
        let path = self.places.find(name)?;
        let text = fs::read_to_string(&path).ok()?;
        Some(self.files.entry(path).or_insert_with(|| (text.clone(), text)))
    }

    /// Only a config that is a file of its own can be patched.
    fn config(&mut self, now: &str) -> Option<()> {
        let JobConfig { name, content, .. } = self.job.config.as_ref()?;
        let (before, after) = self.file(name)?;
        let is_whole = matches!(content, ConfigContent::Text(text) if text == before);
        is_whole.then(|| now.clone_into(after))
    }

    fn argument(&mut self, change: &ArgumentChange) -> Option<()> {
        let to = change.to.to_string();
        if let Some((name, line)) = place(change) {
            let now = match &change.now.as_ref()?.value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            return self.line(name, line, |text| exchanged(text, change, &now, &to));
        }
        let config = self.job.config.as_ref()?;
        let Origin::File { name, line } = &config.origin else { return None };
        let has_arguments = !is_yaml(name) || has_arguments_in_yaml(self.job);
        let argument = change.name.filter(|_| has_arguments)?;
        self.line(name, *line, |text| {
            line_edit::with_argument(name, text, &config.name, argument, &to)
        })
    }

    fn line(
        &mut self,
        name: &str,
        number: usize,
        edit: impl FnOnce(&str) -> Option<String>,
    ) -> Option<()> {
        let (_, after) = self.file(name)?;
        let start: usize =
            after.split_inclusive('\n').take(number.checked_sub(1)?).map(str::len).sum();
        let line = after[start..].lines().next()?;
        let (end, edited) = (start + line.len(), edit(line)?);
        after.replace_range(start..end, &edited);
        Some(())
    }
}

/// A line with another value of what is to be changed; a switch may say the contrary under another name.
fn exchanged(line: &str, change: &ArgumentChange, now: &str, to: &str) -> Option<String> {
    let other = |value: &str| if value == "true" { "false" } else { "true" };
    let no = || {
        let is_switch = change.field == "grad_checkpointing";
        let field = is_switch.then_some("no_grad_checkpointing")?;
        line_edit::with_value(line, field, other(now), other(to))
    };
    let named = change.name.and_then(|name| line_edit::with_value_of(line, name, now, to));
    named.or_else(|| line_edit::with_value(line, change.field, now, to)).or_else(no)
}

fn is_yaml(file: &str) -> bool {
    file.ends_with(".yaml") || file.ends_with(".yml")
}

/// Whether the YAML of a job has arguments of the training program; that of accelerate has none.
fn has_arguments_in_yaml(job: &TrainingJob) -> bool {
    use Framework::{Axolotl, LlamaFactory, Swift};
    matches!(job.framework, Some(LlamaFactory | Axolotl | Swift))
}

/// Where a value is given, if that is a line of a file.
fn place(change: &ArgumentChange) -> Option<(&str, usize)> {
    match &change.now.as_ref()?.origin {
        Origin::File { name, line } => Some((name, *line)),
        _ => None,
    }
}
