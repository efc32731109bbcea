//! The fallbacks: whoever ran out of device memory finds clearly less on the next fallback, at the least price there is.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use std::num::NonZeroU64;

use zeropilot_cluster::{Cluster, Host};
use zeropilot_config::schema::EngineVersion;
use zeropilot_model::catalogue;
use zeropilot_plan::{Fitting, Held, Objective, Plan, Precision, Target, Task, plan};
use zeropilot_step::lower::Recipe;
use zeropilot_units::Bytes;

const GIB: u64 = 1 << 30;

/// Plans of many sizes: on cards whose speed is known and on some known by their memory alone, with and without a global
/// batch, a limit of the hosts, a disk, a loss that may be fused.
fn each_plan(mut holds: impl FnMut(&Plan, &Cluster, &str)) {
    let models = ["gpt2", "qwen3-0.6b", "qwen3-8b", "llama-3.1-70b"];
    let gpus = ["1xRTX4090", "8xH100", "2x8xH100", "5x44GB", "4x8xA100-80G"];
    let mut choices = 0;
    for (index, (model, gpus)) in
        models.iter().flat_map(|model| gpus.map(|gpus| (*model, gpus))).enumerate()
    {
        let described = catalogue::find(model).unwrap().model().unwrap();
        let ram = [None, Some(Bytes(512 * GIB)), Some(Bytes(64 * GIB))][index % 3];
        let cluster = Cluster {
            host: Host { ram, ..Host::default() },
            ..Cluster::new(gpus.parse().unwrap())
        };
        let training = Recipe::full([2048, 4096][index % 2]);
        let each = [None, Some(12), Some(16)][index / 2 % 3];
        let task = Task {
            model: &described,
            training: &training,
            cluster: &cluster,
            precision: Precision::Bf16,
            held: Held::default(),
            global_batch: each.and_then(|each| NonZeroU64::new(each * cluster.world_size())),
            may_stretch: false,
            may_fuse_loss: index % 4 == 0,
            nvme_path: (index % 5 == 0).then_some("/local_nvme"),
            objective: Objective::Time,
            target: Target::DeepSpeed,
            engine: EngineVersion::NEWEST,
        };
        let plan = plan(&task).unwrap();
        choices += usize::from(!plan.fitting.is_empty());
        holds(&plan, &cluster, &format!("{model} on {gpus}, {each:?} for each, RAM {ram:?}"));
    }
    assert!(choices >= 12, "only {choices} plans had a choice");
}

fn need(fitting: &Fitting) -> u64 {
    fitting.answer.device().expected().0
}

fn cost(fitting: &Fitting) -> f64 {
    fitting.seconds_per_sequence().unwrap_or_else(|| fitting.way.cost())
}

fn sequences(fitting: &Fitting) -> u64 {
    fitting.way.work.micro_batch * fitting.way.work.accumulation
}

/// What may stand in the place of a fallback.
fn is_below(other: &Fitting, choice: &Fitting) -> bool {
    let (work, of_choice) = (other.way.work, choice.way.work);
    sequences(other) == sequences(choice)
        && work.micro_batch <= of_choice.micro_batch
        && work.checkpointing >= of_choice.checkpointing
        && work.fused_loss >= of_choice.fused_loss
}

#[test]
fn no_rung_is_beaten_and_each_needs_clearly_less_for_the_same_batch() {
    let mut fallbacks = 0;
    each_plan(|plan, cluster, name| {
        let Some(choice) = plan.fitting.first() else {
            assert!(plan.fallbacks.is_empty());
            return;
        };
        let device = cluster.capacity().unwrap().bytes.expected().0;
        fallbacks += plan.fallbacks.len();
        let mut above = need(choice);
        for (index, fallback) in plan.fallbacks.iter().enumerate() {
            // A twentieth of the device; the last, below which there is nothing, a hundredth.
            let step = if index + 1 == plan.fallbacks.len() { device / 100 } else { device / 20 };
            assert!(need(fallback) + step <= above, "{} after {above}: {name}", need(fallback));
            assert!(
                is_below(fallback, choice),
                "{:?} below {:?}: {name}",
                fallback.way,
                choice.way
            );
            assert!(fallback.answer.device().high().0 <= device, "{name}");
            let ram = cluster.host.ram.unwrap_or(Bytes(u64::MAX));
            assert!(fallback.answer.node().expected() <= ram, "{:?}: {name}", fallback.way);
            above = need(fallback);
        }
        let others = plan.fitting[1..].iter().filter(|other| is_below(other, choice));
        let others: Vec<&Fitting> = others.chain(&plan.fallbacks).collect();
        for other in &others {
            assert!(above < need(other) + device / 100, "{:?} is the least: {name}", other.way);
        }
        for fallback in &plan.fallbacks {
            for other in others.iter().filter(|other| other.way != fallback.way) {
                let is_as_good = need(other) <= need(fallback) && cost(other) <= cost(fallback);
                let is_better = need(other) < need(fallback) || cost(other) < cost(fallback);
                let is_beaten = is_as_good && is_better;
                assert!(!is_beaten, "{:?} beats {:?}: {name}", other.way, fallback.way);
            }
        }
    });
    assert!(fallbacks >= 30, "only {fallbacks} fallbacks");
}
