//! The fine-grained keys of `zero_optimization`: which there are, what they hold, and which stages read them.
//!
//! A key that the stage at hand does not read is accepted by the engine and does nothing, so that it is not
//! written; keys that no stage reads (`allgather_partitions`) are not here at all. What each key is good for is not told here.

use std::collections::BTreeMap;

use zeropilot_units::Elements;

use crate::zero::Stage;

/// The section a key stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Section {
    /// `zero_optimization` itself.
    Zero,
    /// `offload_optimizer` in it.
    OffloadOptimizer,
    /// `offload_param` in it.
    OffloadParam,
}

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KnobKind {
    /// A number of tensor elements.
    Elements,
    /// A count of something else.
    Count,
    /// Yes or no.
    Flag,
    /// A share between 0 and 1.
    Share,
}

/// A value of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KnobValue {
    /// A number of tensor elements.
    Elements(Elements),
    /// A count of something else.
    Count(u64),
    /// Yes or no.
    Flag(bool),
    /// A share between 0 and 1.
    Share(f64),
}

impl KnobValue {
    /// What it is.
    pub fn kind(self) -> KnobKind {
        match self {
            Self::Elements(_) => KnobKind::Elements,
            Self::Count(_) => KnobKind::Count,
            Self::Flag(_) => KnobKind::Flag,
            Self::Share(_) => KnobKind::Share,
        }
    }
}

macro_rules! knobs {
    ($($name:ident $key:literal $section:ident $kind:ident $stages:tt $disk:literal),+ $(,)?) => {
        /// A fine-grained key.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Knob {
            $(#[doc = concat!("`", $key, "`")] $name),+
        }

        impl Knob {
            /// All of them, in the order they are written.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The key in its section.
            pub fn key(self) -> &'static str {
                match self { $(Self::$name => $key),+ }
            }

            /// The section it stands in.
            pub fn section(self) -> Section {
                match self { $(Self::$name => Section::$section),+ }
            }

            /// What it holds.
            pub fn kind(self) -> KnobKind {
                match self { $(Self::$name => KnobKind::$kind),+ }
            }

            /// The stages that read it.
            pub fn stages(self) -> &'static [u8] {
                match self { $(Self::$name => &$stages),+ }
            }

            /// Whether it is read only when its section names a disk.
            pub fn is_for_disk(self) -> bool {
                match self { $(Self::$name => $disk),+ }
            }
        }
    };
}

knobs! {
    ReduceBucketSize "reduce_bucket_size" Zero Elements [1, 2, 3] false,
    AllgatherBucketSize "allgather_bucket_size" Zero Elements [1, 2] false,
    OverlapComm "overlap_comm" Zero Flag [1, 2, 3] false,
    ContiguousGradients "contiguous_gradients" Zero Flag [1, 2, 3] false,
    ReduceScatter "reduce_scatter" Zero Flag [1, 2, 3] false,
    RoundRobinGradients "round_robin_gradients" Zero Flag [1, 2] false,
    UseMultiRankBucketAllreduce "use_multi_rank_bucket_allreduce" Zero Flag [1, 2] false,
    IgnoreUnusedParameters "ignore_unused_parameters" Zero Flag [1, 2] false,
    SubGroupSize "sub_group_size" Zero Elements [3] false,
    PrefetchBucketSize "stage3_prefetch_bucket_size" Zero Elements [3] false,
    ParamPersistenceThreshold "stage3_param_persistence_threshold" Zero Elements [3] false,
    ModelPersistenceThreshold "stage3_model_persistence_threshold" Zero Elements [3] false,
    MaxLiveParameters "stage3_max_live_parameters" Zero Elements [3] false,
    MaxReuseDistance "stage3_max_reuse_distance" Zero Elements [3] false,
    ModuleGranularityThreshold "stage3_module_granularity_threshold" Zero Elements [3] false,
    Gather16bitWeightsOnModelSave "stage3_gather_16bit_weights_on_model_save" Zero Flag [3] false,
    UseAllReduceForFetchParams "stage3_use_all_reduce_for_fetch_params" Zero Flag [3] false,
    AllgatherSequential "stage3_allgather_sequential" Zero Flag [3] false,
    HpzPartitionSize "zero_hpz_partition_size" Zero Count [3] false,
    QuantizedWeights "zero_quantized_weights" Zero Flag [3] false,
    QuantizedNontrainableWeights "zero_quantized_nontrainable_weights" Zero Flag [3] false,
    QuantizedGradients "zero_quantized_gradients" Zero Flag [3] false,
    MemoryEfficientLinear "memory_efficient_linear" Zero Flag [3] false,
    OptimizerRatio "ratio" OffloadOptimizer Share [3] false,
    OptimizerBufferCount "buffer_count" OffloadOptimizer Count [3] true,
    OptimizerPipelineRead "pipeline_read" OffloadOptimizer Flag [3] true,
    OptimizerPipelineWrite "pipeline_write" OffloadOptimizer Flag [3] true,
    OptimizerFastInit "fast_init" OffloadOptimizer Flag [3] true,
    ParamBufferCount "buffer_count" OffloadParam Count [3] true,
    ParamBufferSize "buffer_size" OffloadParam Elements [3] true,
    ParamMaxInCpu "max_in_cpu" OffloadParam Elements [3] true,
}

