//! `zeropilot plan`: from a model and GPUs to a config that fits.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use clap::Args;
use zeropilot_cluster::Cluster;
use zeropilot_lint::Language;
use zeropilot_plan::{
    DynamicLossScale, Fitting, Job, Launcher, LossScale, Machines, Objective, Precision, Target,
    Task, plan,
};
use zeropilot_units::Bytes;
use zeropilot_view::plan::{self as words, PlanReport};
use zeropilot_view::simulate::bad_network;
use zeropilot_view::{Format, Layout};

use crate::cli::GlobalOptions;
use crate::cluster_source;
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::memory::arguments::{AttentionName, MethodName, OptimizerName, PrecisionName, Training};
use crate::memory::recipe;
use crate::model_source;
use crate::new::file;
use crate::output::Output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot plan --model Qwen/Qwen3-8B --gpus 5x44GB --seq-len 4096
  zeropilot plan --model llama-3.1-70b --gpus 8xA100-80G --host-ram 2TiB --global-batch 64
  zeropilot plan --model Qwen3-30B-A3B --gpus 5x44GB --method lora --for hf-trainer -o ds.json

Exit codes: 0 something fits, 1 nothing does, 2 the question could not be answered";

/// The arguments, as typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanCommand {
    /// The model: a name of the catalogue, a directory or config.json, or an id of the hub
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: String,
    /// The GPUs: `8xA100-80G`, `5x44GB`, `4x8xH100` (nodes × GPUs), `8`
    #[arg(long, value_name = "GPUS")]
    pub(crate) gpus: String,
    /// Memory of each host, such as `512GiB`
    #[arg(long, value_name = "SIZE")]
    pub(crate) host_ram: Option<Bytes>,
    /// The ports of a node to the others: `8xNDR`, `4xHDR`, `1x100GbE`; otherwise what is usual for the GPUs
    #[arg(long, value_name = "PORTS")]
    pub(crate) network: Option<String>,
    /// Samples per optimizer step over all GPUs, kept whatever is chosen
    #[arg(long, value_name = "N")]
    pub(crate) global_batch: Option<NonZeroU64>,
    /// The number format of the model
    #[arg(long, value_name = "FORMAT", default_value = "bf16")]
    pub(crate) precision: PrecisionName,
    /// Tokens of a sequence
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub(crate) seq_len: u64,
    /// What is trained
    #[arg(long, value_name = "METHOD", default_value = "full")]
    pub(crate) method: MethodName,
    /// Rank of the adapters
    #[arg(long, value_name = "R", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1 << 16))]
    pub(crate) lora_rank: u64,
    /// The form of attention
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub(crate) attention: AttentionName,
    /// Projection and cross entropy in one kernel (Liger): whether it is used, or may be
    #[arg(long, value_name = "WHETHER", default_value = "no", default_missing_value = "yes", num_args = 0..=1, require_equals = true)]
    pub(crate) fused_loss: FusedLoss,
    /// A directory on a local disk that states may be kept in
    #[arg(long, value_name = "DIR")]
    pub(crate) nvme_path: Option<String>,
    /// What the choice is best at: the time of a step, or free memory
    #[arg(long, value_name = "WHAT", default_value = "time")]
    pub(crate) objective: ObjectiveName,
    /// Who reads the config
    #[arg(long = "for", value_name = "PROGRAM", default_value = "deepspeed", value_parser = target_parser())]
    pub(crate) target: Target,
    /// Write the chosen config into this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long)]
    pub(crate) force: bool,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the best way is best at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ObjectiveName {
    /// The least time for a sequence.
    Time,
    /// The most free memory.
    Memory,
}

/// Whether the loss is fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FusedLoss {
    /// It is not.
    No,
    /// It is.
    Yes,
    /// Whichever is better.
    Either,
}

fn target_parser() -> impl clap::builder::TypedValueParser<Value = Target> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(Target::ALL.map(Target::name))
        .try_map(|name| name.parse::<Target>())
}

/// Plans and says so.
pub(crate) fn run(command: &PlanCommand, global: &GlobalOptions, language: Language) -> ExitStatus {
    let format = if command.json { Format::Json } else { Format::Human };
    let layout = layout(format, global, language);
    let mut output = Output::new(layout.color);
    match answer(command, &layout, &mut output) {
        Ok(true) => ExitStatus::Clean,
        Ok(false) => ExitStatus::Findings,
        Err(problem) => {
            output.say(&problem);
            ExitStatus::Failure
        }
    }
}

