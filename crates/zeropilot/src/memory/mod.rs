//! `zeropilot memory`: from arguments to an answer about GPUs and hosts.

pub(crate) mod arguments;
mod config;

use std::path::Path;

use zeropilot_cluster::Cluster;
use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{Language, Settings, check};
use zeropilot_model::Model;
use zeropilot_model::lora::Lora;
use zeropilot_model::quantization::ScaleStorage;
use zeropilot_step::head::LossHead;
use zeropilot_step::lower::{Method, Recipe};
use zeropilot_step::memory::{Answer, Counting, Question, reliefs, timeline};
use zeropilot_step::tape::AttentionForm;
use zeropilot_step::zero::{BaseOptimizer, Loading};
use zeropilot_units::ElementSize;
use zeropilot_view::memory::{self, Column, Fit, MemoryReport};
use zeropilot_view::{FileResult, Format, Layout, gpus, talk};

use self::arguments::{
    AttentionName, LoadName, MemoryCommand, MethodName, Offload, OptimizerName, Training,
};
use crate::cli::GlobalOptions;
use crate::cluster_source;
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::model_source;
use crate::output::Output;

/// Columns of a timeline where there is no terminal to ask.
const WIDTH: usize = 100;
/// Stretches of a picture.
const STRETCHES: usize = 400;

/// Answers the question and says whether it fits.
pub(crate) fn run(
    command: &MemoryCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let format = if command.json { Format::Json } else { Format::Human };
    let layout = layout(format, global, language);
    let mut output = Output::new(layout.color);
    let mut session = Session { command, layout, output: &mut output, quiet: global.quiet };
    match session.answer() {
        Ok(fit) => {
            output.flush();
            match fit {
                Some(fit) if !fit.is_expected() => ExitStatus::Findings,
                _ => ExitStatus::Clean,
            }
        }
        Err(problem) => {
            output.say(&problem);
            ExitStatus::Failure
        }
    }
}

struct Session<'a> {
    command: &'a MemoryCommand,
    layout: Layout,
    output: &'a mut Output,
    quiet: bool,
}

impl Session<'_> {
    fn answer(&mut self) -> Result<Option<Fit>, String> {
        let language = self.layout.language;
        let cluster = self.cluster()?;
        let model = model_source::open(&self.command.model, language)?;
        self.check_rank(&cluster)?;
        let recipe = recipe(&self.command.training);
        if self.command.compare {
            return self.compare(&model, &recipe, &cluster);
        }
        let (resolved, micro_batch) = self.configs().config(&model, &cluster)?;
        let zero = resolved.zero();
        let question = Question {
            model: &model,
            recipe: &recipe,
            resolved: &resolved,
            zero: &zero,
            micro_batch,
            cluster: &cluster,
            rank: self.command.rank,
        };
        let lower = |error| talk::lower_error(&error, language);
        let answer = Answer::to(&question).map_err(lower)?;
        let reliefs = reliefs(&question, &answer).map_err(lower)?;
        let report = MemoryReport {
            name: &self.command.model,
            question,
            answer: &answer,
            reliefs: &reliefs,
        };
        self.write(&report)?;
        Ok(cluster.capacity().map(|capacity| memory::fit(answer.device(), capacity.bytes)))
    }

    fn write(&mut self, report: &MemoryReport<'_>) -> Result<(), String> {
        let lower = |error| talk::lower_error(&error, self.layout.language);
        if self.command.json {
            let as_measured = report.question.tensors(report.answer.rank).map_err(lower)?;
            self.output.result(&format!("{:#}\n", memory::json(report, &as_measured)));
        } else {
            self.output.result(&memory::human(report, &self.layout));
        }
        let stretches = |count: usize| {
            let workload = report.question.workload().map_err(lower)?;
            let lowered = workload.lowered();
            let (question, rank) = (&report.question, report.answer.rank);
            let world = question.cluster.world_size();
            let rank = lowered.rank(question.resolved, question.zero, world, rank);
            Ok::<_, String>(timeline(lowered, &rank, Counting::default(), count))
        };
        if self.command.timeline && !self.command.json {
            let columns = self.layout.width.unwrap_or(WIDTH).clamp(40, 160) - 14;
            let capacity = report.question.cluster.capacity();
            let limit = capacity.map(|capacity| capacity.bytes.expected());
            let drawn = memory::timeline(&stretches(columns)?, limit, &self.layout);
            self.output.result(&format!("\n{drawn}"));
        }
        if let Some(path) = &self.command.svg {
            let picture = memory::svg(report, &stretches(STRETCHES)?, self.layout.language);
            std::fs::write(path, picture)
                .map_err(|error| talk::cannot_write(path, &error, self.layout.language))?;
        }
        Ok(())
    }

    fn cluster(&mut self) -> Result<Cluster, String> {
        let language = self.layout.language;
        let cluster = cluster_source::open(&self.command.gpus, self.command.host_ram, language)?;
        if !self.quiet && !self.command.json {
            let capacity = cluster.capacity();
            let capacity_note =
                capacity.and_then(|known| gpus::capacity_note(&cluster.gpus, &known, language));
            for note in [capacity_note, gpus::layout_note(&cluster.gpus, language)] {
                note.into_iter().for_each(|note| self.output.say(&note));
            }
        }
        Ok(cluster)
    }

    fn check_rank(&self, cluster: &Cluster) -> Result<(), String> {
        match self.command.rank {
            Some(rank) if rank >= cluster.world_size() => {
                Err(talk::no_such_rank(rank, cluster.world_size(), self.layout.language))
            }
            _ => Ok(()),
        }
    }

    fn configs(&self) -> Configs<'_> {
        Configs { command: self.command, layout: self.layout }
    }

    fn compare(
        &mut self,
        model: &Model,
        recipe: &Recipe,
        cluster: &Cluster,
    ) -> Result<Option<Fit>, String> {
        let mut columns = Vec::new();
        for (stage, offload) in WAYS {
            let text = config::from_flags(self.command, stage, offload);
            let (resolved, micro_batch) =
                self.configs().resolve("--compare", text.as_bytes(), model, cluster)?;
            let zero = resolved.zero();
            let question = Question {
                model,
                recipe,
                resolved: &resolved,
                zero: &zero,
                micro_batch,
                cluster,
                rank: self.command.rank,
            };
            let answer = Answer::to(&question)
                .map_err(|error| talk::lower_error(&error, self.layout.language))?;
            columns.push(Column {
                stage,
                offload_optimizer: offload != Offload::None,
                offload_param: offload == Offload::All,
                answer,
            });
        }
        let capacity = cluster.capacity().map(|capacity| capacity.bytes);
        if self.command.json {
            self.output.result(&format!("{:#}\n", memory::compare_json(&columns, capacity)));
        } else {
            self.output.result(&memory::compare(&columns, capacity, &self.layout));
        }
        let fits = columns.iter().filter_map(|column| {
            capacity.map(|capacity| memory::fit(column.answer.device(), capacity))
        });
        // Something to choose is enough.
        Ok(fits.max_by_key(|fit| fit.is_expected()))
    }
}

