//! What a plan costs: hardly more questions for 16,384 GPUs than for 8.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

use zeropilot_cluster::Cluster;
use zeropilot_config::schema::EngineVersion;
use zeropilot_model::catalogue;
use zeropilot_plan::{Held, Objective, Plan, Precision, Target, Task, plan};
use zeropilot_step::lower::Recipe;

fn planned(gpus: &str) -> Plan {
    let model = catalogue::find("llama-3.1-405b").unwrap().model().unwrap();
    let cluster = Cluster::new(gpus.parse().unwrap());
    let training = Recipe::full(8192);
    let task = Task {
        model: &model,
        training: &training,
        cluster: &cluster,
        precision: Precision::Bf16,
        held: Held::default(),
        global_batch: None,
        may_stretch: false,
        may_fuse_loss: false,
        nvme_path: None,
        objective: Objective::Time,
        target: Target::DeepSpeed,
        engine: EngineVersion::NEWEST,
    };
    let plan = plan(&task).unwrap();
    println!("{gpus}: {} ways, {} asked about", plan.ways, plan.asked);
    plan
}

#[test]
fn a_plan_for_16_384_gpus_weighs_70_000_strategies_and_asks_about_few() {
    let (few, many) = (planned("8xH100"), planned("2048x8xH100"));
    assert!(many.ways >= 70_000, "{}", many.ways);
    // hpZ is a choice only between nodes.
    assert!(many.asked <= few.asked * 3, "{} and {}", few.asked, many.asked);
}
