//! Among how many groups of ranks a batch is divided: ranks that share samples count once.

use num_integer::Integer as _;
use num_traits::ToPrimitive;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::{Node, Value};

use crate::script::Sharing;

const SEQUENCE: &str = "sequence_parallel_size";
const BATCH_KEYS: [&str; 3] =
    ["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"];

/// What is known of the ranks that share samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Groups {
    /// The config alone decides: by `sequence_parallel_size`, or every rank has its own samples.
    ByConfig,
    /// The script groups this many ranks; the engine then does not ask the config.
    Of(usize),
    /// The script groups ranks, and only the run knows how many.
    Unknown,
}

impl Groups {
    /// Frameworks multiply their own numbers before the engine does, so what they group is left to the run.
    pub(crate) fn new(sharing: Option<Sharing>, front_end: FrontEnd) -> Self {
        match (sharing, front_end) {
            (None, _) => Self::ByConfig,
            (Some(Sharing::Ranks(1)), _) => Self::Of(1),
            (Some(Sharing::Ranks(ranks)), FrontEnd::DeepSpeed) => Self::Of(ranks),
            (Some(_), _) => Self::Unknown,
        }
    }

    /// The config as the engine reads it: a unit that it is handed goes before the key.
    pub(crate) fn without_key(self, root: &Node) -> Option<Node> {
        if self == Self::ByConfig || root.get(SEQUENCE).is_none() {
            return None;
        }
        let mut root = root.clone();
        if let Value::Object(members) = &mut root.value {
            members.retain(|member| member.key != SEQUENCE);
        }
        Some(root)
    }

    /// How many ranks are one for the batch, as far as it is known.
    pub(crate) fn ranks_of_one(self, root: &Node) -> usize {
        match self {
            Self::ByConfig => whole(root, SEQUENCE).unwrap_or(1).max(1),
            Self::Of(ranks) => ranks,
            Self::Unknown => 1,
        }
    }

    /// The number that the engine is asked with, for this many ranks.
    pub(crate) fn count(self, ranks: usize, root: &Node) -> usize {
        match self {
            Self::Of(of) if ranks.is_multiple_of(of) => ranks / of,
            Self::Unknown => fitting(root, ranks).unwrap_or(ranks),
            _ => ranks,
        }
    }

    /// Whether what is written settles the number of groups.
    pub(crate) fn is_settled(self, root: &Node) -> bool {
        self != Self::Unknown || BATCH_KEYS.iter().all(|key| whole(root, key).is_some())
    }
}

/// A number of groups of the same size for which the written batch sizes multiply, the largest of them.
fn fitting(root: &Node, ranks: usize) -> Option<usize> {
    let [train, micro, steps] = BATCH_KEYS.map(|key| whole(root, key));
    let (train, is_whole) = (train?, micro.is_some() && steps.is_some());
    let of_a_rank = micro.unwrap_or(1).checked_mul(steps.unwrap_or(1)).filter(|it| *it > 0)?;
    let groups = train.is_multiple_of(of_a_rank).then(|| train / of_a_rank)?;
    let common = groups.gcd(&ranks);
    (common > 0 && (!is_whole || common == groups)).then_some(common)
}

fn whole(root: &Node, key: &str) -> Option<usize> {
    match &root.get(key)?.value {
        Value::Int(number) => number.to_usize(),
        _ => None,
    }
}
