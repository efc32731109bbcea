//! A job judged as a whole: every config with what its launch says to it, rules over launch scripts,
//! training scripts and frameworks, and every finding in the file where its cause stands.
//! `zeropilot_job` reads the files.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_job::{
    ACCELERATE_SECTION, Files, Launch, LaunchScript, Outside, Place, as_json, read,
};
use zeropilot_text::Language;

use crate::accelerate_config;
use crate::check::check;
use crate::diagnostic::Diagnostic;
pub use crate::job_view::settings;
use crate::job_view::{Findings, JobView};
pub use crate::one_rank::is_of_one_rank;
use crate::registry::{CHECKS, Check};
use crate::report::{Outcome, Report, Verdict};
use crate::rule::Severity;
use crate::rules::integrations::accelerate_fields;
use crate::settings::Settings;
use crate::world::World;

/// A file of a job and what was found in it.
#[derive(Debug)]
pub struct JobFile {
    /// Its name as the job has it; `None` for the launch script.
    pub name: Option<String>,
    /// What is in it.
    pub text: String,
    /// What was found.
    pub report: Report,
    /// Whether it is a config, rather than a script or YAML.
    pub is_config: bool,
}

/// All files of a job, the launch script first.
#[derive(Debug)]
pub struct JobReport {
    /// What the script starts.
    pub job: LaunchScript,
    /// What was found, file by file.
    pub files: Vec<JobFile>,
    /// Whether the job ends at its start whatever its training scripts do: by an error in its launch or in a config,
    /// whoever reads that. What is found in the code of a training script is not certain, since not every line of it runs.
    pub is_certain_to_fail: bool,
}

impl JobReport {
    /// All findings under the verdict on the whole job.
    pub(crate) fn merged(self) -> Report {
        let mut files = self.files.into_iter();
        // There is always a launch script.
        let Some(mut whole) = files.next().map(|file| file.report) else {
            return empty(None, &Settings::default());
        };
        whole.diagnostics.extend(files.flat_map(|file| file.report.diagnostics));
        whole
    }
}

/// Judges a launch script with everything it points to.
pub fn judge(text: &str, outside: &Outside, said: &Settings, files: Files<'_>) -> JobReport {
    let job = read(text, outside, files);
    let mut findings = Findings::default();
    let mut configs: Vec<JobFile> = Vec::new();
    let mut verdicts = Vec::new();
    let mut is_certain_to_fail = false;
    for launch in &job.launches {
        let (judged, is_certain) = match config(launch, said, files, &mut findings) {
            Some(Config { file, is_certain_to_fail }) => (Some(file), is_certain_to_fail),
            None => (None, false),
        };
        is_certain_to_fail |= is_certain;
        verdicts.push(judged.as_ref().map(|file| file.report.clone()));
        // One config under the same circumstances is told once.
        let is_new = |file: &JobFile| !configs.iter().any(|known| is_same(known, file));
        if let Some(file) = judged.filter(|file| file.is_config).filter(is_new) {
            configs.push(file);
        }
    }
    let of_configs = findings.0.len();
    let view = JobView { job: &job, files, configs: &verdicts, packages: &said.packages, check };
    for (_, check) in CHECKS {
        if let Check::Job(check) = check {
            check(&view, &mut findings);
        }
    }
    let is_error = |(_, found): &(_, Diagnostic)| found.severity == Severity::Error;
    let is_wanted = |(_, found): &(_, Diagnostic)| said.selection.wants(found.rule.code);
    is_certain_to_fail |= findings.0[of_configs..]
        .iter()
        .filter(|(file, _)| !file.as_deref().is_some_and(is_python))
        .any(|found| is_wanted(found) && is_error(found));
    findings.0.retain(is_wanted);
    let is_rejected = verdicts.iter().flatten().any(|report| report.outcome() != Outcome::Runs)
        || findings.0.iter().any(is_error);
    let mut all = in_files(text, &job, said, files, findings.0);
    all[0].report.verdict = if is_rejected { Verdict::Reject } else { Verdict::Accept };
    all.extend(configs);
    JobReport { job, files: all, is_certain_to_fail }
}

fn is_same(known: &JobFile, file: &JobFile) -> bool {
    let codes = |file: &JobFile| -> Vec<_> {
        file.report.diagnostics.iter().map(|found| (found.rule.code, found.span)).collect()
    };
    known.name == file.name
        && known.report.verdict == file.report.verdict
        && known.report.world == file.report.world
        && codes(known) == codes(file)
}

/// Whether a file is a training script rather than what starts it.
fn is_python(name: &str) -> bool {
    name.ends_with(".py")
}

/// The config of a launch.
struct Config {
    file: JobFile,
    /// Whether the run fails with it, whoever reads it.
    is_certain_to_fail: bool,
}