impl Knob {
    /// Whether a stage reads it.
    pub fn is_read_by(self, stage: Stage) -> bool {
        self.stages().contains(&stage.number())
    }

    /// Its name among all: the key, with the section in front where that is not `zero_optimization`.
    pub fn path(self) -> String {
        match self.section() {
            Section::Zero => self.key().to_owned(),
            Section::OffloadOptimizer => format!("offload_optimizer.{}", self.key()),
            Section::OffloadParam => format!("offload_param.{}", self.key()),
        }
    }
}

/// A value of another kind than the key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{knob:?} must be {expected:?}, not {found:?}")]
pub struct NotThisKind {
    /// The key.
    pub knob: Knob,
    /// What it holds.
    pub expected: KnobKind,
    /// What it was to be set to.
    pub found: KnobKind,
}

/// Keys with their values, each of the right kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Knobs(BTreeMap<Knob, KnobValue>);

impl Knobs {
    /// Sets a key.
    ///
    /// # Errors
    ///
    /// If it holds another kind of value.
    pub fn set(&mut self, knob: Knob, value: KnobValue) -> Result<(), NotThisKind> {
        let (expected, found) = (knob.kind(), value.kind());
        if expected != found {
            return Err(NotThisKind { knob, expected, found });
        }
        self.0.insert(knob, value);
        Ok(())
    }

    /// Sets a key that holds elements; others are left alone.
    pub(crate) fn set_elements(&mut self, knob: Knob, elements: Elements) {
        debug_assert_eq!(knob.kind(), KnobKind::Elements, "{knob:?}");
        self.0.insert(knob, KnobValue::Elements(elements));
    }

    /// The value of a key.
    pub fn get(&self, knob: Knob) -> Option<KnobValue> {
        self.0.get(&knob).copied()
    }

    /// The elements a key holds.
    pub fn elements(&self, knob: Knob) -> Option<Elements> {
        match self.get(knob) {
            Some(KnobValue::Elements(elements)) => Some(elements),
            _ => None,
        }
    }

    /// All that are set, in the order they are written.
    pub fn iter(&self) -> impl Iterator<Item = (Knob, KnobValue)> {
        self.0.iter().map(|(knob, value)| (*knob, *value))
    }
}

#[cfg(test)]
mod tests {
    use zeropilot_config::schema::{EngineVersion, FieldType};

    use super::*;

    /// The newest engine knows each key, and agrees about what it holds.
    #[test]
    fn every_key_is_the_engines() {
        let schema = EngineVersion::NEWEST.schema();
        for &knob in Knob::ALL {
            let model = match knob.section() {
                Section::Zero => "DeepSpeedZeroConfig",
                Section::OffloadOptimizer => "DeepSpeedZeroOffloadOptimizerConfig",
                Section::OffloadParam => "DeepSpeedZeroOffloadParamConfig",
            };
            let field = schema.models[model].field_for_key(knob.key());
            let field = field.unwrap_or_else(|| panic!("no engine reads {}", knob.path()));
            let fits = match (knob.kind(), &field.kind) {
                (KnobKind::Flag, FieldType::Optional(of)) => matches!(**of, FieldType::Bool),
                (KnobKind::Flag, kind) => matches!(kind, FieldType::Bool),
                (KnobKind::Share, kind) => matches!(kind, FieldType::Float),
                (KnobKind::Elements | KnobKind::Count, kind) => matches!(kind, FieldType::Int),
            };
            assert!(fits, "{} is {:?}", knob.path(), field.kind);
        }
    }

    #[test]
    fn a_value_of_another_kind_is_refused() {
        let mut knobs = Knobs::default();
        assert!(knobs.set(Knob::OverlapComm, KnobValue::Count(1)).is_err());
        assert_eq!(knobs.set(Knob::OverlapComm, KnobValue::Flag(true)), Ok(()));
        assert_eq!(knobs.get(Knob::OverlapComm), Some(KnobValue::Flag(true)));
    }
}
