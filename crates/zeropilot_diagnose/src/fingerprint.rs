//! What a line of a log says about how a run will end.
//!
//! The texts are data (`knowledge/fingerprints`); this is how they are found, one pass over a line for all of them.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde::Deserialize;

const DATA: &str = zeropilot_knowledge::text("fingerprints/logs.json");

/// What a fingerprint shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// A GPU is out of memory.
    DeviceMemory,
    /// The machine refused memory.
    HostMemory,
    /// A launcher says that a rank was killed.
    Killed,
    /// Ranks waited too long for each other.
    CollectiveTimeout,
    /// A rank of another machine went away.
    PeerLost,
    /// The loss scale cannot become smaller.
    LossScaleFloor,
    /// The config is refused.
    ConfigRejected,
    /// A GPU or a link between GPUs is broken.
    Hardware,
    /// `/dev/shm` is too small.
    SharedMemory,
    /// The driver is older than the CUDA that PyTorch was built for.
    DriverTooOld,
    /// A kernel failed on a GPU, or a call of CUDA did.
    CudaError,
    /// The model hub rejects requests or fails.
    HubUnavailable,
    /// The program asked for input, and there is none.
    NoInput,
    /// A data worker of a rank was killed.
    WorkerKilled,
    /// The ranks cannot meet: the port is taken, or the host is not known.
    NoMeeting,
    /// A launcher says how the first rank that failed ended.
    RankFailed,
    /// A disk is full.
    DiskFull,
    /// A checkpoint cannot be read.
    CheckpointUnreadable,
    /// A rank ended as it should.
    RankDone,
    /// Training ended as it should.
    TrainingDone,
    /// Worth a note.
    Warning,
    /// A launcher's report on the first failure follows.
    RootCause,
    /// An exception follows.
    Traceback,
}

impl Meaning {
    /// Whether it belongs into the record of a run.
    pub fn is_notable(self) -> bool {
        !matches!(self, Self::Traceback | Self::RankDone | Self::RootCause | Self::RankFailed)
    }
}

/// A text that logs are searched for.
#[derive(Debug, Deserialize)]
pub struct Fingerprint {
    /// Its name.
    pub id: String,
    texts: Vec<String>,
    /// What it shows.
    pub means: Meaning,
    /// Where it was seen, for whoever reads the data.
    #[cfg(test)]
    source: String,
}

#[derive(Deserialize)]
struct Data {
    fingerprints: Vec<Fingerprint>,
}

struct Searcher {
    automaton: AhoCorasick,
    /// Finds where the next text begins and nothing more, which is much faster.
    any: AhoCorasick,
    /// Of each text, whose it is; texts behind these tell of progress.
    owners: Vec<usize>,
    fingerprints: Vec<Fingerprint>,
}

/// Lines with one of these may tell how far training is, what it is doing, or what it holds.
const PROGRESS: [&str; 11] = [
    "Max_MA ",
    "loss",
    "step",
    "iteration",
    ", in ",
    "rank      :",
    "exitcode  :",
    "Step",
    "Loss",
    "from_pretrained",
    "%|",
];

static SEARCHER: LazyLock<Searcher> = LazyLock::new(|| {
    let data: Data = serde_json::from_str(DATA).expect("a test reads the fingerprints");
    let mut texts: Vec<&str> = Vec::new();
    let mut owners = Vec::new();
    for (owner, fingerprint) in data.fingerprints.iter().enumerate() {
        for text in &fingerprint.texts {
            texts.push(text);
            owners.push(owner);
        }
    }
    texts.extend(PROGRESS);
    let automaton = AhoCorasick::new(&texts).expect("a few short texts");
    let any = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .kind(Some(AhoCorasickKind::DFA))
        .build(&texts)
        .expect("a few short texts");
    Searcher { automaton, any, owners, fingerprints: data.fingerprints }
});

/// What was found in a line.
#[derive(Debug, Default)]
pub struct Found {
    /// What is known, without repeats.
    pub fingerprints: Vec<&'static Fingerprint>,
    /// Whether a closer look may tell of progress.
    pub may_tell: bool,
}

