//! `zeropilot check`: from arguments to results and an exit status.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use zeropilot_ask::{Judging, ScriptArguments, rule_code};
use zeropilot_config::front_end::ModelFacts;
use zeropilot_lint::project::FailOn;
use zeropilot_lint::{Checkpoint, Severity};
use zeropilot_model::{Family, Model};
use zeropilot_text::Language;
use zeropilot_view::settings;
use zeropilot_view::talk;
use zeropilot_view::{Format, problem};

use crate::adoption::Adoption;
use crate::checkpoint;
use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::files;
use crate::layout::layout;
use crate::manner::Manner;
use crate::mend::Mode;
use crate::model_source;
use crate::options::{GlobalOptions, ReaderOptions};
use crate::output::Output;
use crate::progress::Progress;
use crate::project::{Broken, Found};
use crate::rechecking;
use crate::session::Session;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot check ds_config.json --world-size 8
  zeropilot check configs/ --front-end hf-trainer --output-format concise
  zeropilot check zero3.json --per-device-train-batch-size 2 --bf16 --hidden-size 4096
  zeropilot check ds_config.json --diff --unsafe-fixes
  zeropilot check . --write-baseline zeropilot-baseline.json
  zeropilot check . --baseline zeropilot-baseline.json --fail-on error
  cat ds_config.json | zeropilot check - --lang zh

Exit codes: 0 nothing wrong, 1 errors or warnings found (see --fail-on; with --diff: fixes to apply), 2 could not check";

/// The arguments of `zeropilot check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckCommand {
    /// Config files, launch scripts, training scripts, framework YAML files, directories to search for .json and .hjson files, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Look for launch scripts in directories, and check the configs that they use
    #[arg(long)]
    pub(crate) job: bool,
    #[command(flatten)]
    pub(crate) reader: ReaderOptions,
    /// Set the output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: OutputFormat,
    /// Print JSON (short for --output-format json)
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
    /// Report only these rules: codes such as K05, or the letter of a group, such as K
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = rule_code)]
    pub(crate) select: Vec<String>,
    /// Do not report these rules
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = rule_code)]
    pub(crate) ignore: Vec<String>,
    /// Fail only on findings of this severity or higher: `error`, `warning`, `note`; `never` reports findings without failing [default: warning]
    #[arg(long, value_name = "SEVERITY", value_parser = fail_on, conflicts_with = "diff")]
    pub(crate) fail_on: Option<FailOn>,
    /// Omit the findings in this file, written by --write-baseline
    #[arg(long, value_name = "FILE", conflicts_with_all = ["diff", "write_baseline"])]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the findings to this file instead of reporting them; --baseline omits them from later checks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fix", "diff", "watch", "output_format", "json"])]
    pub(crate) write_baseline: Option<PathBuf>,
    /// Check again whenever a file changes, until Ctrl-C
    #[arg(long, conflicts_with_all = ["fix", "diff"])]
    pub(crate) watch: bool,
    /// Read the hidden size and the weight layout from this model: built-in name, directory, config.json or Hugging Face ID
    #[arg(long, value_name = "MODEL", conflicts_with = "hidden_size")]
    pub(crate) model: Option<String>,
    /// Check that this run can resume from this checkpoint
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Apply the fixes that do not change how the run trains, and report the remaining findings
    #[arg(long)]
    pub(crate) fix: bool,
    /// Show the changes that fixes would make, without writing files
    #[arg(long, conflicts_with_all = ["fix", "output_format", "json"])]
    pub(crate) diff: bool,
    /// Include unsafe fixes, which guess the intended value; use with --fix or --diff
    #[arg(long)]
    pub(crate) unsafe_fixes: bool,
    #[command(flatten)]
    pub(crate) script: ScriptArguments,
}

impl CheckCommand {
    /// Takes out what a project settles for some files and the command line says for all.
    fn win_over(&self, found: &mut Found) {
        for (_, settings) in &mut found.project.paths {
            let reader = &self.reader;
            settings.deepspeed_version.take_if(|_| reader.deepspeed_version.is_some());
            settings.front_end.take_if(|_| reader.front_end.is_some());
            settings.world_size.take_if(|_| reader.world_size.is_some());
        }
    }
}

fn fail_on(text: &str) -> Result<FailOn, String> {
    let known = FailOn::ALL.into_iter().find(|(name, _)| *name == text);
    known.map(|(_, found)| found).ok_or_else(|| "error, warning, note or never".to_owned())
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
    /// Annotations for GitHub workflows
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
    let mut found = match project {
        Ok(found) => found,
        Err(broken) => {
            let Broken { name, text, problems } = &broken;
            output.say(&settings::problems(name, text, problems, &layout));
            return ExitStatus::Failure;
        }
    };
    command.win_over(&mut found);
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
        ignore: [one_or_other(&command.ignore, &project.ignore), project.off_everywhere()].concat(),
        script: command.script.clone(),
    };
    let mut settings = match judging.settings(version) {
        Ok(settings) => settings,
        Err(problem) => {
            output.say(&problem::judging(&problem, language));
            return ExitStatus::Failure;
        }
    };
    settings.packages = engine_version::packages(wanted);
    settings.script.checkpoint = checkpoint;
    settings.script.output_stored_apart = model.as_ref().map(stores_output_apart);
    let hidden = model.as_ref().and_then(|model| model.dimensions()).map(|sizes| sizes.hidden_size);
    settings.model = settings.model.or(hidden.map(ModelFacts::with_hidden_size));
    let talks = layout.format == Format::Human && !global.quiet;
    if talks && let Some(note) = talk::version_note(version, &version_source, language) {
        output.say(&note);
    }
    let read = command.baseline.clone();
    let settled = found.project.baseline.as_ref().map(|name| found.directory.join(name));
    let adoption = match Adoption::open(read.or(settled), command.write_baseline.clone(), language)
    {
        Ok(adoption) => adoption,
        Err(words) => {
            output.say(&words);
            return ExitStatus::Failure;
        }
    };
    let fail_on = command.fail_on.or(found.project.fail_on);
    let manner = Manner {
        layout,
        settings,
        mode: mode(command),
        found: &found,
        adoption,
        fail_on: fail_on.unwrap_or(FailOn::Severity(Severity::Warning)),
    };
    let pass = |output: Output| {
        let progress = Progress::new(global.quiet, language);
        let mut session = Session::new(&manner, output, progress);
        session.check_all(files::collect(&command.paths, command.job, &found));
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
