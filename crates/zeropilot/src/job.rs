//! Launch scripts: the script is judged, and every config it points to with what it says.

use std::fs;
use std::path::{Path, PathBuf};

use zeropilot_lint::Settings;
use zeropilot_lint::job::{self, Launch};
use zeropilot_view::talk::{self, InputProblem, LaunchWords};
use zeropilot_view::{FileResult, Layout, Summary};

use crate::files::Input;
use crate::mend::{self, Mode};

/// Names of launch scripts end like this.
pub(crate) const EXTENSIONS: [&str; 5] = ["sh", "bash", "slurm", "sbatch", "job"];

/// Whether a file is a launch script by its name.
pub(crate) fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|found| EXTENSIONS.iter().any(|known| found.eq_ignore_ascii_case(known)))
}

/// The results of a script and its configs, in their final form.
pub(crate) fn check_script(
    input: &Input,
    path: &Path,
    layout: &Layout,
    settings: &Settings,
    mode: Mode,
) -> Result<(String, Summary), InputProblem> {
    let bytes = input.read()?;
    let text = String::from_utf8_lossy(&bytes);
    let beside = path.parent().unwrap_or(Path::new("")).to_owned();
    let find = |name: &str| found(name, &beside).and_then(|path| fs::read_to_string(path).ok());
    let job = job::read(&text, &find);
    let mut report = job::check(&text, &job, &find);
    report.diagnostics.retain(|found| settings.selection.wants(found.rule.code));
    let mut results = Results { layout, mode, written: Vec::new(), summary: Summary::default() };
    let headline =
        talk::launches(&job.launches.iter().map(words).collect::<Vec<_>>(), layout.language);
    results.add(&FileResult {
        name: &input.name(),
        bytes: text.as_bytes(),
        report: &report,
        is_named: input.is_named() || !job.launches.is_empty(),
        headline: Some(&headline),
    });
    let mut seen = Vec::new();
    for launch in &job.launches {
        let named = launch.given.config.as_ref().and_then(|config| config.text.as_deref());
        let Some(path) = named.and_then(|name| found(name, &beside)) else { continue };
        let Ok(bytes) = fs::read(&path) else { continue };
        let settings = launch.settings(settings);
        let question = (path.clone(), settings.world_size, format!("{:?}", settings.arguments));
        if seen.contains(&question) {
            continue;
        }
        seen.push(question);
        let name = path.to_string_lossy();
        let judged = mend::judge(bytes, Some(&path), &name, &settings, mode)?;
        results.written.extend(judged.diff);
        let file = FileResult {
            name: &name,
            bytes: &judged.bytes,
            report: &judged.report,
            is_named: true,
            headline: None,
        };
        results.add(&file);
    }
    let between = if let Mode::Diff { .. } = mode { "" } else { layout.separator() };
    Ok((results.written.join(between), results.summary))
}

struct Results<'a> {
    layout: &'a Layout,
    mode: Mode,
    written: Vec<String>,
    summary: Summary,
}

impl Results<'_> {
    fn add(&mut self, file: &FileResult<'_>) {
        self.summary.count(file.report);
        if let Mode::Diff { .. } = self.mode {
            return;
        }
        let text = self.layout.file(file);
        if !text.is_empty() {
            self.written.push(text);
        }
    }
}

/// A file that a script names: from where the program runs, or from where the script stands.
fn found(name: &str, beside: &Path) -> Option<PathBuf> {
    let candidates = [PathBuf::from(name), beside.join(name)];
    candidates.into_iter().find(|path| path.is_file())
}

fn words(launch: &Launch) -> LaunchWords<'_> {
    LaunchWords {
        launcher: launch.launcher.name(),
        world: launch.world,
        config: launch.given.config.as_ref().map(|config| config.text.as_deref()),
        unknown: &launch.given.unknown,
    }
}
