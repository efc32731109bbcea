//! The search against asking about every way there is.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use proptest::prelude::*;
use zeropilot_cluster::{Cluster, Host};
use zeropilot_config::schema::EngineVersion;
use zeropilot_model::Model;
use zeropilot_step::lower::Recipe as Training;
use zeropilot_units::{Bytes, Elements};

use super::asking::Asker;
use super::space::Space;
use super::{Fitting, Held, NEGLIGIBLE, Objective, Plan, Shape, Task, Way, search};
use crate::precision::Precision;
use crate::target::Target;
use crate::zero::Stage;

fn model(layers: u64, hidden: u64, vocabulary: u64) -> Model {
    let config = serde_json::json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
        "intermediate_size": hidden * 3, "num_hidden_layers": layers, "num_attention_heads": 8,
        "num_key_value_heads": 4, "vocab_size": vocabulary, "tie_word_embeddings": false,
    });
    Model::from_config(&config.to_string()).expect("a Llama")
}

/// A batch of so many samples for each rank.
fn task<'a>(
    model: &'a Model,
    training: &'a Training,
    cluster: &'a Cluster,
    each: Option<u64>,
) -> Task<'a> {
    Task {
        model,
        training,
        cluster,
        precision: Precision::Bf16,
        held: Held::default(),
        global_batch: each.and_then(|each| NonZeroU64::new(each * cluster.world_size())),
        may_stretch: false,
        may_fuse_loss: false,
        nvme_path: None,
        objective: Objective::Time,
        target: Target::DeepSpeed,
        engine: EngineVersion::NEWEST,
    }
}

/// A space small enough to ask about all of it.
fn small(task: &Task<'_>, reduce: u64, prefetch: u64) -> Space {
    let mut all = Space::of(task).expect("a batch that can be spread");
    all.batches.truncate(4);
    let sizes = |smaller: u64, factor: u64| vec![Elements(smaller), Elements(smaller * factor)];
    Space {
        reduce: sizes(reduce, 20),
        allgather: sizes(reduce * 2, 10),
        prefetch: sizes(prefetch, 10),
        persistent: sizes(4_000, 300),
        live: sizes(1_000_000, 30),
        ..all
    }
}

/// The least cost of each kind of which something fits: by time where it is known.
fn exhaustive(task: &Task<'_>, space: &Space) -> BTreeMap<(Shape, u64), f64> {
    let mut asker = Asker::new(task).expect("the memory is known");
    let mut least = BTreeMap::new();
    for way in space.ways() {
        if asker.has_room(way).expect("an answer") {
            let cost = match asker.knows_speed() {
                true => asker.seconds_per_sequence(way).expect("an answer"),
                false => way.cost(),
            };
            let best: &mut f64 = least.entry((way.shape, way.hpz)).or_insert(f64::INFINITY);
            *best = best.min(cost);
        }
    }
    least
}

fn found(plan: &Plan) -> BTreeMap<(Shape, u64), f64> {
    let cost =
        |fitting: &Fitting| fitting.seconds_per_sequence().unwrap_or_else(|| fitting.way.cost());
    let kind = |way: Way| (way.shape, way.hpz);
    plan.fitting.iter().map(|fitting| (kind(fitting.way), cost(fitting))).collect()
}

