//! Configs that people could write: features of the engine, combined at random.

use super::tree::Tree;
use zeropilot_oracle::Random;

/// A key, in how many of a hundred configs it is, and its values.
type Feature = (&'static str, usize, &'static [&'static str]);

const SWITCH: &[&str] = &["true", "false"];

const FEATURES: &[Feature] = &[
    ("gradient_accumulation_steps", 30, &["1", "2"]),
    ("zero_optimization.stage", 85, &["0", "1", "2", "3", "1", "2", "3"]),
    ("zero_optimization.contiguous_gradients", 8, SWITCH),
    ("zero_optimization.reduce_scatter", 8, SWITCH),
    ("zero_optimization.overlap_comm", 8, SWITCH),
    ("zero_optimization.allgather_partitions", 8, SWITCH),
    ("zero_optimization.round_robin_gradients", 8, SWITCH),
    ("zero_optimization.elastic_checkpoint", 6, SWITCH),
    ("zero_optimization.load_from_fp32_weights", 4, SWITCH),
    ("zero_optimization.use_multi_rank_bucket_allreduce", 6, SWITCH),
    ("zero_optimization.ignore_unused_parameters", 4, SWITCH),
    ("zero_optimization.sub_group_size", 6, &["1e9", "100", "1"]),
    ("zero_optimization.reduce_bucket_size", 8, &["1", "100", "5e8"]),
    ("zero_optimization.allgather_bucket_size", 8, &["2", "100", "5e8"]),
    ("zero_optimization.stage3_prefetch_bucket_size", 6, &["0", "100"]),
    ("zero_optimization.stage3_param_persistence_threshold", 6, &["0", "100"]),
    ("zero_optimization.stage3_max_live_parameters", 4, &["0", "1e9"]),
    ("zero_optimization.stage3_gather_16bit_weights_on_model_save", 6, SWITCH),
    ("zero_optimization.zero_hpz_partition_size", 4, &["1"]),
    ("zero_optimization.mics_shard_size", 5, &["-1", "1"]),
    ("zero_optimization.memory_efficient_linear", 5, SWITCH),
    ("zero_optimization.override_module_apply", 3, SWITCH),
    ("zero_optimization.stage3_use_all_reduce_for_fetch_params", 4, SWITCH),
    ("zero_optimization.stage3_module_granularity_threshold", 4, &["0", "1000"]),
    ("zero_optimization.stage3_allgather_sequential", 4, SWITCH),
    ("zero_optimization.compute_grad_norm", 5, SWITCH),
    ("zero_optimization.legacy_stage1", 2, SWITCH),
    ("zero_optimization.offload_optimizer.device", 25, &["\"cpu\"", "\"none\"", "\"cpu\""]),
    ("zero_optimization.offload_optimizer.ratio", 4, &["1.0", "0.5"]),
    ("zero_optimization.offload_param.device", 12, &["\"cpu\"", "\"none\""]),
    ("bf16.enabled", 35, SWITCH),
    ("bf16.immediate_grad_update", 6, SWITCH),
    ("bf16.check_grad_overflow", 5, SWITCH),
    ("bf16.bf16_master_weights_and_grads", 6, SWITCH),
    ("bf16.bf16_optimizer_states", 4, SWITCH),
    ("fp16.enabled", 25, SWITCH),
    ("fp16.loss_scale", 8, &["0", "128"]),
    ("fp16.auto_cast", 4, SWITCH),
    ("fp16.fp16_master_weights_and_grads", 8, SWITCH),
    ("torch_autocast.enabled", 12, SWITCH),
    ("torch_autocast.dtype", 8, &["\"bfloat16\"", "\"float16\""]),
    ("amp.enabled", 3, SWITCH),
    (
        "optimizer.type",
        60,
        &[
            "\"Adam\"",
            "\"AdamW\"",
            "\"SGD\"",
            "\"Lion\"",
            "\"Adagrad\"",
            "\"Muon\"",
            "\"muon\"",
            "\"OneBitAdam\"",
            "\"ZeroOneAdam\"",
            "\"OneBitLamb\"",
            "\"Adam\"",
            "\"AdamW\"",
            "\"RMSprop\"",
        ],
    ),
    ("scheduler.type", 25, &["\"WarmupLR\"", "\"LRRangeTest\"", "\"WarmupLR\"", "\"Foo\""]),
    ("gradient_clipping", 8, &["0.0", "1.0"]),
    ("prescale_gradients", 5, SWITCH),
    ("gradient_predivide_factor", 5, &["1.0", "2.0"]),
    ("communication_data_type", 8, &["\"fp16\"", "\"bf16\"", "\"fp32\""]),
    ("sparse_gradients", 4, SWITCH),
    ("zero_allow_untested_optimizer", 25, &["true"]),
    ("zero_force_ds_cpu_optimizer", 8, SWITCH),
    ("data_types.grad_accum_dtype", 10, &["\"fp32\"", "\"bf16\"", "\"fp16\""]),
    ("graph_harvesting", 3, SWITCH),
    ("managed_gradient_accumulation", 3, SWITCH),
    ("flops_profiler.enabled", 3, SWITCH),
    ("activation_checkpointing.partition_activations", 4, SWITCH),
    ("comms_logger.enabled", 3, SWITCH),
    ("progressive_layer_drop.enabled", 3, SWITCH),
    ("eigenvalue.enabled", 2, SWITCH),
    ("checkpoint.load_universal", 2, SWITCH),
    ("checkpoint.tag_validation", 2, &["\"fail\""]),
    ("compile.deepcompile", 3, SWITCH),
    ("tensor_parallel.autotp_size", 3, &["0", "1"]),
    ("data_efficiency.enabled", 3, SWITCH),
    ("wall_clock_breakdown", 3, SWITCH),
    ("dump_state", 2, SWITCH),
];

/// A config with a batch size and some features.
pub(crate) fn config(random: &mut Random) -> String {
    let mut tree = Tree::Object(Vec::new());
    tree.set("train_micro_batch_size_per_gpu", Tree::Leaf("2".to_owned()));
    for (key, percent, values) in FEATURES {
        if random.chance(*percent) {
            tree.set_path(key, Tree::Leaf(random.word(values).to_owned()));
        }
    }
    let text = tree.text();
    // An optimizer needs a rate.
    text.replace("\"optimizer\": {", "\"optimizer\": {\"params\": {\"lr\": 0.001}, ")
}

/// A config of the parity test that a small machine can start: no number is beyond what fits its memory.
pub(crate) fn tamed(text: String) -> Option<String> {
    let parsed: serde_json::Value = serde_json::from_str(&text).ok()?;
    fits(&parsed).then_some(text)
}

fn fits(value: &serde_json::Value) -> bool {
    const MOST: f64 = 1e9;
    match value {
        serde_json::Value::Number(number) => number.as_f64().is_some_and(|size| size.abs() <= MOST),
        serde_json::Value::Array(items) => items.iter().all(fits),
        serde_json::Value::Object(members) => members.values().all(fits),
        _ => true,
    }
}