/// The config of a launch, judged with what the launch says. What comes from an argument is told
/// where the argument is given, what is in a dictionary in the script that holds it.
fn config(
    launch: &Launch,
    said: &Settings,
    files: Files<'_>,
    findings: &mut Findings,
) -> Option<Config> {
    let settings = settings(launch, said);
    if let Some(place) = &launch.given.dictionary {
        let name = place.file.clone()?;
        let script = files(&name)?;
        let json = as_json(&script, place.span)?;
        let mut report = check(json.as_bytes(), &settings);
        let is_certain_to_fail = report.outcome() != Outcome::Runs;
        for mut found in std::mem::take(&mut report.diagnostics) {
            // Fixes are written for JSON.
            found.fix = None;
            findings.at(place, found);
        }
        let file = JobFile { name: Some(name), text: script, report, is_config: false };
        return Some(Config { file, is_certain_to_fail });
    }
    if let Some(config) = accelerate_config::of(launch) {
        return Some(built_config(launch, &config, said, files, findings));
    }
    let name = launch.given.config.as_ref()?.text.clone()?;
    let text = launch.config_text.clone().or_else(|| files(&name))?;
    let mut report = check(text.as_bytes(), &settings);
    let is_certain_to_fail = report.outcome() != Outcome::Runs
        && (is_reader_shown(launch, said) || fails_with_deepspeed(&text, settings));
    report.diagnostics.retain(|found| match told_elsewhere(found, launch) {
        None => true,
        Some(place) => {
            let mut found = found.clone();
            found.span = place.span;
            found.related.clear();
            found.fix = None;
            findings.at(place, found);
            false
        }
    });
    let file = JobFile { name: Some(name), text, report, is_config: true };
    Some(Config { file, is_certain_to_fail })
}

/// The config that accelerate builds from its own fields. What is found is told where the field is written.
fn built_config(
    launch: &Launch,
    config: &str,
    said: &Settings,
    files: Files<'_>,
    findings: &mut Findings,
) -> Config {
    let mut report = check(config.as_bytes(), &settings(launch, said));
    let is_certain_to_fail = report.outcome() != Outcome::Runs && is_reader_shown(launch, said);
    for mut found in std::mem::take(&mut report.diagnostics) {
        let place = told_elsewhere(&found, launch).cloned();
        let place = place.unwrap_or_else(|| accelerate_config::place(launch, &found.path));
        found.span = place.span;
        // Other places and fixes are those of a text that is in no file.
        found.related.clear();
        found.fix = None;
        findings.at(&place, found);
    }
    let name = accelerate_config::switch(launch).file;
    let text = name.as_deref().and_then(files).unwrap_or_default();
    Config { file: JobFile { name, text, report, is_config: false }, is_certain_to_fail }
}

/// Whether the launch settles who reads the config.
fn is_reader_shown(launch: &Launch, said: &Settings) -> bool {
    said.front_end.is_some()
        || launch.given.front_end.is_some() && !launch.given.is_reader_an_option
}

/// Whether accelerate builds the config of a launch from its own fields, and where that is said: the file, or `None` for
/// the command line.
pub fn builds_config(launch: &Launch) -> Option<Option<&str>> {
    let said = launch.distributed_type.as_ref();
    accelerate_config::of(launch).map(|_| said.and_then(|said| said.place.file.as_deref()))
}

/// Whether a run without a front end fails with a config: `--deepspeed FILE` looks like the HF Trainer's argument, and
/// a script that calls DeepSpeed itself may have one too.
fn fails_with_deepspeed(config: &str, settings: Settings) -> bool {
    let bare = Settings { front_end: Some(FrontEnd::DeepSpeed), ..settings };
    check(config.as_bytes(), &bare).outcome() != Outcome::Runs
}

/// Where the argument is given that a finding comes from.
fn told_elsewhere<'a>(found: &Diagnostic, launch: &'a Launch) -> Option<&'a Place> {
    let given = &launch.given;
    let said = if found.rule.code == accelerate_fields::RULE.code {
        given.values.iter().find(|said| said.name.starts_with(ACCELERATE_SECTION))?
    } else {
        given.said(found.argument()?)?
    };
    Some(&said.place)
}

/// The launch script and every other file with findings in it.
fn in_files(
    text: &str,
    job: &LaunchScript,
    said: &Settings,
    files: Files<'_>,
    findings: Vec<(Option<String>, Diagnostic)>,
) -> Vec<JobFile> {
    let launch = job.launches.first();
    let mut all = vec![JobFile {
        name: None,
        text: text.to_owned(),
        report: empty(launch, said),
        is_config: false,
    }];
    for (name, found) in findings {
        let known = all.iter().position(|file| file.name == name);
        let index = known.unwrap_or_else(|| {
            let text = name.as_deref().and_then(files).unwrap_or_default();
            all.push(JobFile { name, text, report: empty(launch, said), is_config: false });
            all.len() - 1
        });
        all[index].report.diagnostics.push(found);
    }
    for file in &mut all {
        file.report.diagnostics.sort_by_key(|found| (found.span.start, found.rule.code));
        // Two ways to one cause, such as two launches of a script, are one finding.
        file.report.diagnostics.dedup_by(|one, other| {
            one.rule == other.rule
                && one.span == other.span
                && one.message(Language::English) == other.message(Language::English)
        });
        let is_error = |found: &Diagnostic| found.severity == Severity::Error;
        if file.report.diagnostics.iter().any(is_error) {
            file.report.verdict = Verdict::Reject;
        }
    }
    all
}

/// A report on a file that is no config.
fn empty(launch: Option<&Launch>, said: &Settings) -> Report {
    Report {
        verdict: Verdict::Accept,
        resolved: None,
        partial: None,
        diagnostics: Vec::new(),
        fixed: Vec::new(),
        known: Vec::new(),
        pending: Vec::new(),
        version: said.version,
        front_end: said
            .front_end
            .or_else(|| launch.and_then(|launch| launch.given.front_end))
            .unwrap_or(FrontEnd::DeepSpeed),
        front_end_guessed: false,
        world: World::given_or_one(
            said.world_size.or_else(|| launch.and_then(|launch| launch.world)),
        ),
    }
}
