//! `zeropilot check`: from arguments to results and an exit status.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::slice;

use clap::{Args, ValueEnum};
use rayon::prelude::*;
use zeropilot_ask::{Judging, ScriptArguments, rule_code};
use zeropilot_config::front_end::ModelFacts;
use zeropilot_config::schema::EngineVersion;
use zeropilot_job::{FileKind, Outside};
use zeropilot_lint::recognition::{has_name_of_config, may_be_config};
use zeropilot_lint::{Checkpoint, Settings};
use zeropilot_model::{Family, Model};
use zeropilot_text::Language;
use zeropilot_view::job::kind as kind_words;
use zeropilot_view::settings;
use zeropilot_view::talk::{self, InputProblem};
use zeropilot_view::{FileResult, Format, Layout, Summary, problem};

use crate::checkpoint;
use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::files::{self, Collected, Input};
use crate::job;
use crate::layout::layout;
use crate::mend::{self, Mode};
use crate::model_source;
use crate::options::{GlobalOptions, ReaderOptions};
use crate::output::Output;
use crate::progress::Progress;
use crate::project::{Broken, Found};
use crate::rechecking;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot check ds_config.json --world-size 8
  zeropilot check configs/ --front-end hf-trainer --output-format concise
  zeropilot check zero3.json --per-device-train-batch-size 2 --bf16 --hidden-size 4096
  zeropilot check ds_config.json --diff --unsafe-fixes
  cat ds_config.json | zeropilot check - --lang zh

Exit codes: 0 nothing wrong, 1 errors or warnings found (with --diff: fixes to apply), 2 the check could not be done";

/// The arguments of `zeropilot check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckCommand {
    /// Config files, launch scripts, training scripts, YAML of frameworks, directories to search for .json and .hjson files, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// In directories look for launch scripts, and check the configs they point to
    #[arg(long)]
    pub(crate) job: bool,
    #[command(flatten)]
    pub(crate) reader: ReaderOptions,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: OutputFormat,
    /// Short for --output-format json
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
    /// Report only these rules: codes such as K05, or their letter
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = rule_code)]
    pub(crate) select: Vec<String>,
    /// Do not report these rules
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = rule_code)]
    pub(crate) ignore: Vec<String>,
    /// Check again whenever a file changes, until Ctrl-C
    #[arg(long, conflicts_with_all = ["fix", "diff"])]
    pub(crate) watch: bool,
    /// Model (catalogue name, directory, config.json or Hugging Face ID), for its hidden sizes and how it is stored
    #[arg(long, value_name = "MODEL", conflicts_with = "hidden_size")]
    pub(crate) model: Option<String>,
    /// The checkpoint that the run resumes: does it fit?
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Apply the fixes that keep what the run does, and tell what remains
    #[arg(long)]
    pub(crate) fix: bool,
    /// Show what the fixes would change, and write nothing
    #[arg(long, conflicts_with_all = ["fix", "output_format", "json"])]
    pub(crate) diff: bool,
    /// With --fix or --diff: also the fixes that guess at what was meant
    #[arg(long)]
    pub(crate) unsafe_fixes: bool,
    #[command(flatten)]
    pub(crate) script: ScriptArguments,
}

/// How results are written.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Findings with their place in the file, why they matter and what to do
    #[default]
    Human,
    /// One line per finding
    Concise,
    /// One JSON array with everything about each file
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub workflows
    Github,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Human => Self::Human,
            OutputFormat::Concise => Self::Concise,
            OutputFormat::Json => Self::Json,
            OutputFormat::Sarif => Self::Sarif,
            OutputFormat::Github => Self::Github,
        }
    }
}

/// Files checked before their results are written.
const CHUNK: usize = 512;
/// Fewer files than this are not worth waking other threads for.
const WORTH_THREADS: usize = 16;

