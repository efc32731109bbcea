//! `zeropilot plan`: from a model and GPUs to a config that fits.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use clap::Args;
use zeropilot_ask::{
    Attention, FusedLoss, MOST_RANK, MOST_TOKENS, Machines, MethodName, NumberFormat, Objective,
    PlanRequest, Training, plan as ask,
};
use zeropilot_lint::Language;
use zeropilot_plan::{Fitting, Target};
use zeropilot_units::Bytes;
use zeropilot_view::model::length_note;
use zeropilot_view::plan::{self as words, PlanReport};
use zeropilot_view::{Format, Layout, problem, talk};

use crate::bill::BillArguments;
use crate::cli::GlobalOptions;
use crate::cluster_source;
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::model_source;
use crate::new::file;
use crate::output::Output;
use crate::progress::turning;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot plan --model Qwen/Qwen3-8B --gpus 5x44GB --seq-len 4096
  zeropilot plan --model llama-3.1-70b --gpus 8xA100-80G --host-ram 2TiB --global-batch 64
  zeropilot plan --model Qwen3-30B-A3B --gpus 5x44GB --method lora --for hf-trainer -o ds.json
  zeropilot plan --model qwen3-8b --gpus 4x8xH100 --objective cost --tokens 10B --cost 2.5/gpu-hour

Exit codes: 0 something fits, 1 nothing does, 2 the question could not be answered";

/// The arguments, as typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanCommand {
    /// The model: a name of the catalogue, a directory or config.json, or an id of the hub
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: String,
    /// The GPUs: `8xA100-80G`, `5x44GB`, `4x8xH100` (nodes × GPUs); otherwise those of this machine
    #[arg(long, value_name = "GPUS")]
    pub(crate) gpus: Option<String>,
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
    pub(crate) precision: NumberFormat,
    /// Tokens of a sequence
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..=MOST_TOKENS))]
    pub(crate) seq_len: u64,
    /// What is trained
    #[arg(long, value_name = "METHOD", default_value = "full")]
    pub(crate) method: MethodName,
    /// Rank of the adapters
    #[arg(long, value_name = "R", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=MOST_RANK))]
    pub(crate) lora_rank: u64,
    /// The form of attention
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub(crate) attention: Attention,
    /// Projection and cross entropy in one kernel (Liger): whether it is used, or may be
    #[arg(long, value_name = "WHETHER", default_value = "no", default_missing_value = "yes", num_args = 0..=1, require_equals = true)]
    pub(crate) fused_loss: FusedLoss,
    /// A directory on a local disk that states may be kept in
    #[arg(long, value_name = "DIR")]
    pub(crate) nvme_path: Option<String>,
    /// What the choice is best at: the time of a step, what a run costs (on fewer GPUs if that is cheaper), or free memory
    #[arg(long, value_name = "WHAT", default_value = "time")]
    pub(crate) objective: Objective,
    #[command(flatten)]
    pub(crate) bill: BillArguments,
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
    let request = command.request(cluster_source::gpus(command.gpus.as_deref(), language)?);
    let problem = |problem| problem::planning(&problem, language);
    // What is wrong with the GPUs is said before a model is looked for.
    request.machines.cluster().map_err(|wrong| problem(wrong.into()))?;
    let model = model_source::open(&command.model, language)?;
    let turning = (command.objective == Objective::Cost)
        .then(|| turning(layout.quiet, words::offers_take_long(language)))
        .flatten();
    let planned = ask(&command.model, &model, &request).map_err(problem);
    if let Some(turning) = turning {
        turning.finish_and_clear();
    }
    let planned = planned?;
    let path = command.output.as_deref();
    if let (Some(path), Some(choice)) = (path, planned.choice()) {
        write(path, choice, command.force, language)?;
    }
    let config = path.map_or("ds_config.json".to_owned(), |path| path.display().to_string());
    let commands = planned.commands(&config);
    let written = path.and(planned.choice()).map(|_| config.as_str());
    let report = PlanReport::of(&planned, &commands, written);
    let result = if command.json {
        format!("{:#}\n", words::json(&report))
    } else {
        words::human(&report, layout)
    };
    output.result(&result);
    output.flush();
    let is_talking = layout.format == Format::Human && !layout.quiet;
    let length = length_note(&model, request.training.seq_len, language);
    length.filter(|_| is_talking).into_iter().for_each(|note| output.say(&note));
    if is_talking && path.is_none() && planned.choice().is_some() {
        output.say(&talk::not_written_yet(&config, language));
    }
    Ok(planned.choice().is_some())
}

fn write(path: &Path, choice: &Fitting, force: bool, language: Language) -> Result<(), String> {
    let text = format!("{:#}\n", serde_json::Value::Object(choice.recipe.config()));
    file::prepare(path, &text, force)
        .and_then(|pending| pending.publish(force))
        .map_err(|problem| problem.words(&path.display().to_string(), language))
}

impl PlanCommand {
    /// What a plan is wanted for on these GPUs.
    fn request(&self, gpus: String) -> PlanRequest {
        PlanRequest {
            machines: Machines {
                gpus,
                host_ram: self.host_ram,
                network: self.network.clone(),
                nvme: None,
            },
            global_batch: self.global_batch,
            precision: self.precision,
            training: Training {
                seq_len: self.seq_len,
                method: self.method,
                lora_rank: self.lora_rank,
                attention: self.attention,
                ..Training::default()
            },
            fused_loss: self.fused_loss,
            nvme_path: self.nvme_path.clone(),
            objective: self.objective,
            bill: self.bill.request(),
            target: Some(self.target),
        }
    }
}
