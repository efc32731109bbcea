//! `zeropilot run`: check the job, start it, watch it, and say why it ended.

mod accuracy;
mod again;
pub(crate) mod arguments;
mod earlier;
mod fallbacks;
mod forecast;
mod machine;
mod notifier;
mod preflight;
mod screen;
mod shortage;
mod speaker;
mod status_row;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeropilot_config::packages::Packages;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::Settings;
use zeropilot_record::{Cause, Fullest, RunEvent, RunInfo, SHAPE, Verdict};
use zeropilot_run::checkpoint::Before;
use zeropilot_run::environment::{kept, without_secrets};
use zeropilot_run::{
    Limits, Observer, Policy, Record, Recorder, Run, RunCommand, node_of, now, resolved_here,
    signals,
};
use zeropilot_text::Language;
use zeropilot_view::{Layout, run as words};

use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::options::GlobalOptions;
use crate::records::home;
use accuracy::Predicted;
use arguments::RunArguments;
use earlier::Earlier;
use forecast::Forecaster;
use notifier::Notifier;
use preflight::Preflight;
use screen::Screen;

/// The word that makes this program a guard of ranks; for `zeropilot run` alone.
pub(crate) const GUARD: &str = "__guard";

/// Runs a job.
pub(crate) fn run(
    arguments: &RunArguments,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let layout = layout(zeropilot_view::Format::Human, global, language);
    match supervise(arguments, &layout) {
        Ok(verdict) => ExitStatus::Run(verdict.exit_code),
        Err(problem) => {
            screen::say(&problem);
            ExitStatus::Failure
        }
    }
}

fn supervise(arguments: &RunArguments, layout: &Layout) -> Result<Verdict, String> {
    let language = layout.language;
    let command = RunCommand::read(arguments.command.clone());
    let settings = settings(&command)?;
    let planned = fallbacks::of(arguments, &command, language)?;
    let (name, model) = (planned.name.as_deref(), planned.model.as_ref());
    let forecaster = Forecaster::of(arguments, name, &command, model);
    let (config, batch) = (command.read_config(), command.batch());
    let (predicted, fullest) = config
        .as_ref()
        .and_then(|config| forecaster.peak(config, batch))
        .map_or((planned.predicted, None), |(bytes, fullest)| (Some(bytes), Some(fullest)));
    let prediction = config.as_ref().and_then(|config| forecaster.predicted(config, batch));
    // What cannot begin leaves no record: a place for one is taken last.
    let events = arguments.open_events(language)?;
    let earlier = arguments.earlier(&command, language)?;
    if let Some(verdict) = earlier.as_ref().and_then(Earlier::completed) {
        screen::say(&words::already_completed(&verdict.id, language));
        return Ok(verdict.clone());
    }
    let (id, directory) = arguments::place(arguments.record.as_deref(), &home());
    let id = earlier.as_ref().map_or(id, |earlier| earlier.record.info.id.clone());
    let unwritable = |error: std::io::Error| arguments::unwritable(&directory, &error, language);
    let open = if earlier.is_some() { Recorder::reopen } else { Recorder::create };
    let recorder = Arc::new(open(&directory, events).map_err(unwritable)?);
    let checkpoints = arguments.checkpoints.as_deref().or(command.checkpoints.as_deref());
    let mut info = info(&id, &command, &settings.packages, (predicted, fullest));
    info.started_at =
        earlier.as_ref().map_or(info.started_at, |earlier| earlier.record.info.started_at);
    let phases = |config| forecaster.phases(config, batch, prediction.as_ref());
    info.phases = config.as_ref().map(phases).unwrap_or_default();
    info.predicted_step_seconds = prediction.as_ref().and_then(Predicted::step_seconds);
    info.node = node_of(&command, |name| std::env::var(name).ok());
    info.checkpoints = checkpoints.map(|path| resolved_here(path).display().to_string());
    info.falls_back = arguments.wants_fallbacks();
    let told = info.clone();
    let text = serde_json::to_string_pretty(&info).unwrap_or_default();
    recorder.write("run.json", &text).map_err(unwritable)?;
    let sharing = info.checkpoints.as_deref().and_then(|checkpoints| {
        Record::writing_to(&home(), checkpoints, info.host.as_deref())
            .filter(|other| other.info.id != id)
    });
    if arguments.record.is_some() {
        // Without a home the run is only not listed.
        let _ = Record::link(&home(), &id, &directory);
    }
    // From here on a signal ends the run in order, and not zeropilot alone.
    let signals = signals::catch().map_err(unwritable)?;
    let notifier = Notifier::start(&arguments.notify, &info, language);
    let screen = Screen::new(recorder.clone(), language, layout.quiet, &info, notifier);
    let screen = Arc::new(screen);
    screen.happened(match &earlier {
        None => RunEvent::RunStarted { id: id.clone(), command: info.command },
        Some(earlier) => RunEvent::Continued { attempts: earlier.continuation.started },
    });
    if let (Some(other), Some(checkpoints)) = (sharing, info.checkpoints) {
        screen.happened(RunEvent::CheckpointsShared { run: other.info.id, checkpoints });
    }
    let preflight =
        Preflight { command: &command, settings: &settings, layout, forecaster: &forecaster };
    if !arguments.no_preflight && !preflight.passes(&screen, &recorder) {
        let verdict = refused(&id, &screen, &recorder);
        finish(&screen, &verdict, &told, (arguments, &command), &directory, language);
        return Ok(verdict);
    }
    let earlier = earlier.map(|earlier| earlier.continuation);
    let before =
        earlier.as_ref().map_or_else(|| Before::look(checkpoints), |known| known.before.clone());
    let is_first = earlier.is_none();
    let judge = |config: &serde_json::Map<String, serde_json::Value>| preflight.accepts(config);
    let run = Run {
        id: &id,
        guard: guard(),
        limits: limits(arguments),
        policy: Policy {
            max_fallbacks: if arguments.wants_fallbacks() { arguments.max_fallbacks } else { 0 },
            fallbacks: planned.fallbacks,
            max_restarts: arguments.max_restarts,
            checkpoints: arguments.checkpoints.clone(),
            resume_with: arguments.resume_with.clone(),
            allows_scratch: arguments.allow_restart_from_scratch,
            requeue_exit_code: arguments.requeue_exit_code,
        },
        command: command.clone(),
        judge: &judge,
        predict: &forecaster,
        predicted_step: prediction.as_ref().and_then(Predicted::step_seconds),
        recorder: recorder.clone(),
        observer: screen.clone(),
        signals,
        before,
        earlier,
    };
    let verdict = run.run();
    if let Some(prediction) = prediction.filter(|_| is_first) {
        prediction.record(&verdict, &recorder);
    }
    let predict = || forecaster.memory(config.as_ref()?, batch);
    if let Some(why) = shortage::explained(&verdict, &recorder, predict, layout) {
        screen.talk(&why);
    }
    screen.tell_unwritten();
    finish(&screen, &verdict, &told, (arguments, &command), &directory, language);
    Ok(verdict)
}