/// Checks everything and says what was found.
pub(crate) fn run(
    command: &CheckCommand,
    global: &GlobalOptions,
    language: Language,
    project: Result<Found, Broken>,
) -> ExitStatus {
    let format = if command.json { OutputFormat::Json } else { command.output_format };
    let layout = layout(format.into(), global, language);
    let mut output = Output::new(layout.color);
    let found = match project {
        Ok(found) => found,
        Err(broken) => {
            let Broken { name, text, problems } = &broken;
            output.say(&settings::problems(name, text, problems, &layout));
            return ExitStatus::Failure;
        }
    };
    let project = &found.project;
    let wanted =
        command.reader.deepspeed_version.as_deref().or(project.deepspeed_version.as_deref());
    let (version, version_source) = match engine_version::choose(wanted) {
        Ok(chosen) => chosen,
        Err(error) => {
            output.say(&talk::unknown_version(&error, language));
            return ExitStatus::Failure;
        }
    };
    let (checkpoint, model) = match surroundings(command, language) {
        Ok(known) => known,
        Err(words) => {
            output.say(&words);
            return ExitStatus::Failure;
        }
    };
    let judging = Judging {
        world_size: command.reader.world_size.or(project.world_size.and_then(NonZeroUsize::new)),
        front_end: command.reader.front_end.or(project.front_end),
        select: one_or_other(&command.select, &project.select),
        ignore: one_or_other(&command.ignore, &project.ignore),
        script: command.script.clone(),
    };
    let mut settings = match judging.settings(version) {
        Ok(settings) => settings,
        Err(problem) => {
            output.say(&problem::judging(&problem, language));
            return ExitStatus::Failure;
        }
    };
    settings.script.checkpoint = checkpoint;
    settings.script.output_stored_apart = model.as_ref().map(stores_output_apart);
    let hidden = model.as_ref().and_then(|model| model.dimensions()).map(|sizes| sizes.hidden_size);
    settings.model = settings.model.or(hidden.map(ModelFacts::with_hidden_size));
    let talks = layout.format == Format::Human && !global.quiet;
    if talks && let Some(note) = talk::version_note(version, &version_source, language) {
        output.say(&note);
    }
    let pass = |output: Output| {
        let mut session = Session {
            layout,
            settings: settings.clone(),
            mode: mode(command),
            found: &found,
            output,
            summary: Summary::default(),
            has_written: false,
            has_failed: false,
            progress: Progress::new(global.quiet, language),
        };
        session.check_all(files::collect(&command.paths, command.job));
        session.finish(talks)
    };
    if !command.watch {
        return pass(output);
    }
    drop(output);
    rechecking::run(&command.paths, || {
        let mut output = Output::new(layout.color);
        if layout.color {
            output.result(rechecking::CLEAR);
        }
        pass(output);
        if talks {
            Output::new(layout.color).say(talk::watching(language));
        }
    })
    .unwrap_or_else(|error| {
        Output::new(layout.color).say(&talk::cannot_watch(&error.to_string(), language));
        ExitStatus::Failure
    })
}

struct Session<'a> {
    layout: Layout,
    settings: Settings,
    mode: Mode,
    found: &'a Found,
    output: Output,
    summary: Summary,
    has_written: bool,
    has_failed: bool,
    progress: Progress,
}

/// What became of an input: its results in their final form, and what they count.
type Checked = Result<(String, Summary), (String, InputProblem)>;

impl Session<'_> {
    fn check_all(&mut self, mut inputs: impl Iterator<Item = Collected>) {
        if self.is_telling() {
            let opening = self.layout.opening();
            self.output.result(&opening);
        }
        loop {
            let chunk: Vec<Collected> = inputs.by_ref().take(CHUNK).collect();
            if chunk.is_empty() || self.output.is_closed() {
                break;
            }
            let (layout, settings, mode) = (&self.layout, &self.settings, self.mode);
            let found = self.found;
            let one = |input: Collected| {
                let input = input?;
                match input.path().map(|path| found.ignored_in(path)) {
                    Some(ignored) if !ignored.is_empty() => {
                        let mut settings = settings.clone();
                        settings.selection.ignore.extend(ignored);
                        check_one(&input, layout, &settings, mode)
                    }
                    _ => check_one(&input, layout, settings, mode),
                }
            };
            // Several scripts may point to one config, which is mended once.
            let in_turn = chunk.len() < WORTH_THREADS || self.mode != Mode::Tell;
            let results: Vec<Checked> = if in_turn {
                chunk.into_iter().map(one).collect()
            } else {
                chunk.into_par_iter().map(one).collect()
            };
            for result in results {
                self.write(result);
            }
            self.progress.done(self.summary.files);
        }
    }

    fn write(&mut self, result: Checked) {
        match result {
            Ok((text, summary)) => {
                self.summary.add(&summary);
                if text.is_empty() {
                    return;
                }
                if self.has_written {
                    self.output.result(self.layout.separator());
                }
                self.has_written = true;
                self.output.result(&text);
            }
            Err((name, problem)) => {
                self.has_failed = true;
                self.output.say(&problem.words(&name, self.layout.language));
            }
        }
    }

    /// Whether findings are shown, rather than what fixes would change.
    fn is_telling(&self) -> bool {
        !matches!(self.mode, Mode::Diff { .. })
    }

    fn finish(mut self, talks: bool) -> ExitStatus {
        self.progress.finish();
        if self.is_telling() {
            let closing = self.layout.closing(&self.summary);
            self.output.result(&closing);
        }
        self.output.flush();
        if talks && !self.is_telling() {
            self.output.say(&talk::would_mend(&self.summary, self.layout.language));
        }
        if talks && self.settings.world_size.is_none() && self.summary.without_world_size > 0 {
            self.output.say(talk::world_size_note(self.layout.language));
        }
        if self.has_failed {
            ExitStatus::Failure
        } else if !self.is_telling() {
            if self.summary.mended > 0 { ExitStatus::Findings } else { ExitStatus::Clean }
        } else if self.summary.has_findings() {
            ExitStatus::Findings
        } else {
            ExitStatus::Clean
        }
    }
}

