//! `zero_optimization`, typed.

use zeropilot_units::Elements;

use super::reading::{count, elements, flag, flag_or_on, ratio, strings};
use crate::python::PyValue;

/// What ZeRO spreads over the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Nothing.
    Zero,
    /// Optimizer states.
    One,
    /// Optimizer states and gradients.
    Two,
    /// Optimizer states, gradients and parameters.
    Three,
}

/// Where offloaded state goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OffloadDevice {
    /// Host memory.
    Cpu,
    /// A disk, below this path if one is given.
    Nvme(Option<String>),
}

/// Parameters kept off the GPU between uses.
#[derive(Debug, Clone, PartialEq)]
pub struct OffloadParam {
    /// Where to.
    pub device: OffloadDevice,
    /// Whether host buffers are page-locked.
    pub pin_memory: bool,
    /// Number of NVMe staging buffers.
    pub buffer_count: u64,
    /// Size of each.
    pub buffer_size: Elements,
    /// Parameters kept in host memory when they live on NVMe.
    pub max_in_cpu: Elements,
}

/// Optimizer states and the update off the GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct OffloadOptimizer {
    /// Where to.
    pub device: OffloadDevice,
    /// Whether host buffers are page-locked.
    pub pin_memory: bool,
    /// Number of NVMe staging buffers.
    pub buffer_count: u64,
    /// The share of states that is offloaded; the rest stays on the GPU. Stage 3 only.
    pub ratio: f64,
    /// Whether reading the next sub-group overlaps the update of this one.
    pub pipeline_read: bool,
    /// Whether writing the last sub-group overlaps the update of this one.
    pub pipeline_write: bool,
}

/// The ZeRO settings that decide memory and traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Zero {
    /// The stage.
    pub stage: Stage,
    /// Gradients are copied into one contiguous buffer.
    pub contiguous_gradients: bool,
    /// Reduction overlaps the backward pass.
    pub overlap_comm: bool,
    /// Gradients are reduce-scattered rather than all-reduced, where the engine honours it.
    pub reduce_scatter: bool,
    /// Gradient elements per reduction.
    pub reduce_bucket: Elements,
    /// Parameter elements per all-gather after the step (stages 1 and 2).
    pub allgather_bucket: Elements,
    /// Updated parameters are all-gathered rather than broadcast.
    pub allgather_partitions: bool,
    /// Small reductions of several ranks share a bucket.
    pub multi_rank_bucket_allreduce: bool,
    /// Gradients are dealt out to ranks one by one (stages 1 and 2 with CPU offload).
    pub round_robin_gradients: bool,
    /// Parameters off the GPU (stage 3).
    pub offload_param: Option<OffloadParam>,
    /// Optimizer off the GPU.
    pub offload_optimizer: Option<OffloadOptimizer>,
    /// Parameters updated at a time (stage 3).
    pub sub_group: Elements,
    /// Parameters fetched ahead of use (stage 3).
    pub prefetch_bucket: Elements,
    /// Parameters up to this size stay gathered (stage 3).
    pub param_persistence_threshold: Elements,
    /// All persistent parameters together stay below this (stage 3).
    pub model_persistence_threshold: Elements,
    /// Gathered parameters before any is released (stage 3).
    pub max_live_parameters: Elements,
    /// A parameter used again within this distance is not released (stage 3).
    pub max_reuse_distance: Elements,
    /// Modules below this granularity are fetched as one (stage 3).
    pub module_granularity_threshold: Elements,
    /// Weights are gathered when a 16-bit model is saved (stage 3).
    pub gather_16bit_weights_on_model_save: bool,
    /// Ranks that hold a secondary copy of the parameters (ZeRO++ hpZ); 1 is off.
    pub hpz_partition_size: u64,
    /// Weights are quantized for all-gather (ZeRO++ qwZ).
    pub quantized_weights: bool,
    /// Frozen weights are kept quantized.
    pub quantized_nontrainable_weights: bool,
    /// Gradients are quantized for reduction (ZeRO++ qgZ).
    pub quantized_gradients: bool,
    /// Ranks per shard group (MiCS); `None` is off or not in this version.
    pub mics_shard_size: Option<u64>,
    /// The linear layer that keeps fewer tensors (stage 3).
    pub memory_efficient_linear: bool,
    /// Flat buffers are padded so that every parameter is aligned (stages 1 and 2).
    pub parameter_alignment: bool,
    /// Parameters are gathered one by one (stage 3).
    pub allgather_sequential: bool,
    /// Several parameters are gathered by an all-reduce (stage 3).
    pub all_reduce_for_fetch: bool,
    /// The norm of the gradients is computed before a step (stages 1 and 2).
    pub computes_norm: bool,
    /// Modules that are gathered and released as a whole (stage 3).
    pub leaf_modules: LeafModules,
}

