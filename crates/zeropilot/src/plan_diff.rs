//! `zeropilot plan JOB --diff`: the lines of a job's files that must change for the recommended strategy.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use zeropilot_ask::{ArgumentChange, Changes, ConfigChange};
use zeropilot_job::local::Places;
use zeropilot_job::{ConfigContent, Framework, JobConfig, Origin, TrainingJob, line_edit};
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
    let mut patch = Patch { job, places, files: BTreeMap::new() };
    let mut text = String::new();
    let mut is_whole = match &changes.config {
        ConfigChange::Nothing => true,
        ConfigChange::Text(now) => patch.config(now).is_some(),
        ConfigChange::NoText => false,
    };
    if !is_whole {
        text.push_str(&words::config_by_hand(job.config.as_ref(), language));
    }
    // Lines that are added move those below them.
    let (set, added): (Vec<_>, Vec<_>) =
        changes.arguments.iter().partition(|one| place(one).is_some());
    for change in set.into_iter().chain(added) {
        let is_patched = patch.argument(change).is_some();
        is_whole &= is_patched;
        text.push_str(&words::argument(change, job.config.as_ref(), is_patched, language));
    }
    if !is_whole && patch.files.values().any(|(before, after)| before != after) {
        text.push_str(words::together(language));
    }
    for (path, (before, after)) in &patch.files {
        text.push_str(&unified(before.as_bytes(), after, &path.to_string_lossy()));
    }
    text
}

struct Patch<'a> {
    job: &'a TrainingJob,
    places: &'a Places,
    /// Files by where they are, as they are and as they become.
    files: BTreeMap<PathBuf, (String, String)>,
}

impl Patch<'_> {
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
            let now = change.now.as_ref()?.value.to_string();
            let other = |value: &str| if value == "true" { "false" } else { "true" };
            return self.line(name, line, |text| {
                line_edit::with_value(text, change.field, &now, &to).or_else(|| {
                    let is_switch = change.field == "grad_checkpointing";
                    let no = || {
                        line_edit::with_value(
                            text,
                            "no_grad_checkpointing",
                            other(&now),
                            other(&to),
                        )
                    };
                    is_switch.then(no).flatten()
                })
            });
        }
        let config = self.job.config.as_ref()?;
        let Origin::File { name, line } = &config.origin else { return None };
        let is_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
        // The YAML of accelerate has no arguments of the training program.
        let is_its_own = matches!(
            self.job.framework,
            Some(Framework::LlamaFactory | Framework::Axolotl | Framework::Swift)
        );
        let argument = change.name.filter(|_| !is_yaml || is_its_own)?;
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

/// Where a value is given, if that is a line of a file.
fn place(change: &ArgumentChange) -> Option<(&str, usize)> {
    match &change.now.as_ref()?.origin {
        Origin::File { name, line } => Some((name, *line)),
        _ => None,
    }
}