/// Sizes of buffers are varied one at a time, which may miss this much.
const MISSED: f64 = 0.02;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn no_way_that_fits_costs_less_than_what_is_found(
        (layers, hidden, vocabulary) in (1_u64..4, 1_u64..5, 1_u64..4),
        (nodes, gpus, mebibytes) in (1_u64..3, 1_u64..5, 700_u64..9_000),
        (reduce, prefetch) in (1_u64..2_000_000, 1_u64..2_000_000),
        global in prop::option::of(1_u64..13),
        ram in prop::option::of(4_u64..40),
        (stage, micro_batch) in (prop::option::of(0_u8..4), prop::option::of(1_u64..4)),
        checkpointing in prop::option::of(any::<bool>()),
    ) {
        let model = model(layers, hidden * 256, vocabulary * 16_000);
        let gpus: zeropilot_cluster::Gpus =
            format!("{nodes}x{gpus}x{mebibytes}MiB").parse().expect("GPUs");
        let host = Host { ram: ram.map(|ram| Bytes(ram << 30)), ..Host::default() };
        let cluster = Cluster { host, ..Cluster::new(gpus) };
        let training = Training::full(1024);
        let stage = stage.and_then(Stage::from_number);
        // A micro batch that is held has to divide the batch.
        let micro_batch = micro_batch.filter(|micro| global.is_none_or(|all| all % micro == 0));
        let micro_batch = micro_batch.and_then(NonZeroU64::new);
        let held = Held { stage, micro_batch, checkpointing, ..Held::default() };
        let task = Task { held, ..task(&model, &training, &cluster, global) };
        let space = small(&task, reduce, prefetch);
        let plan = search(&task, &space, &mut Asker::new(&task).expect("an asker")).expect("a plan");
        prop_assert_eq!(found(&plan), exhaustive(&task, &space));
        for Way { shape, work, .. } in plan.fitting.iter().chain(&plan.fallbacks).map(|it| it.way) {
            prop_assert!(stage.is_none_or(|stage| shape.stage == stage));
            prop_assert!(micro_batch.is_none_or(|micro| work.micro_batch == micro.get()));
            prop_assert!(checkpointing.is_none_or(|is| work.checkpointing == is));
        }
        let capacity = cluster.capacity().expect("known").bytes.expected();
        for fitting in &plan.fitting {
            prop_assert!(fitting.answer.device().high() <= capacity);
        }
    }

    /// On cards whose speed is known. Their memory is much, so that the sequences are long.
    #[test]
    fn no_way_that_fits_is_much_faster_than_what_is_found(
        (layers, hidden, vocabulary) in (1_u64..4, 1_u64..5, 1_u64..4),
        (nodes, gpus) in (1_u64..3, 1_u64..5),
        card in prop::sample::select(vec!["RTX4090", "A100-40G", "H100", "L4"]),
        length in 1_u64..9,
        (reduce, prefetch) in (1_u64..2_000_000, 1_u64..2_000_000),
        global in prop::option::of(1_u64..13),
    ) {
        let model = model(layers, hidden * 256, vocabulary * 16_000);
        let gpus: zeropilot_cluster::Gpus = format!("{nodes}x{gpus}x{card}").parse().expect("GPUs");
        let cluster = Cluster::new(gpus);
        let training = Training::full(length * 8192);
        let task = task(&model, &training, &cluster, global);
        let space = small(&task, reduce, prefetch);
        let plan = search(&task, &space, &mut Asker::new(&task).expect("an asker")).expect("a plan");
        let (found, best) = (found(&plan), exhaustive(&task, &space));
        prop_assert_eq!(found.len(), best.len());
        let Some(choice) = plan.fitting.first() else { return Ok(()) };
        let chosen = (choice.way.shape, choice.way.hpz);
        let fastest = best.values().copied().fold(f64::INFINITY, f64::min);
        for (kind, seconds) in &found {
            let limit = if *kind == chosen { fastest * (1.0 + NEGLIGIBLE) } else { best[kind] };
            prop_assert!(*seconds <= limit * (1.0 + MISSED), "{:?}: {} for {}", kind, seconds, limit);
        }
        // Nothing that is as fast is simpler, or as simple with more room.
        let capacity = cluster.capacity().expect("known").bytes.expected();
        for other in &plan.fitting {
            let is_as_fast = other.seconds_per_sequence() <= Some(fastest * (1.0 + NEGLIGIBLE));
            prop_assert!(!is_as_fast || choice.burden(capacity) <= other.burden(capacity));
        }
    }
}
