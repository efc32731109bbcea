//! The collectives that a rank called, as PyTorch's flight recorder holds them.
//!
//! On GPUs a call returns before the collective is done, so that a stack shows where the rank went on to, not what it waits
//! for. The recorder knows which calls have not finished. It is on by default in current versions of PyTorch.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Collectives whose inputs have the same shape on every rank.
const SAME_SHAPE: [&str; 5] =
    ["all_reduce", "allreduce", "broadcast", "_all_gather_base", "_reduce_scatter_base"];

/// How PyTorch describes the group that `init_process_group` makes.
pub(crate) const DEFAULT_GROUP: &str = "default_pg";

/// A call of a collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Such as `all_reduce`.
    pub(crate) operation: String,
    /// The shapes of its inputs, where they must be the same on every rank.
    pub(crate) shapes: Vec<Vec<u64>>,
    pub(crate) is_finished: bool,
}

impl Call {
    /// Whether ranks that made these calls take part in the same collective.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        (&self.operation, &self.shapes) == (&other.operation, &other.shapes)
    }
}

/// The calls of a rank by their number in their process group, by the name of the group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) groups: BTreeMap<String, BTreeMap<u64, Call>>,
}

impl Calls {
    /// Reads a list of what recorders wrote; nothing if no recorder is on or it writes something else.
    pub(crate) fn read(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Dump {
            #[serde(default)]
            entries: Vec<Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            collective_seq_id: u64,
            #[serde(default)]
            is_p2p: bool,
            /// Its name and what it is for.
            process_group: (String, String),
            /// `nccl:all_reduce`
            profiling_name: String,
            #[serde(default)]
            input_sizes: Vec<Vec<u64>>,
            #[serde(default)]
            retired: bool,
            #[serde(default)]
            state: String,
        }
        let dumps: Vec<Dump> = serde_json::from_str(json).ok()?;
        let mut groups: BTreeMap<String, BTreeMap<u64, Call>> = BTreeMap::new();
        // Numbers of sends and receives count per pair of ranks.
        for entry in dumps.into_iter().flat_map(|dump| dump.entries).filter(|entry| !entry.is_p2p) {
            let (name, purpose) = entry.process_group;
            // Several groups may serve the same purpose; only the default one is known by it.
            let group = if purpose == DEFAULT_GROUP { purpose } else { name };
            let operation = entry.profiling_name.rsplit(':').next().unwrap_or_default().to_owned();
            let has_same_shape = SAME_SHAPE.contains(&operation.as_str());
            let shapes = if has_same_shape { entry.input_sizes } else { Vec::new() };
            let is_finished = entry.retired || entry.state == "completed";
            let call = Call { operation, shapes, is_finished };
            groups.entry(group).or_default().insert(entry.collective_seq_id, call);
        }
        (!groups.is_empty()).then_some(Self { groups })
    }

    /// The first call that has not finished.
    pub(crate) fn pending(&self) -> Option<&Call> {
        self.groups.values().flat_map(BTreeMap::values).find(|call| !call.is_finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by `_dump_fr_trace_json` of torch 2.13.0 on a gloo rank that waits in its fourth `all_reduce`, shortened to
    /// its last two calls.
    const WRITTEN: &str = r#"[{"comm_lib_version":"","entries":[{"collective_seq_id":3,"input_dtypes":["Float"],"input_sizes":[[1000]],"is_p2p":false,"op_id":3,"output_dtypes":["Float"],"output_sizes":[[1000]],"p2p_seq_id":0,"pg_id":0,"process_group":["0","default_pg"],"profiling_name":"gloo:all_reduce","record_id":2,"retired":true,"state":"scheduled","thread_id":"140115414301568","thread_name":"python","time_created_ns":1795000989372974610,"time_discovered_completed_ns":0,"time_discovered_started_ns":0,"timeout_ms":1800000},{"collective_seq_id":4,"input_dtypes":["Float"],"input_sizes":[[1000]],"is_p2p":false,"op_id":4,"output_dtypes":["Float"],"output_sizes":[[1000]],"p2p_seq_id":0,"pg_id":0,"process_group":["0","default_pg"],"profiling_name":"gloo:all_reduce","record_id":3,"retired":false,"state":"scheduled","thread_id":"140115414301568","thread_name":"python","time_created_ns":1795000989373926494,"time_discovered_completed_ns":0,"time_discovered_started_ns":0,"timeout_ms":1800000}],"nccl_comm_state":{},"pg_config":{"":{"desc":"","name":"","ranks":"[0, 1]"}},"pg_status":{"0":{"last_completed_collective":"3","last_enqueued_collective":"4","last_started_collective":"-1"}},"version":"2.10"},{"comm_lib_version":"","nccl_comm_state":{},"pg_config":{},"pg_status":{},"version":"2.10"}]"#;

    #[test]
    fn what_pytorch_writes_is_read() {
        let calls = Calls::read(WRITTEN).expect("calls");
        let call = |is_finished| Call {
            operation: "all_reduce".to_owned(),
            shapes: vec![vec![1000]],
            is_finished,
        };
        let expected = BTreeMap::from([(3, call(true)), (4, call(false))]);
        assert_eq!(calls.groups, BTreeMap::from([("default_pg".to_owned(), expected)]));
        assert_eq!(calls.pending(), Some(&call(false)));
    }

    #[test]
    fn a_recorder_that_is_off_says_nothing() {
        for written in ["[]", "[{\"version\": \"2.10\"}]", "", "[{\"entries\": 3}]"] {
            assert_eq!(Calls::read(written), None, "{written}");
        }
    }
}
