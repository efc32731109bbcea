//! `zeropilot explain`: from what a person asks to explanations and an exit status.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use zeropilot_ask::memory::WrittenConfig;
use zeropilot_ask::{
    Footprint, Judging, Machines, MemoryRequest, Provenance, ScriptArguments, Training, footprint,
    key_variants, tokens,
};
use zeropilot_config::keys::Found;
use zeropilot_job::FileKind;
use zeropilot_job::local::{OpenedJob, open};
use zeropilot_lint::job::settings;
use zeropilot_lint::{Explanation, Settings, Severity, Verdict, differences, explain};
use zeropilot_text::Language;
use zeropilot_view::explain::{
    Asked, Topic, in_version, looks_like_a_path, no_file_to_cost, two_files_needed, unknown,
};
use zeropilot_view::job as words;
use zeropilot_view::talk::{self, VersionSource};
use zeropilot_view::{FileResult, Format, Layout, Summary, problem};

use crate::cluster_source;
use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::files::Input;
use crate::layout::layout;
use crate::model_source;
use crate::options::{FormatOptions, GlobalOptions, ReaderOptions};
use crate::output::Output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot explain
  zeropilot explain stage3_max_live_parameters
  zeropilot explain zero3 offload loss-scale
  zeropilot explain ds_config.json --world-size 8
  zeropilot explain train.sh
  zeropilot explain diff zero2.json zero3.json

Exit codes: 0 explained, 1 a file has errors or warnings, 2 something could not be explained";

/// The arguments of `zeropilot explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainCommand {
    /// Keys, concepts, config files (`-` for standard input) or training jobs, or `diff A B` for two files; if omitted, list everything that zeropilot explains
    #[arg(value_name = "TOPIC")]
    pub(crate) topics: Vec<String>,
    /// Select a run by its number if the job starts several (the first is 1)
    #[arg(long, value_name = "N")]
    pub(crate) launch: Option<usize>,
    #[command(flatten)]
    pub(crate) reader: ReaderOptions,
    /// Estimate costs for this model: built-in name, directory, config.json or Hugging Face ID
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Set the GPUs: `8xA100-80G`, `5x44GB`, `4x8xH100`; if omitted, the GPUs of this machine
    #[arg(long, value_name = "GPUS", requires = "model")]
    pub(crate) gpus: Option<String>,
    /// Set the tokens per sequence, such as `4096` or `128k` (k = 1024) [default: 2048]
    #[arg(long, value_name = "N", requires = "model", value_parser = tokens, visible_alias = "max-seq-length", alias = "max-length")]
    pub(crate) seq_len: Option<u64>,
    /// Recompute every layer in the backward pass (gradient checkpointing)
    #[arg(long, requires = "model", visible_alias = "gradient-checkpointing")]
    pub(crate) grad_checkpointing: bool,
    #[command(flatten)]
    pub(crate) format: FormatOptions,
    #[command(flatten)]
    pub(crate) script: ScriptArguments,
}

/// Explains everything that was asked.
pub(crate) fn run(
    command: &ExplainCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let layout = layout(command.format.format(), global, language);
    let mut output = Output::new(layout.color);
    let (version, version_source) =
        match engine_version::choose(command.reader.deepspeed_version.as_deref()) {
            Ok(chosen) => chosen,
            Err(error) => {
                output.say(&talk::unknown_version(&error, language));
                return ExitStatus::Failure;
            }
        };
    let judging = Judging {
        world_size: command.reader.world_size.or_else(|| ranks(command)),
        front_end: command.reader.front_end,
        script: command.script.clone(),
        ..Judging::default()
    };
    let settings = match judging.settings(version) {
        Ok(settings) => settings,
        Err(problem) => {
            output.say(&problem::judging(&problem, language));
            return ExitStatus::Failure;
        }
    };
    let session = Session {
        layout,
        settings,
        version_source,
        talks: layout.format == Format::Human && !global.quiet,
        output,
        topics: 0,
        summary: Summary::default(),
        has_failed: false,
        has_read_files: false,
        launch: command.launch,
        files: Vec::new(),
    };
    session.run(command)
}

