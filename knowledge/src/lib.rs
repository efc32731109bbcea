//! What zeropilot knows about DeepSpeed, models and machines: the text of the files beside this crate.
//!
//! A file is read by the crate that knows what it means.

macro_rules! files {
    ($($path:literal,)*) => {
        &[$(($path, include_str!(concat!("../", $path))),)*]
    };
}

const FILES: &[(&str, &str)] = files![
    "accelerators/accelerators.jsonl",
    "advisories/advisories.json",
    "concepts/auto.en.md",
    "concepts/auto.zh.md",
    "concepts/batch.en.md",
    "concepts/batch.zh.md",
    "concepts/buckets.en.md",
    "concepts/buckets.zh.md",
    "concepts/checkpointing.en.md",
    "concepts/checkpointing.zh.md",
    "concepts/dpo.en.md",
    "concepts/dpo.zh.md",
    "concepts/evaluation.en.md",
    "concepts/evaluation.zh.md",
    "concepts/fragmentation.en.md",
    "concepts/fragmentation.zh.md",
    "concepts/fsdp2.en.md",
    "concepts/fsdp2.zh.md",
    "concepts/grpo.en.md",
    "concepts/grpo.zh.md",
    "concepts/hpz.en.md",
    "concepts/hpz.zh.md",
    "concepts/index.json",
    "concepts/liger.en.md",
    "concepts/liger.zh.md",
    "concepts/lora.en.md",
    "concepts/lora.zh.md",
    "concepts/loss-scale.en.md",
    "concepts/loss-scale.zh.md",
    "concepts/memory.en.md",
    "concepts/memory.zh.md",
    "concepts/moe.en.md",
    "concepts/moe.zh.md",
    "concepts/nvme.en.md",
    "concepts/nvme.zh.md",
    "concepts/offload.en.md",
    "concepts/offload.zh.md",
    "concepts/oom.en.md",
    "concepts/oom.zh.md",
    "concepts/packing.en.md",
    "concepts/packing.zh.md",
    "concepts/precision.en.md",
    "concepts/precision.zh.md",
    "concepts/prefetch.en.md",
    "concepts/prefetch.zh.md",
    "concepts/saving.en.md",
    "concepts/saving.zh.md",
    "concepts/traffic.en.md",
    "concepts/traffic.zh.md",
    "concepts/ulysses.en.md",
    "concepts/ulysses.zh.md",
    "concepts/zero-init.en.md",
    "concepts/zero-init.zh.md",
    "concepts/zero.en.md",
    "concepts/zero.zh.md",
    "concepts/zero1.en.md",
    "concepts/zero1.zh.md",
    "concepts/zero2.en.md",
    "concepts/zero2.zh.md",
    "concepts/zero3.en.md",
    "concepts/zero3.zh.md",
    "constructors/0.14.5.json",
    "constructors/0.15.4.json",
    "constructors/0.16.9.json",
    "constructors/0.17.6.json",
    "constructors/0.18.9.json",
    "constructors/0.19.8.json",
    "cuda/cuda.json",
    "environment.json",
    "environment_renamed.json",
    "field/interval.json",
    "fingerprints/logs.json",
    "keys/activation_checkpointing.json",
    "keys/aio.json",
    "keys/autotuning.json",
    "keys/batch.json",
    "keys/checkpoint.json",
    "keys/compile.json",
    "keys/data_efficiency.json",
    "keys/expert_parallel.json",
    "keys/hybrid_engine.json",
    "keys/logging.json",
    "keys/optimizer.json",
    "keys/pipeline.json",
    "keys/precision.json",
    "keys/tensor_parallel.json",
    "keys/zero_optimization.json",
    "links/links.json",
    "messages/frames.json",
    "models/catalogue.jsonl",
    "models/families.json",
    "models/stand_ins.json",
    "pace/pace.json",
    "recipes/arguments.json",
    "recipes/config_keys.json",
    "recipes/frameworks.json",
    "recipes/ms-swift/zero0.json",
    "recipes/ms-swift/zero1.json",
    "recipes/ms-swift/zero2.json",
    "recipes/ms-swift/zero2_offload.json",
    "recipes/ms-swift/zero3.json",
    "recipes/ms-swift/zero3_offload.json",
    "recipes/removed_arguments.json",
    "recipes/trl/zero1.yaml",
    "recipes/trl/zero2.yaml",
    "recipes/trl/zero3.yaml",
    "recipes/unread.json",
    "schema/0.14.5.json",
    "schema/0.15.4.json",
    "schema/0.16.9.json",
    "schema/0.17.6.json",
    "schema/0.18.9.json",
    "schema/0.19.8.json",
    "stacks/frames.json",
];

/// The text of a file by its path below `knowledge/`. Meant for `const { text("…") }`: a path that is not there does not compile,
/// and a program holds the files that it reads.
///
/// # Panics
///
/// If there is no such file.
pub const fn text(path: &str) -> &'static str {
    let mut index = 0;
    while index < FILES.len() {
        if is_equal(FILES[index].0.as_bytes(), path.as_bytes()) {
            return FILES[index].1;
        }
        index += 1;
    }
    panic!("no such file of knowledge/")
}

const fn is_equal(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}