/// Where the first known text begins.
pub fn first(bytes: &[u8]) -> Option<usize> {
    SEARCHER.any.find(bytes).map(|hit| hit.start())
}

/// Looks at a line.
pub fn search(line: &[u8]) -> Found {
    let searcher: &'static Searcher = &SEARCHER;
    let mut found = Found::default();
    for hit in searcher.automaton.find_overlapping_iter(line) {
        // `OutOfMemoryError` ends like Python's `MemoryError`, whoever raises it.
        if is_within_a_name(line, hit.start()) {
            continue;
        }
        match searcher.owners.get(hit.pattern().as_usize()) {
            None => found.may_tell = true,
            Some(owner) => {
                let fingerprint = &searcher.fingerprints[*owner];
                if !found.fingerprints.iter().any(|known| known.id == fingerprint.id) {
                    found.fingerprints.push(fingerprint);
                }
            }
        }
    }
    // `torch.OutOfMemoryError: … Cannot allocate memory` is about the GPU.
    if found.fingerprints.iter().any(|known| known.means == Meaning::DeviceMemory) {
        found.fingerprints.retain(|known| known.means != Meaning::HostMemory);
    }
    // `unable to allocate shared memory(shm) …: No space left on device` is about no disk.
    if found.fingerprints.iter().any(|known| known.means == Meaning::SharedMemory) {
        found.fingerprints.retain(|known| known.means != Meaning::DiskFull);
    }
    found
}

/// Whether a name goes on where a text that is a name begins.
fn is_within_a_name(line: &[u8], start: usize) -> bool {
    line[start..].starts_with(b"MemoryError")
        && start > 0
        && line[start - 1].is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fingerprint_has_a_source_and_its_own_name() {
        let all = &SEARCHER.fingerprints;
        for (index, one) in all.iter().enumerate() {
            assert!(!one.source.is_empty() && !one.texts.is_empty(), "{}", one.id);
            assert!(all[index + 1..].iter().all(|other| other.id != one.id), "{}", one.id);
        }
    }

    #[test]
    fn what_pytorch_and_the_launchers_say_is_known() {
        let meaning =
            |line: &str| search(line.as_bytes()).fingerprints.first().map(|found| found.means);
        for (line, means) in [
            (
                "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
                Meaning::DeviceMemory,
            ),
            (
                "RuntimeError: [enforce fail at alloc_cpu.cpp:127] data. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes.",
                Meaning::HostMemory,
            ),
            ("  traceback : Signal 9 (SIGKILL) received by PID 77", Meaning::Killed),
            (
                "AssertionError: Check batch related parameters. train_batch_size is not equal",
                Meaning::ConfigRejected,
            ),
            ("OSError: [Errno 28] No space left on device: 'x'", Meaning::DiskFull),
            (
                "RuntimeError: unable to allocate shared memory(shm) for file </torch_4677_3613764118_0>: No space left on device (28)",
                Meaning::SharedMemory,
            ),
            (
                "RuntimeError: DataLoader worker (pid 4161) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
                Meaning::SharedMemory,
            ),
            (
                "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
                Meaning::DriverTooOld,
            ),
            (
                "RuntimeError: CUDA error: an illegal memory access was encountered",
                Meaning::CudaError,
            ),
            (
                "huggingface_hub.errors.HfHubHTTPError: 429 Too Many Requests for url: https://huggingface.co/api/models/gpt2.",
                Meaning::HubUnavailable,
            ),
            (
                "huggingface_hub.errors.HfHubHTTPError: Server error '503 Service Unavailable' for url 'https://huggingface.co/api/models/gpt2'",
                Meaning::HubUnavailable,
            ),
            (
                "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
                Meaning::HubUnavailable,
            ),
        ] {
            assert_eq!(meaning(line), Some(means), "{line}");
        }
        for line in [
            "step 3 loss 1.2",
            "huggingface_hub.errors.HfHubHTTPError: Client error '403 Forbidden' for url 'x'",
        ] {
            assert_eq!(meaning(line), None, "{line}");
        }
    }
}