/// Where configs come from: files or flags.
pub(crate) struct Configs<'a> {
    pub(crate) command: &'a MemoryCommand,
    pub(crate) layout: Layout,
}

impl Configs<'_> {
    /// The resolved config and the micro batch.
    pub(crate) fn config(
        &self,
        model: &Model,
        cluster: &Cluster,
    ) -> Result<(ResolvedConfig, u64), String> {
        let (name, bytes) = match &self.command.config {
            Some(path) => (path.display().to_string(), self.read(path)?),
            None => {
                let offload = self.command.offload.unwrap_or(Offload::None);
                let text = config::from_flags(self.command, self.command.stage, offload);
                ("--stage".to_owned(), text.into_bytes())
            }
        };
        self.resolve(&name, &bytes, model, cluster)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| talk::cannot_read(path, &error, self.layout.language))
    }

    pub(crate) fn resolve(
        &self,
        name: &str,
        bytes: &[u8],
        model: &Model,
        cluster: &Cluster,
    ) -> Result<(ResolvedConfig, u64), String> {
        let world = cluster.world_size();
        let hidden = model.dimensions().map_or(1, |dimensions| dimensions.hidden_size);
        let resolved = config::resolved(bytes, EngineVersion::NEWEST, world, hidden, self.command);
        let solved = resolved.and_then(|resolved| {
            let micro = resolved.batch()?.micro;
            Some((resolved, self.command.training.micro_batch.unwrap_or(micro)))
        });
        solved.ok_or_else(|| self.refused(name, bytes, world))
    }

    /// Why a config was not taken, as `check` says it.
    fn refused(&self, name: &str, bytes: &[u8], world: u64) -> String {
        let settings = Settings { world_size: usize::try_from(world).ok(), ..Settings::default() };
        let report = check(bytes, &settings);
        let layout = Layout { format: Format::Human, ..self.layout };
        layout.file(&FileResult { name, bytes, report: &report, is_named: true, headline: None })
    }
}

/// What is compared.
const WAYS: [(u8, Offload); 7] = [
    (0, Offload::None),
    (1, Offload::None),
    (2, Offload::None),
    (2, Offload::Optimizer),
    (3, Offload::None),
    (3, Offload::Optimizer),
    (3, Offload::All),
];

/// How the model is trained, as the arguments say.
pub(crate) fn recipe(training: &Training) -> Recipe {
    let lora = || {
        let lora = Lora::new(training.lora_rank);
        if training.lora_targets.is_empty() {
            return lora.on_all_linear();
        }
        let names: Vec<&str> = training.lora_targets.iter().map(String::as_str).collect();
        lora.on(&names)
    };
    Recipe {
        method: match training.method {
            MethodName::Full => Method::Full,
            MethodName::Lora => Method::Lora(lora()),
            MethodName::Qlora => {
                Method::QLora { lora: lora(), scales: ScaleStorage::DoubleQuantized }
            }
        },
        target: training.target_len,
        checkpointing: training.grad_checkpointing,
        attention: match training.attention {
            AttentionName::Auto => AttentionForm::AsModel,
            AttentionName::Eager => AttentionForm::Eager,
            AttentionName::Sdpa | AttentionName::Flash => AttentionForm::Flash,
        },
        loss: if training.fused_loss { LossHead::Fused } else { LossHead::Model },
        loading: training.load.map(|load| match load {
            LoadName::Partitioned => Loading::Partitioned,
            LoadName::Whole => Loading::Whole(ElementSize::Two),
        }),
        optimizer: match training.optimizer {
            // Fused AdamW is what the Trainer takes by itself.
            OptimizerName::Adamw => BaseOptimizer::FusedAdam,
            OptimizerName::Adamw8bit => BaseOptimizer::EightBitAdam,
            OptimizerName::Adafactor => BaseOptimizer::Adafactor,
            OptimizerName::Lion => BaseOptimizer::Lion,
            OptimizerName::Sgd => BaseOptimizer::Sgd,
        },
        ..Recipe::full(training.seq_len)
    }
}
