//! Launch scripts: the script is judged, and every config it points to with what it says.

use std::fs;
use std::path::{Path, PathBuf};

use zeropilot_job::local::Places;
use zeropilot_job::{Launch, Outside};
use zeropilot_lint::job::{self, JobReport};
use zeropilot_lint::{Settings, Verdict};
use zeropilot_view::talk::{self, InputProblem, LaunchWords};
use zeropilot_view::{FileResult, Format, Layout, Summary};

use crate::adoption::Seen;
use crate::files::Input;
use crate::manner::Manner;
use crate::mend::{self, Mode};
use crate::piece::{Piece, Shared};

/// The results of a script and its configs, in their final form. `text` is the script, or the command that starts
/// training with a file that is none.
pub(crate) fn check_script(
    input: &Input,
    (path, text): (&Path, &str),
    settings: &Settings,
    outside: &Outside,
    manner: &Manner<'_>,
) -> Result<Vec<Piece>, InputProblem> {
    let mode = manner.mode;
    let places = Places::of(text, outside, path.parent().unwrap_or(Path::new("")));
    let find = |name: &str| places.read(name);
    let mended = match mode {
        Mode::Tell => Vec::new(),
        _ => mend_configs(text, &places, settings, (outside, mode))?,
    };
    if let Mode::Diff { .. } = mode {
        let diffs = mended.into_iter().map(|(path, outcome)| {
            let mut summary = Summary::default();
            summary.count(&outcome.report);
            let text = outcome.diff.unwrap_or_default();
            let findings = (outcome.report.outcome(), text.clone());
            let shared = Shared { file: shown(&path), findings, repeated: text.clone() };
            Piece { shared: Some(shared), text, summary, seen: Seen::default() }
        });
        return Ok(diffs.collect());
    }
    let judged = job::judge(text, outside, settings, &find);
    Ok(pieces(&judged, &mended, (input, &places), settings, manner))
}

/// What is said of a job, file by file.
pub(crate) fn pieces(
    judged: &JobReport,
    mended: &[(PathBuf, mend::Outcome)],
    (input, places): (&Input, &Places),
    settings: &Settings,
    manner: &Manner<'_>,
) -> Vec<Piece> {
    let layout = &manner.layout;
    let launches = &judged.job.launches;
    let headline = talk::launches(
        &launches.iter().map(|launch| words(launch, settings)).collect::<Vec<_>>(),
        &judged.job.unread,
        layout.language,
    );
    let reads_config =
        |launch: &Launch| launch.given.dictionary.is_some() || job::builds_config(launch).is_some();
    let is_refused = judged.files.iter().any(|file| file.report.verdict == Verdict::Reject);
    let is_judged = judged.files.iter().any(|file| file.is_config);
    let is_without = !is_refused && !is_judged && !launches.iter().any(reads_config);
    let told = judged.files.iter().map(|file| {
        let path = file.name.as_deref().and_then(|name| places.find(name));
        let name = match (&file.name, &path) {
            (None, _) => input.name(),
            (Some(_), Some(path)) => shown(path),
            (Some(name), None) => name.clone(),
        };
        let mut report = file.report.clone();
        if let Some((_, outcome)) = mended.iter().find(|(mended, _)| Some(mended) == path.as_ref())
        {
            report.fixed.clone_from(&outcome.report.fixed);
        }
        manner.found.adapt(Path::new(&name), &mut report);
        let seen = manner.adoption.apply(Path::new(&name), file.text.as_bytes(), &mut report);
        let is_launch = file.name.is_none();
        let result = FileResult {
            name: &name,
            bytes: file.text.as_bytes(),
            report: &report,
            is_named: if is_launch { input.is_named() || !launches.is_empty() } else { true },
            headline: match (is_launch, file.is_config) {
                (true, _) => Some(&headline),
                (false, true) => None,
                (false, false) => Some(talk::part_of_a_job(layout.language)),
            },
        };
        let mut summary = Summary::default();
        summary.count(&report);
        summary.without_config = usize::from(is_launch && is_without);
        let text = layout.file(&result);
        let concise = Layout { format: Format::Concise, ..*layout };
        let shared = (!is_launch).then(|| Shared {
            file: name.clone(),
            findings: (report.outcome(), concise.file(&result)),
            repeated: layout.repeated(&result),
        });
        Piece { shared, text, summary, seen }
    });
    told.collect()
}

/// A path as results name it: from here, where it is below.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    below.strip_prefix(".").unwrap_or(below).to_string_lossy().into_owned()
}

/// Mends every config that a script points to, with what the script says. One that several launches
/// read in different circumstances is mended for the first and only if the others are no worse off.
fn mend_configs(
    text: &str,
    places: &Places,
    settings: &Settings,
    (outside, mode): (&Outside, Mode),
) -> Result<Vec<(PathBuf, mend::Outcome)>, InputProblem> {
    let job = zeropilot_job::read(text, outside, &|name| places.read(name));
    let mut mended: Vec<(PathBuf, mend::Outcome)> = Vec::new();
    for launch in &job.launches {
        let named = launch.given.config.as_ref().and_then(|config| config.text.as_deref());
        let Some(path) = named.and_then(|name| places.find(name)) else { continue };
        if mended.iter().any(|(known, _)| *known == path) {
            continue;
        }
        let Ok(bytes) = fs::read(&path) else { continue };
        let others = job.launches.iter().filter(|other| {
            let name = other.given.config.as_ref().and_then(|config| config.text.as_deref());
            name == named
        });
        let circumstances: Vec<Settings> =
            others.map(|other| job::settings(other, settings)).collect();
        let name = path.to_string_lossy().into_owned();
        let outcome = mend::judge(bytes, Some(&path), &name, &circumstances, mode)?;
        mended.push((path, outcome));
    }
    Ok(mended)
}

fn words<'l>(launch: &'l Launch, said: &Settings) -> LaunchWords<'l> {
    let given = &launch.given;
    let config = given.config.as_ref().map(|config| config.text.as_deref());
    let inside = given.dictionary.as_ref().map(|place| place.file.as_deref());
    let built = || job::builds_config(launch).map(|file| file.or(Some("--use_deepspeed")));
    LaunchWords {
        launcher: launch.launcher.name(),
        world: launch.world,
        said: said.world_size,
        config: config.or(inside).or_else(built),
        unknown: &given.unknown,
        unsupported: launch.unread,
        // accelerate's YAML by itself names no program.
        unread: launch
            .program
            .as_deref()
            .filter(|name| name.ends_with(".py") && *name != ".py" && launch.script.is_none()),
    }
}