/// The checkpoint and the model that the user names.
fn surroundings(
    command: &CheckCommand,
    language: Language,
) -> Result<(Option<Checkpoint>, Option<Model>), String> {
    let model = match &command.model {
        Some(name) => Some(model_source::open(name, language)?),
        None => None,
    };
    let checkpoint = match &command.checkpoint {
        Some(path) => match checkpoint::open(path) {
            Ok(Some(found)) => Some(found),
            Ok(None) => return Err(talk::no_checkpoint(path, language)),
            Err(error) => return Err(talk::cannot_read(path, error, language)),
        },
        None => None,
    };
    Ok((checkpoint, model))
}

/// Whether the class ties the output to the embedding and the checkpoint stores it apart.
fn stores_output_apart(model: &Model) -> bool {
    matches!(model.family(), Some(Family::T5 | Family::Mt5)) && !model.has_tied_output()
}

/// What the command line says, else what the project says.
fn one_or_other(said: &[String], settled: &[String]) -> Vec<String> {
    if said.is_empty() { settled.to_vec() } else { said.to_vec() }
}

/// What is asked for.
fn mode(command: &CheckCommand) -> Mode {
    let guesses = command.unsafe_fixes;
    match (command.fix, command.diff) {
        (_, true) => Mode::Diff { guesses },
        (true, false) => Mode::Fix { guesses },
        (false, false) => Mode::Tell,
    }
}

fn check_one(input: &Input, layout: &Layout, settings: &Settings, mode: Mode) -> Checked {
    let name = input.name();
    let bytes = match input.read() {
        Ok(bytes) => bytes,
        Err(problem) => return Err((name, problem)),
    };
    let text = String::from_utf8_lossy(&bytes);
    let kind = FileKind::of(&name, &text);
    if let Some((path, script)) = input.path().zip(script(input, kind, &text)) {
        let outside = Outside::default();
        return job::check_script(input, (path, &script), layout, settings, &outside, mode)
            .map_err(|problem| (name, problem));
    }
    if input.path().is_some() && !is_config(input, &name, &text, kind) {
        return match input.is_named() {
            true => Err((name, InputProblem::NotAConfig(kind_words(kind)))),
            false => Ok((String::new(), Summary { others: 1, ..Summary::default() })),
        };
    }
    drop(text);
    let judged = mend::judge(bytes, input.path(), &name, slice::from_ref(settings), mode);
    let judged = match judged {
        Ok(judged) => judged,
        Err(problem) => return Err((name, problem)),
    };
    let mut summary = Summary::default();
    summary.count(&judged.report);
    if let Mode::Diff { .. } = mode {
        return Ok((judged.diff.unwrap_or_default(), summary));
    }
    let file = FileResult {
        name: &name,
        bytes: &judged.bytes,
        report: &judged.report,
        is_named: input.is_named(),
        headline: None,
    };
    Ok((layout.file(&file), summary))
}

/// The launch script that an input is, or the command that starts training with it.
fn script(input: &Input, kind: FileKind, text: &str) -> Option<String> {
    if input.path().is_some_and(files::is_script) {
        return Some(text.to_owned());
    }
    kind.command(&input.name()).filter(|_| input.is_named())
}

/// Whether a file is judged as a DeepSpeed config: it says so by its name or its keys, or it may be one that cannot
/// be read. What belongs to a model never is.
fn is_config(input: &Input, name: &str, text: &str, kind: FileKind) -> bool {
    match kind {
        FileKind::DeepSpeedConfig => true,
        FileKind::ModelConfig | FileKind::BesideModel => false,
        _ => {
            has_name_of_config(name)
                || may_be_config(text)
                || (input.is_named() && has_only_known_keys(name, text))
        }
    }
}

/// JSON, readable or not, in which nothing is foreign to DeepSpeed.
fn has_only_known_keys(name: &str, text: &str) -> bool {
    let ending = Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default();
    if matches!(ending, "yaml" | "yml" | "toml" | "md" | "txt") {
        return text.trim_start().starts_with('{');
    }
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(serde_json::Value::Object(members)) => {
            let schema = EngineVersion::NEWEST.schema();
            let is_known = |key: &String| {
                schema.keys.iter().any(|known| known.path.split('.').next() == Some(key.as_str()))
            };
            members.keys().all(is_known)
        }
        Ok(_) => false,
        Err(_) => true,
    }
}
