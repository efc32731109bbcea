//! What a verdict rests on.

use serde::{Deserialize, Serialize};

use crate::cause::Ending;
use crate::hang::{HangReason, RanksAt};

/// One observation behind a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// How the command ended.
    CommandEnded(Ending),
    /// Ranks that still ran when the command had ended.
    RanksLeft(Vec<u32>),
    /// Ranks that reported a normal end.
    RanksDone {
        /// That did.
        done: u64,
        /// That were seen.
        seen: u64,
    },
    /// Processes that the kernel killed for memory.
    KernelKills(u64),
    /// A signal ended a rank.
    RankSignaled {
        /// The rank, if known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rank: Option<u32>,
        /// The signal.
        signal: i32,
    },
    /// The rank that failed first.
    FailedFirst(u32),
    /// A rank that left without an error while the others worked.
    LeftEarly(u32),
    /// The exception of the rank that failed first.
    Exception {
        /// The rank, if the line tells.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rank: Option<u32>,
        /// The data worker of the rank, if one raised it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        worker: Option<u32>,
        /// Its last line.
        line: String,
        /// The file and line of the program that it came from.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        place: Option<String>,
    },
    /// The loss is not a finite number.
    LossNotFinite,
    /// The loss or the norm of the gradients is no finite number from this step on.
    NotFiniteSince(u64),
    /// The norm of the gradients is no finite number from this step on, though the loss is.
    NormNotFiniteSince(u64),
    /// Training had made all steps that were asked for.
    StepsDone(u64),
    /// The fullest disk that the run writes to.
    Disk {
        /// Where it is mounted.
        mount: String,
        /// Bytes that are free.
        free: u64,
        /// Bytes of all of it.
        total: u64,
    },
    /// Where ranks stood when nothing moved.
    RanksAt(RanksAt),
    /// What explains a hang.
    Hang(HangReason),
    /// The last complete checkpoint that the run wrote, from which a later start can resume.
    ResumableFrom {
        /// Its step.
        step: u64,
        /// The directory with its parts.
        checkpoint: String,
    },
    /// A line of the log.
    LogLine(String),
    /// Words of the system, or of a record from before evidence was data.
    #[serde(untagged)]
    Text(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_reads_back_and_plain_texts_still_read() {
        for evidence in [
            Evidence::CommandEnded(Ending::Exited(1)),
            Evidence::CommandEnded(Ending::Unknown),
            Evidence::RankSignaled { rank: None, signal: 9 },
            Evidence::LossNotFinite,
            Evidence::LogLine("loss_not_finite".to_owned()),
            Evidence::Text("the command exited with 1".to_owned()),
        ] {
            let json = serde_json::to_string(&evidence).expect("JSON");
            assert_eq!(serde_json::from_str::<Evidence>(&json).expect(&json), evidence);
        }
        let ended = Evidence::CommandEnded(Ending::Exited(1));
        let json = serde_json::to_string(&ended).expect("JSON");
        assert_eq!(json, r#"{"command_ended":{"exited":1}}"#);
    }
}
