//! What to run on these GPUs.

use std::num::NonZeroU64;

use serde::Deserialize;
use zeropilot_cluster::Cluster;
use zeropilot_model::Model;
use zeropilot_plan::{
    DynamicLossScale, Fitting, Job, Launcher, LossScale, Machines as Hosts, Offer, Offers, Plan,
    PlanError, Precision, Target, Task,
};

use crate::bill::{BadBill, Bill, BillRequest};
use crate::machines::{Machines, MachinesProblem};
use crate::name::{FusedLoss, MethodName, NumberFormat, Objective};
use crate::range::OutOfRange;
use crate::size;
use crate::training::Training;

/// What a plan is wanted for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// Where it is trained.
    pub machines: Machines,
    /// Samples per optimizer step over all GPUs, kept whatever is chosen.
    #[serde(default)]
    pub global_batch: Option<NonZeroU64>,
    /// The number format.
    #[serde(default)]
    pub precision: NumberFormat,
    /// How it is trained; batch, checkpointing and the loss are not taken from here.
    #[serde(default)]
    pub training: Training,
    /// Whether projection and cross entropy are one kernel, or may be.
    #[serde(default)]
    pub fused_loss: FusedLoss,
    /// A directory on a local disk that states may be kept in.
    #[serde(default)]
    pub nvme_path: Option<String>,
    /// What the choice is best at.
    #[serde(default)]
    pub objective: Objective,
    /// What is to be finished, to know what it costs.
    #[serde(default)]
    pub bill: Option<BillRequest>,
    /// Who reads the config; DeepSpeed itself if not said.
    #[serde(default, rename = "for", deserialize_with = "size::word")]
    pub target: Option<Target>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanProblem {
    /// The GPUs cannot be read.
    #[error(transparent)]
    Machines(#[from] MachinesProblem),
    /// A number makes no sense.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// What is to be finished is not understood.
    #[error(transparent)]
    Bill(#[from] BadBill),
    /// The search cannot begin.
    #[error("there is no plan")]
    Plan(PlanError),
}

/// A plan with what it was made for.
#[derive(Debug)]
pub struct Planned {
    /// The model as the user named it.
    pub model: String,
    /// The GPUs as the user named them.
    pub gpus: String,
    /// Where it is trained.
    pub cluster: Cluster,
    /// Tokens of a sequence.
    pub length: u64,
    /// What is trained.
    pub method: MethodName,
    /// The plan.
    pub plan: Plan,
    /// Where cost decides: plans on ever more of the GPUs, of which this is the cheapest.
    pub offers: Option<Offers>,
    /// What is to be finished.
    pub bill: Option<Bill>,
}

/// Searches for what fits.
///
/// # Errors
///
/// If a part of the request makes no sense. That nothing fits is a plan too.
pub fn plan(name: &str, model: &Model, request: &PlanRequest) -> Result<Planned, PlanProblem> {
    let cluster = request.machines.cluster()?;
    let bill = request.bill.as_ref().map(BillRequest::read).transpose()?;
    let fused_loss = request.fused_loss == FusedLoss::Yes;
    let training = Training { fused_loss, ..request.training.clone() }.recipe()?;
    let task = Task {
        model,
        training: &training,
        cluster: &cluster,
        precision: precision(request.precision),
        global_batch: request.global_batch,
        may_fuse_loss: request.fused_loss == FusedLoss::Either,
        nvme_path: request.nvme_path.as_deref(),
        objective: match request.objective {
            Objective::Time | Objective::Cost => zeropilot_plan::Objective::Time,
            Objective::Memory => zeropilot_plan::Objective::Memory,
        },
        target: request.target.unwrap_or_default(),
    };
    let (cluster, plan, offers) = match request.objective {
        Objective::Cost => {
            let offers = zeropilot_plan::offers(&task).map_err(PlanProblem::Plan)?;
            let Offer { cluster, plan } = offers.cheapest().clone();
            (cluster, plan, Some(offers))
        }
        Objective::Time | Objective::Memory => {
            let plan = zeropilot_plan::plan(&task).map_err(PlanProblem::Plan)?;
            (cluster, plan, None)
        }
    };
    let (model, gpus) = (name.to_owned(), request.machines.gpus.clone());
    let Training { seq_len: length, method, .. } = request.training;
    Ok(Planned { model, gpus, cluster, length, method, plan, offers, bill })
}

impl Planned {
    /// What is chosen; `None` if nothing fits.
    pub fn choice(&self) -> Option<&Fitting> {
        self.plan.fitting.first()
    }

    /// The commands that start the choice with a config file of this name, by launcher.
    pub fn commands(&self, config: &str) -> Vec<(&'static str, String)> {
        let layout = self.cluster.gpus.layout;
        let (Some(choice), Some(ranks_per_machine)) =
            (self.choice(), NonZeroU64::new(layout.gpus_per_node))
        else {
            return Vec::new();
        };
        let machines = match NonZeroU64::new(layout.nodes).filter(|nodes| nodes.get() > 1) {
            None => Hosts::One,
            Some(count) => {
                Hosts::Several { count, main_address: "MAIN_HOST", hostfile: "hostfile" }
            }
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
}

fn precision(format: NumberFormat) -> Precision {
    match format {
        NumberFormat::Bf16 => Precision::Bf16,
        NumberFormat::Fp16 => Precision::Fp16(LossScale::Dynamic(DynamicLossScale::default())),
        NumberFormat::Fp32 => Precision::Fp32,
    }
}