/// Whether something fits.
fn answer(command: &PlanCommand, layout: &Layout, output: &mut Output) -> Result<bool, String> {
    let language = layout.language;
    let mut cluster = cluster_source::open(&command.gpus, command.host_ram, language)?;
    if let Some(text) = &command.network {
        let network = text.parse().map_err(|error| bad_network(text, &error, language))?;
        cluster.network = Some(network);
    }
    let model = model_source::open(&command.model, language)?;
    let training = recipe(&training(command));
    let task = Task {
        model: &model,
        training: &training,
        cluster: &cluster,
        precision: precision(command.precision),
        global_batch: command.global_batch,
        may_fuse_loss: command.fused_loss == FusedLoss::Either,
        nvme_path: command.nvme_path.as_deref(),
        objective: match command.objective {
            ObjectiveName::Time => Objective::Time,
            ObjectiveName::Memory => Objective::Memory,
        },
        target: command.target,
    };
    let plan = plan(&task).map_err(|error| words::problem(&error, language))?;
    let path = command.output.as_deref();
    let choice = plan.fitting.first();
    if let (Some(path), Some(choice)) = (path, choice) {
        write(path, choice, command.force, language)?;
    }
    let config = path.map_or("ds_config.json".to_owned(), |path| path.display().to_string());
    let commands = choice.map(|choice| commands(choice, &cluster, &config)).unwrap_or_default();
    let capacity = cluster.capacity().map(|capacity| capacity.bytes).unwrap_or_default();
    let report = PlanReport {
        model: &command.model,
        gpus: &command.gpus,
        world: cluster.world_size(),
        length: command.seq_len,
        plan: &plan,
        capacity,
        written: path.filter(|_| choice.is_some()).map(|_| config.as_str()),
        commands: &commands,
    };
    let result = if command.json {
        format!("{:#}\n", words::json(&report))
    } else {
        words::human(&report, layout)
    };
    output.result(&result);
    output.flush();
    Ok(choice.is_some())
}

fn write(path: &Path, choice: &Fitting, force: bool, language: Language) -> Result<(), String> {
    let text = format!("{:#}\n", serde_json::Value::Object(choice.recipe.config()));
    file::prepare(path, &text, force)
        .and_then(|pending| pending.publish(force))
        .map_err(|problem| problem.words(&path.display().to_string(), language))
}

/// The commands that start the choice, by launcher.
fn commands(choice: &Fitting, cluster: &Cluster, config: &str) -> Vec<(&'static str, String)> {
    let layout = cluster.gpus.layout;
    let Some(ranks_per_machine) = NonZeroU64::new(layout.gpus_per_node) else { return Vec::new() };
    let machines = match NonZeroU64::new(layout.nodes).filter(|nodes| nodes.get() > 1) {
        None => Machines::One,
        Some(count) => Machines::Several { count, main_address: "MAIN_HOST", hostfile: "hostfile" },
    };
    let target = choice.recipe.target;
    // These two start their own program, which has names of its own for some arguments.
    let of = |own: Target| if target.is_trainer() { own } else { target };
    let launchers = [
        ("deepspeed", Launcher::DeepSpeed, target, "train.py"),
        ("torchrun", Launcher::Torchrun, target, "train.py"),
        ("accelerate", Launcher::Accelerate, target, "train.py"),
        ("swift", Launcher::Swift, of(Target::Swift), "train.py"),
        ("llamafactory", Launcher::LlamaFactory, of(Target::LlamaFactory), "train.yaml"),
    ];
    let line = |launcher, reader, script| {
        let arguments = choice.arguments(reader);
        let job = Job { machines, ranks_per_machine, script, config, arguments: &arguments };
        job.command(launcher).shell().ok()
    };
    launchers
        .into_iter()
        .filter_map(|(name, launcher, reader, script)| {
            Some((name, line(launcher, reader, script)?))
        })
        .collect()
}

fn precision(name: PrecisionName) -> Precision {
    match name {
        PrecisionName::Bf16 => Precision::Bf16,
        PrecisionName::Fp16 => Precision::Fp16(LossScale::Dynamic(DynamicLossScale::default())),
        PrecisionName::Fp32 => Precision::Fp32,
    }
}

fn training(command: &PlanCommand) -> Training {
    Training {
        seq_len: command.seq_len,
        target_len: None,
        micro_batch: None,
        grad_accum: None,
        method: command.method,
        lora_rank: command.lora_rank,
        lora_targets: Vec::new(),
        grad_checkpointing: false,
        attention: command.attention,
        fused_loss: command.fused_loss == FusedLoss::Yes,
        optimizer: OptimizerName::Adamw,
        load: None,
    }
}