/// The ranks of a run on the GPUs that files are costed for.
fn ranks(command: &ExplainCommand) -> Option<NonZeroUsize> {
    let machines = Machines::with_gpus(command.gpus.clone()?);
    NonZeroUsize::new(usize::try_from(machines.cluster().ok()?.world_size()).ok()?)
}

/// Whether a path is a job, rather than a config itself.
fn leads_to_config(path: &Path) -> bool {
    let kind = |text: String| FileKind::of(&path.to_string_lossy(), &text);
    let is_such = || fs::read_to_string(path).is_ok_and(|text| kind(text).leads_to_config());
    path.is_dir() || (path.is_file() && is_such())
}

struct Session {
    layout: Layout,
    settings: Settings,
    version_source: VersionSource,
    /// Whether notes are printed in addition to the results.
    talks: bool,
    output: Output,
    /// Number of topics printed so far.
    topics: usize,
    summary: Summary,
    has_failed: bool,
    has_read_files: bool,
    /// The selected run, if a job starts several runs.
    launch: Option<usize>,
    /// Config files that were read, and the variants of keys.
    files: Vec<WrittenConfig>,
}

/// What files are costed with.
struct Costing<'a> {
    command: &'a ExplainCommand,
    model: &'a str,
    layout: Layout,
}

impl Costing<'_> {
    fn cost(&self, file: &WrittenConfig) -> Result<Footprint, String> {
        let language = self.layout.language;
        let machines = Machines { gpus: self.command.gpus.clone(), ..Machines::default() };
        let request = MemoryRequest {
            machines: cluster_source::or_here(machines, language)?,
            config: Some(file.clone()),
            training: Training {
                seq_len: self.command.seq_len,
                grad_checkpointing: Some(self.command.grad_checkpointing),
                ..Training::default()
            },
            ..MemoryRequest::default()
        };
        let model = model_source::open(self.model, language)?;
        footprint(self.model, model, &request)
            .map_err(|wrong| problem::memory(&wrong, &self.layout))
    }
}

/// A file that was read and explained.
struct Explained {
    name: String,
    bytes: Vec<u8>,
    explanation: Explanation,
}

impl Session {
    fn run(mut self, command: &ExplainCommand) -> ExitStatus {
        let topics = command.topics.as_slice();
        if self.layout.format == Format::Json {
            self.output.result("[");
        }
        match topics {
            [] => self.write(&Topic::Index),
            [first, left, right] if first == "diff" => self.compare(left, right),
            [first, ..] if first == "diff" => {
                self.fail(two_files_needed(self.layout.language));
            }
            topics => topics.iter().for_each(|topic| self.topic(topic)),
        }
        if let Some(model) = &command.model {
            self.costs(command, model);
        }
        self.finish()
    }

    fn topic(&mut self, asked: &str) {
        if looks_like_a_path(asked) {
            return self.file(asked);
        }
        match Asked::find(asked) {
            Asked::Concept(concept) => self.write(&Topic::Concept(concept)),
            Asked::Key(found) => self.key(&found),
            Asked::Unknown if Path::new(asked).exists() => self.file(asked),
            Asked::Unknown => self.fail(&unknown(asked, self.layout.language)),
        }
    }

    fn key(&mut self, found: &Found) {
        self.write(&Topic::Key(found));
        let Found::Key(path) = found else { return };
        self.files.extend(key_variants(path, self.settings.version).into_iter().flatten());
        if self.layout.format == Format::Human
            && matches!(self.version_source, VersionSource::Given(_))
        {
            let said = in_version(path, self.settings.version, self.layout.language);
            self.output.result(&format!("\n  {said}\n"));
        }
    }

    fn file(&mut self, name: &str) {
        if leads_to_config(Path::new(name)) {
            return self.job(name);
        }
        let Some(file) = self.read(name) else { return };
        self.write(&Topic::File {
            name: &file.name,
            bytes: &file.bytes,
            explained: &file.explanation,
            job: None,
        });
    }