/// Which modules stage 3 gathers with all that is inside them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeafModules {
    /// Python classes, with or without their package.
    pub classes: Vec<String>,
    /// Names as in `named_modules`.
    pub names: Vec<String>,
    /// Ends of such names.
    pub name_suffixes: Vec<String>,
}

impl LeafModules {
    fn read(section: &PyValue) -> Self {
        Self {
            classes: strings(section, "classes"),
            names: strings(section, "names"),
            name_suffixes: strings(section, "name_suffixes"),
        }
    }

    /// Whether a class is listed. The package of a class is not looked at.
    pub fn include_class(&self, class: &str) -> bool {
        self.classes.iter().any(|listed| listed.rsplit('.').next() == Some(class))
    }

    /// Whether a module is listed.
    pub fn include(&self, name: &str, class: &str) -> bool {
        let has_end = |end: &String| name.ends_with(end.as_str());
        self.include_class(class)
            || self.names.iter().any(|listed| listed == name)
            || self.name_suffixes.iter().any(has_end)
    }
}

impl Zero {
    pub(super) fn read(section: &PyValue) -> Self {
        Self {
            stage: stage(section),
            contiguous_gradients: flag(section, "contiguous_gradients"),
            overlap_comm: flag(section, "overlap_comm"),
            reduce_scatter: flag(section, "reduce_scatter"),
            reduce_bucket: elements(section, "reduce_bucket_size"),
            allgather_bucket: elements(section, "allgather_bucket_size"),
            allgather_partitions: flag(section, "allgather_partitions"),
            multi_rank_bucket_allreduce: flag(section, "use_multi_rank_bucket_allreduce"),
            round_robin_gradients: flag(section, "round_robin_gradients"),
            offload_param: section.get("offload_param").and_then(offload_param),
            offload_optimizer: section.get("offload_optimizer").and_then(offload_optimizer),
            sub_group: elements(section, "sub_group_size"),
            prefetch_bucket: elements(section, "prefetch_bucket_size"),
            param_persistence_threshold: elements(section, "param_persistence_threshold"),
            model_persistence_threshold: elements(section, "model_persistence_threshold"),
            max_live_parameters: elements(section, "max_live_parameters"),
            max_reuse_distance: elements(section, "max_reuse_distance"),
            module_granularity_threshold: elements(section, "module_granularity_threshold"),
            gather_16bit_weights_on_model_save: flag(section, "gather_16bit_weights_on_model_save"),
            hpz_partition_size: count(section, "zero_hpz_partition_size", 1),
            quantized_weights: flag(section, "zero_quantized_weights"),
            quantized_nontrainable_weights: flag(section, "zero_quantized_nontrainable_weights"),
            quantized_gradients: flag(section, "zero_quantized_gradients"),
            mics_shard_size: mics_shard_size(section),
            memory_efficient_linear: flag(section, "memory_efficient_linear"),
            parameter_alignment: flag(section, "parameter_alignment"),
            allgather_sequential: flag(section, "allgather_sequential"),
            all_reduce_for_fetch: flag(section, "use_all_reduce_for_fetch_params"),
            computes_norm: flag_or_on(section, "compute_grad_norm"),
            leaf_modules: section.get("leaf_module").map(LeafModules::read).unwrap_or_default(),
        }
    }
}

fn stage(section: &PyValue) -> Stage {
    match count(section, "stage", 0) {
        0 => Stage::Zero,
        1 => Stage::One,
        2 => Stage::Two,
        _ => Stage::Three,
    }
}

/// The engine's default is -1, which means off.
fn mics_shard_size(section: &PyValue) -> Option<u64> {
    match section.get("mics_shard_size") {
        Some(PyValue::Int(size)) => u64::try_from(size).ok().filter(|size| *size > 0),
        _ => None,
    }
}

