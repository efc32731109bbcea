//! Where ranks stood when nothing moved, and what explains it.

use serde::{Deserialize, Serialize};

/// What a rank was doing, as its stack shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// The forward pass.
    Forward,
    /// The backward pass.
    Backward,
    /// The optimizer step.
    Step,
    /// Writing a checkpoint.
    Saving,
    /// Reading a checkpoint.
    Loading,
    /// Waiting for the next batch of a data loader.
    Data,
    /// Waiting for another process to build a C++ extension.
    Building,
    /// Meeting the other ranks.
    Meeting,
}

/// Why the Python stack of a rank is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoStack {
    /// The system does not let py-spy trace the process.
    Refused,
    /// The process has no handler that answers, and py-spy is not installed.
    NoTool,
    /// The process did not answer in time.
    NoAnswer,
}

/// Ranks that stood at the same place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanksAt {
    /// The ranks.
    pub ranks: Vec<u32>,
    /// The collective they wait in, such as `all_reduce`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub collective: Option<String>,
    /// The collective that they called and that has not finished, where only PyTorch's flight recorder shows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pending: Option<String>,
    /// What they were doing, if the stack tells.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub activity: Option<Activity>,
    /// The file and line of the training program.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<String>,
    /// The innermost function with its file and line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub innermost: Option<String>,
    /// What the kernel says they wait for, where no stack is known: the state of the process and the function.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kernel: Option<String>,
    /// Why no stack is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub no_stack: Option<NoStack>,
}

/// What explains that ranks wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum HangReason {
    /// A signal or a debugger stopped ranks.
    Stopped,
    /// Ranks wait for a lock of PyTorch's extension cache.
    ExtensionLock {
        /// The lock, if it was found.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        path: Option<String>,
        /// Whether a process on this machine holds it.
        is_held: bool,
    },
    /// Ranks do something that needs all of them under a condition that holds on one.
    OneRank {
        /// The condition.
        condition: String,
        /// Where it stands.
        place: String,
        /// The rule of `zeropilot check` that knows it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rule: Option<String>,
    },
    /// Ranks wait for data, and the others for them.
    Data,
    /// Ranks are done with a loop in which the others still train.
    LeftLoop {
        /// Where the loop begins.
        place: String,
        /// A `continue` in it, by which ranks may have left out a step.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        skip: Option<String>,
    },
    /// Ranks are in different parts of the same loop.
    OtherPath {
        /// A `continue` in it, by which ranks may have left out a part.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        skip: Option<String>,
        /// The rule of `zeropilot check` about what most often leads to it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rule: Option<String>,
    },
    /// Ranks are in none of the collectives that the others wait in.
    Elsewhere,
    /// PyTorch's flight recorder holds no such call of some ranks, while the others wait in it.
    NotCalled {
        /// The process group.
        group: String,
        /// Which call of the group it is.
        call: u64,
        /// The collective.
        operation: String,
    },
    /// PyTorch's flight recorder holds another collective of some ranks, or one of other shapes, as the same call.
    OtherCall {
        /// The process group.
        group: String,
        /// Which call of the group it is.
        call: u64,
        /// The collective that most ranks called, with its shapes where ranks must agree on them.
        operation: String,
        /// What the others called.
        other: String,
    },
    /// All ranks of this machine wait in the same collective.
    AllWait,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_read_back() {
        for reason in [
            HangReason::Stopped,
            HangReason::ExtensionLock { path: None, is_held: false },
            HangReason::OtherPath { skip: None, rule: Some("H09".to_owned()) },
        ] {
            let json = serde_json::to_string(&reason).expect("JSON");
            assert_eq!(serde_json::from_str::<HangReason>(&json).expect(&json), reason);
        }
    }
}
