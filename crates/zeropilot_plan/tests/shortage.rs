//! Where nothing fits: which memory is short, and that what is said to help does.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use zeropilot_cluster::{Cluster, Host};
use zeropilot_config::schema::EngineVersion;
use zeropilot_model::catalogue;
use zeropilot_plan::{
    Held, Limit, Objective, Offloaded, Plan, Precision, Shortage, Target, Task, plan,
};
use zeropilot_step::head::LossHead;
use zeropilot_step::lower::Recipe;
use zeropilot_units::Bytes;

const GIB: u64 = 1 << 30;

fn search(
    model: &str,
    gpus: &str,
    (length, ram, disk): (u64, Option<Bytes>, Option<&str>),
) -> Plan {
    search_with(model, gpus, &Recipe::full(length), (ram, disk))
}

fn search_with(
    model: &str,
    gpus: &str,
    training: &Recipe,
    (ram, disk): (Option<Bytes>, Option<&str>),
) -> Plan {
    let model = catalogue::find(model).unwrap().model().unwrap();
    let host = Host { ram, ..Host::default() };
    let cluster = Cluster { host, ..Cluster::new(gpus.parse().unwrap()) };
    let task = Task {
        model: &model,
        training,
        cluster: &cluster,
        precision: Precision::Bf16,
        held: Held::default(),
        global_batch: None,
        may_stretch: false,
        may_fuse_loss: false,
        nvme_path: disk,
        objective: Objective::Time,
        target: Target::DeepSpeed,
        engine: EngineVersion::NEWEST,
    };
    plan(&task).unwrap()
}

fn short(model: &str, gpus: &str, length: u64, ram: Option<u64>) -> Shortage {
    let plan = search(model, gpus, (length, ram.map(Bytes), None));
    assert!(plan.fitting.is_empty());
    plan.shortage.unwrap()
}

/// ZeRO-3 of 8.2B parameters on 8 GPUs: (2 + 4 + 4 + 4) × 8.2B / 8 = 14.4 GB of states on a card of 80 GB, so the GPUs
/// are not short. Eight processes of 3 GiB (interpreter, PyTorch, DeepSpeed) are 24 GiB of a host that has 9.3.
#[test]
fn a_host_too_small_for_its_processes_is_what_is_named() {
    let ram = 10_000_000_000;
    let shortage = short("qwen3-8b", "8xH100", 2048, Some(ram));
    assert_eq!((shortage.limit, shortage.ram), (Limit::Host, Some(Bytes(ram))));
    assert_eq!(shortage.unsplit, None);
    let more = shortage.more_ram.unwrap();
    assert_eq!(more.way.shape.offloaded, Offloaded::Nothing);
    assert_eq!(more.processes, 8);
    assert!(more.need >= Bytes(8 * 3 * GIB), "{}", more.need);
}

/// (2 + 4 + 4 + 4) × 70.6B / 16 = 61.8 GB of states a card, and what a layer of 0.86B needs beside them: more than 80 GB
/// with the band. Offloaded, 12 × 70.6B / 2 nodes = 423 GB are in each host.
#[test]
fn gpus_without_offload_and_hosts_with_it_are_both_named() {
    let shortage = short("llama-3.1-70b", "2x8xH100", 2048, Some(256 * GIB));
    assert_eq!(shortage.limit, Limit::Both);
    let more = shortage.more_ram.unwrap();
    assert_ne!(more.way.shape.offloaded, Offloaded::Nothing);
    assert!(more.need >= Bytes(12 * 70_600_000_000 / 2), "{}", more.need);
    assert_eq!(shortage.gpus.map(|more| more.count), Some(32));
}

#[test]
fn ram_that_is_said_to_do_does_and_less_does_not() {
    for (model, gpus, ram) in [
        ("qwen3-8b", "8xH100", 10_000_000_000),
        ("llama-3.1-70b", "2x8xH100", 256 * GIB),
        ("qwen3-8b", "1xRTX4090", 16 * GIB),
    ] {
        let need = short(model, gpus, 2048, Some(ram)).more_ram.unwrap().need;
        let fits = |ram| !search(model, gpus, (2048, Some(ram), None)).fitting.is_empty();
        assert!(fits(need), "{model} on {gpus}: {need}");
        assert!(!fits(Bytes(need.0 - 1)), "{model} on {gpus}: {need}");
    }
}

#[test]
fn gpus_disks_and_shorter_sequences_that_are_said_to_do_do() {
    let (model, ram) = ("llama-3.1-70b", Some(Bytes(256 * GIB)));
    let shortage = short(model, "2x8xH100", 2048, ram.map(|ram| ram.0));
    assert!(!search(model, "4x8xH100", (2048, ram, None)).fitting.is_empty());
    if shortage.on_disk.is_some() {
        assert!(!search(model, "2x8xH100", (2048, ram, Some("/nvme"))).fitting.is_empty());
    }
    let long = short("qwen3-8b", "8xRTX4090", 65_536, None);
    assert_eq!(long.limit, Limit::Device);
    let shorter = long.shorter.unwrap();
    assert!(!search("qwen3-8b", "8xRTX4090", (shorter, None, None)).fitting.is_empty());
    assert!(search("qwen3-8b", "8xRTX4090", (shorter * 2, None, None)).fitting.is_empty());
}

/// Logits of 16,384 tokens over 151,936 words are 2.5 G elements: in bf16, in 32 bits and as gradients 20 GB together on a
/// card of 24 GB.
#[test]
fn a_fused_loss_that_is_said_to_do_does() {
    let ask = |loss| {
        let training = Recipe { loss, ..Recipe::full(16_384) };
        search_with("qwen3-0.6b", "1xRTX4090", &training, (None, None))
    };
    let plan = ask(LossHead::Model);
    assert!(plan.fitting.is_empty());
    let way = plan.shortage.unwrap().fused.unwrap();
    let shapes: Vec<_> = ask(LossHead::Fused).fitting.iter().map(|one| one.way.shape).collect();
    assert!(shapes.contains(&way.shape), "{shapes:?}");
}

/// A layer's experts are 256 × 3 × 7168 × 2048 = 11.3B: gathered, with their gradients, 2 × 22.5 GB on a card of 24 GB,
/// however many cards there are and however short a sequence is.
#[test]
fn what_no_number_of_gpus_splits_is_said_only_then() {
    let shortage = short("deepseek-v3", "8x8xRTX4090", 2048, None);
    assert_eq!((shortage.limit, shortage.gpus, shortage.shorter), (Limit::Device, None, None));
    let need = shortage.unsplit.unwrap().need;
    assert!(need.expected() >= Bytes(45_000_000_000), "{need}");
}