/// `none`, the default device, is no offload at all.
fn device(section: &PyValue) -> Option<OffloadDevice> {
    match section.get("device")? {
        PyValue::Str(device) if device == "cpu" => Some(OffloadDevice::Cpu),
        PyValue::Str(device) if device == "nvme" => match section.get("nvme_path") {
            Some(PyValue::Str(path)) => Some(OffloadDevice::Nvme(Some(path.clone()))),
            _ => Some(OffloadDevice::Nvme(None)),
        },
        _ => None,
    }
}

fn offload_param(section: &PyValue) -> Option<OffloadParam> {
    Some(OffloadParam {
        device: device(section)?,
        pin_memory: flag(section, "pin_memory"),
        buffer_count: count(section, "buffer_count", 0),
        buffer_size: elements(section, "buffer_size"),
        max_in_cpu: elements(section, "max_in_cpu"),
    })
}

fn offload_optimizer(section: &PyValue) -> Option<OffloadOptimizer> {
    Some(OffloadOptimizer {
        device: device(section)?,
        pin_memory: flag(section, "pin_memory"),
        buffer_count: count(section, "buffer_count", 0),
        ratio: ratio(section, "ratio", 1.0),
        pipeline_read: flag(section, "pipeline_read"),
        pipeline_write: flag(section, "pipeline_write"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{Circumstances, resolve};
    use crate::schema::EngineVersion;
    use crate::settings::{Batch, DataType, LossScale, MasterWeights, Precision};
    use crate::syntax::parse_hjson;

    const OFFLOAD: &str = r#"{
        "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
        "data_types": {"grad_accum_dtype": "fp32"}, "bf16": {"enabled": true},
        "zero_optimization": {"stage": 3, "stage3_max_live_parameters": 5e8,
            "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}}
    }"#;

    #[test]
    fn the_same_text_means_the_same_settings_in_every_version() {
        for version in EngineVersion::all() {
            let document = parse_hjson(OFFLOAD).unwrap();
            let resolution = resolve(document.root(), Circumstances::new(version, 8));
            let resolved = resolution
                .resolved
                .unwrap_or_else(|| panic!("{version}: {:?}", resolution.problems));
            let zero = resolved.zero();
            assert_eq!(zero.stage, Stage::Three);
            assert!(zero.overlap_comm, "stage 3 overlaps by default");
            assert_eq!(zero.max_live_parameters, Elements(500_000_000));
            assert_eq!(zero.reduce_bucket, Elements(500_000_000));
            assert_eq!(zero.offload_param.map(|offload| offload.device), Some(OffloadDevice::Cpu));
            let nvme = OffloadDevice::Nvme(Some("/nvme".to_owned()));
            assert_eq!(zero.offload_optimizer.map(|offload| offload.device), Some(nvme));
            assert_eq!(resolved.gradient_accumulation_type(), Some(DataType::Fp32), "{version}");
            assert_eq!(resolved.communication_type(), None, "{version}");
            assert_eq!(resolved.batch(), Some(Batch { train: 64, micro: 2, accumulation: 4 }));
            assert!(
                matches!(
                    resolved.precision(),
                    Precision::Bf16 { master_weights: MasterWeights::Fp32, .. }
                ),
                "{version}"
            );
        }
    }

    #[test]
    fn a_loss_scale_of_zero_is_dynamic_in_every_version() {
        for version in EngineVersion::all() {
            let read = |scale: &str| {
                let text = format!(
                    r#"{{"train_batch_size": 8, "fp16": {{"enabled": true, "loss_scale": {scale}}}}}"#
                );
                let document = parse_hjson(&text).unwrap();
                resolve(document.root(), Circumstances::new(version, 8))
                    .resolved
                    .unwrap()
                    .precision()
            };
            let scale = |precision| match precision {
                Precision::Fp16 { loss_scale, .. } => loss_scale,
                other => panic!("{version}: {other:?}"),
            };
            assert_eq!(scale(read("0")), LossScale::Dynamic { initial_power: 16 });
            assert_eq!(scale(read("128")), LossScale::Static(128.0));
        }
    }
}
