//! What a reader must know about an answer beside its numbers.

use zeropilot_cluster::Cluster;
use zeropilot_config::schema::EngineVersion;
use zeropilot_model::{Coverage, Model};

use crate::name::NumberFormat;

/// Something that changes what an answer is worth, or that was said and is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// fp16 is assumed, since these GPUs have no bf16.
    Fp16Assumed {
        /// Their name.
        card: &'static str,
    },
    /// bf16 is wanted on GPUs that have none.
    NoBf16 {
        /// Their name.
        card: &'static str,
    },
    /// No global batch is given, so that every strategy has its own.
    OpenBatch,
    /// Links between nodes were given, and there is only one node.
    NetworkUnused,
    /// The recommended strategy uses hpZ, which older engines compute wrongly.
    HpzVersion,
    /// The loss is that of the newest TRL: releases before 1.7 keep whole logits.
    TrlAssumed,
    /// The model has more than the language model that is counted.
    TextPartOnly,
    /// Speeds are those that so many ranks measured on one of the nodes.
    MeasuredMachine {
        /// The ranks.
        ranks: u64,
        /// Whether calls among the GPUs of a node were measured for as many as there are.
        links: bool,
    },
}

impl Note {
    /// Whether this engine, or an older release of its minor version, computes hpZ wrongly.
    pub(crate) fn is_hpz_wrong(engine: EngineVersion) -> bool {
        engine < EngineVersion::V0_18
    }

    /// What there is to say about training a model in a number format on a cluster.
    pub(crate) fn about(
        model: &Model,
        cluster: &Cluster,
        format: NumberFormat,
        is_assumed: bool,
    ) -> Vec<Self> {
        let is_part = matches!(model.coverage(), Coverage::TextPart { .. });
        let of_model = is_part.then_some(Self::TextPartOnly);
        let card = cluster.gpus.device.accelerator().filter(|card| card.lacks_bf16());
        let of_format = card.and_then(|card| match format {
            NumberFormat::Bf16 => Some(Self::NoBf16 { card: &card.name }),
            NumberFormat::Fp16 => is_assumed.then_some(Self::Fp16Assumed { card: &card.name }),
            NumberFormat::Fp32 => None,
        });
        let is_alone = cluster.gpus.layout.nodes == 1;
        let of_network = cluster.network.filter(|_| is_alone).map(|_| Self::NetworkUnused);
        let of_machine = cluster.measured().map(|measured| Self::MeasuredMachine {
            ranks: measured.ranks,
            links: is_alone && measured.ranks == cluster.gpus.layout.gpus_per_node,
        });
        let notes = of_model.into_iter().chain(of_format).chain(of_network);
        notes.chain(of_machine).collect()
    }
}