/// Ends a run that did not pass the check before it.
fn refused(id: &str, screen: &Screen, recorder: &Recorder) -> Verdict {
    let verdict = Verdict::new(id, Cause::Refused, Vec::new(), now());
    screen.happened(RunEvent::RunEnded { cause: Cause::Refused, exit_code: verdict.exit_code });
    let text = serde_json::to_string_pretty(&verdict).unwrap_or_default();
    let _ = recorder.write("verdict.json", &text);
    verdict
}

fn limits(arguments: &RunArguments) -> Limits {
    Limits {
        hang_after: arguments.hang_after.0,
        step_timeout: arguments.step_timeout.0,
        stop_on_nan: arguments.stop_on_nan,
        rollback_on_spike: arguments.rollback_on_spike,
        finds_stragglers: arguments.find_stragglers,
        has_stack_handler: !arguments.no_stack_handler,
        grace: arguments.grace,
    }
}

fn finish(
    screen: &Screen,
    verdict: &Verdict,
    info: &RunInfo,
    (arguments, command): (&RunArguments, &RunCommand),
    directory: &Path,
    language: Language,
) {
    let can_resume = arguments.resume_with.is_some() || command.is_trainer;
    let resume = again::resume(verdict, arguments, can_resume, directory);
    let ended = words::Ended {
        info,
        verdict,
        directory: &directory.display().to_string(),
        report: &again::report(&verdict.id, &home(), directory),
        resume: resume.as_deref(),
    };
    screen.finish();
    screen.talk(&words::verdict(&ended, language));
    screen.send_rest();
}

fn settings(command: &RunCommand) -> Result<Settings, String> {
    let packages = machine::packages(command);
    let of_command = packages.version("deepspeed").map(EngineVersion::nearest);
    let version = match of_command {
        Some(Ok(version)) => version,
        _ => engine_version::choose(None).map(|(version, _)| version).map_err(|error| {
            let error = error.to_string();
            format!("error: {}", zeropilot_view::escaped(&error))
        })?,
    };
    Ok(Settings { version, packages, ..Settings::default() })
}

/// This very program, wherever it was moved since.
fn guard() -> Vec<OsString> {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"));
    vec![own.into(), GUARD.into()]
}

/// The name of this machine.
fn host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn info(
    id: &str,
    command: &RunCommand,
    packages: &Packages,
    (predicted, fullest): (Option<u64>, Option<Fullest>),
) -> RunInfo {
    let length = command.length();
    let directory = std::env::current_dir().unwrap_or_default();
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let owned = |(name, version): (&str, &str)| (name.to_owned(), version.to_owned());
    RunInfo {
        shape: SHAPE,
        id: id.to_owned(),
        started_at: now(),
        command: without_secrets(&command.given),
        directory: directory.display().to_string(),
        host: host(),
        checkpoints: None,
        config: command.config.clone(),
        world_size: command.world,
        predicted,
        fullest,
        phases: Vec::new(),
        predicted_step_seconds: None,
        node: None,
        total_steps: length.total_steps,
        tokens_per_step: length.tokens_per_step,
        supervisor: std::process::id(),
        falls_back: false,
        environment: kept(variables),
        packages: packages.iter().map(owned).collect(),
        zeropilot: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