    /// A job, through the config it uses.
    fn job(&mut self, name: &str) {
        let language = self.layout.language;
        self.note_version();
        let OpenedJob { job, launch, .. } = match open(Path::new(name), self.launch) {
            Ok(opened) => opened,
            Err(problem) => return self.fail(&words::problem(name, &problem, language)),
        };
        let config = match job.config.as_ref().map(WrittenConfig::of) {
            Some(Ok(config)) => config,
            Some(Err(problem)) => {
                return self.fail(&words::nothing_to_explain(name, Some(&problem), language));
            }
            None => return self.fail(&words::nothing_to_explain(name, None, language)),
        };
        let settings =
            launch.map_or(self.settings.clone(), |launch| settings(&launch, &self.settings));
        let explained = explain(&config.bytes, &settings);
        self.summary.count(&explained.report);
        let WrittenConfig { name, bytes } = &config;
        let job = Some(&Provenance::of_job(&job));
        self.write(&Topic::File { name, bytes, explained: &explained, job });
        self.files.push(config);
    }

    fn compare(&mut self, left: &str, right: &str) {
        let (left, right) = (self.read(left), self.read(right));
        let (Some(left), Some(right)) = (left, right) else { return };
        match differences(&left.explanation, &right.explanation) {
            Some(found) => {
                let names = [left.name.as_str(), right.name.as_str()];
                self.write(&Topic::Differences { names, found: &found });
            }
            None => [left, right].iter().for_each(|file| self.refusal(file)),
        }
    }

    /// What the files that were read cost with a model.
    fn costs(&mut self, command: &ExplainCommand, model: &str) {
        let files = std::mem::take(&mut self.files);
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        let asked = Costing { command, model, layout: self.layout };
        let costs: Result<Vec<Footprint>, String> =
            files.iter().map(|file| asked.cost(file)).collect();
        match costs {
            Ok(costs) if costs.is_empty() => self.fail(no_file_to_cost(self.layout.language)),
            Ok(costs) => self.write(&Topic::Costs { model, names: &names, costs: &costs }),
            Err(problem) => self.fail(&problem),
        }
    }

    /// Why a file cannot be compared: the findings that `check` would show.
    fn refusal(&mut self, file: &Explained) {
        let Explained { name, bytes, explanation } = file;
        if explanation.report.verdict == Verdict::Accept {
            return;
        }
        if self.layout.format == Format::Json {
            return self.write(&Topic::File { name, bytes, explained: explanation, job: None });
        }
        let file =
            FileResult { name, bytes, report: &explanation.report, is_named: true, headline: None };
        let text = self.layout.file(&file);
        self.output.result(&text);
    }

    fn read(&mut self, name: &str) -> Option<Explained> {
        let input = match name {
            "-" => Input::Stdin,
            path => Input::Named(PathBuf::from(path)),
        };
        self.note_version();
        let name = input.name();
        match input.read() {
            Ok(bytes) => {
                let explanation = explain(&bytes, &self.settings);
                self.summary.count(&explanation.report);
                self.files.push(WrittenConfig { name: name.clone(), bytes: bytes.clone() });
                Some(Explained { name, bytes, explanation })
            }
            Err(problem) => {
                self.fail(&problem.words(&name, self.layout.language));
                None
            }
        }
    }

    /// Says once which engine files are explained for.
    fn note_version(&mut self) {
        if self.talks && !self.has_read_files {
            let note = talk::version_note(
                self.settings.version,
                &self.version_source,
                self.layout.language,
            );
            if let Some(note) = note {
                self.output.say(&note);
            }
        }
        self.has_read_files = true;
    }

    fn write(&mut self, topic: &Topic<'_>) {
        if self.topics > 0 {
            let separator = if self.layout.format == Format::Json { ",\n" } else { "\n" };
            self.output.result(separator);
        }
        self.topics += 1;
        let text = self.layout.topic(topic);
        self.output.result(&text);
    }

    fn fail(&mut self, why: &str) {
        self.has_failed = true;
        self.output.say(why);
    }

    fn finish(mut self) -> ExitStatus {
        if self.layout.format == Format::Json {
            self.output.result("]\n");
        }
        self.output.flush();
        let needs_ranks = self.settings.world_size.is_none() && self.summary.without_world_size > 0;
        if self.talks && needs_ranks {
            self.output.say(talk::world_size_note(self.layout.language));
        }
        if self.has_failed {
            ExitStatus::Failure
        } else if self.summary.has_findings(Severity::Warning) {
            ExitStatus::Findings
        } else {
            ExitStatus::Clean
        }
    }
}
