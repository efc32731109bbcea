//! The arguments of `zeropilot run`, as typed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use zeropilot_ask::{MethodName, Training, tokens};
use zeropilot_run::{EventsCopy, NoCopy};
use zeropilot_text::{Language, tr};
use zeropilot_view::{escaped, system, talk};

use crate::value_error::ValueError;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot run -- torchrun --nproc-per-node 4 train.py --deepspeed ds.json
  zeropilot run --fallback --hang-after 10m -- deepspeed --num_gpus 8 train.py --deepspeed ds.json
  zeropilot run --fallback -- bash train.sh
  zeropilot run --fallback --checkpoints ckpt --resume-with '--resume {}' -- torchrun --nproc-per-node 2 train.py --deepspeed ds.json --save ckpt

Exit codes:
  0      completed
  2      could not be started
  3      rejected by the preflight check
  10     out of GPU or host memory, and no fallback left
  11     the training program failed
  12     a rank or the launcher was killed
  13     collective timeout, or connection to a machine lost
  14     hang
  15     diverged
  16     config rejected
  17     disk full
  18     checkpoint unreadable
  19     ended without evidence of completion, or before the last step
  20     a GPU failed
  21     the ranks could not connect to each other
  22     shared memory is full: /dev/shm is too small
  23     the NVIDIA driver is too old for this PyTorch
  24     the model hub rejected requests or failed
  128+N  stopped by signal N";

/// The arguments.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// Restart after an out-of-memory error with a config that needs less GPU or host memory: a higher stage, offload, or a smaller micro-batch size
    #[arg(long, alias = "ladder")]
    pub(crate) fallback: bool,
    /// Use the fallbacks of this plan (`zeropilot plan --json`)
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Try at most this many fallbacks
    #[arg(long, alias = "max-rungs", value_name = "N", default_value_t = 3)]
    pub(crate) max_fallbacks: u32,
    /// Restart at most this many times after kills, timeouts and hangs; if omitted, 2 if the run can resume from a checkpoint, otherwise 0
    #[arg(long, value_name = "N")]
    pub(crate) max_restarts: Option<u32>,
    /// Treat this much time without output as a hang, such as `10m`; `off` for never. Before the first step, a run counts as hung only if the ranks are also idle
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = limit)]
    pub(crate) hang_after: Limit,
    /// Treat this much time without a new step as a hang, even if the run prints output; `off` for never
    #[arg(long, value_name = "TIME", default_value = "off", value_parser = limit)]
    pub(crate) step_timeout: Limit,
    /// Stop after three steps in a row with a NaN or infinite loss or a NaN gradient norm
    #[arg(long)]
    pub(crate) stop_on_nan: bool,
    /// Stop if the loss jumps and stays high for three steps, and resume from the checkpoint before the jump
    #[arg(long)]
    pub(crate) rollback_on_spike: bool,
    /// Read the Python stacks of the ranks every 5 seconds to find and report the rank that the others wait for
    #[arg(long, conflicts_with = "no_stack_handler")]
    pub(crate) find_stragglers: bool,
    /// Do not install hooks through PYTHONPATH; during a hang, the ranks then do not write their Python stacks and collectives
    #[arg(long)]
    pub(crate) no_stack_handler: bool,
    /// Wait this long between asking processes to stop and killing them
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) grace: Duration,
    /// Look for the training program's checkpoints in this directory; if omitted, in its --output_dir or --save
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Add this option to the command to resume from a checkpoint, with `{}` for its directory; not needed for HF Trainer
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) resume_with: Option<String>,
    /// Allow a fallback or restart to start from scratch if it cannot resume from the run's checkpoint; if omitted, zeropilot stops instead
    #[arg(long)]
    pub(crate) allow_restart_from_scratch: bool,
    /// Continue the run in the record from its last checkpoint, for jobs that a scheduler restarts. If the record has no run, start a new one
    #[arg(long = "continue", requires = "record")]
    pub(crate) is_continued: bool,
    /// Exit with this code after SIGTERM, SIGUSR1 or SIGUSR2 if there is a checkpoint to resume from; if omitted, 128 + the signal number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) requeue_exit_code: Option<u8>,
    /// Report hangs, restarts, fallbacks, NaN and the run's end as JSON, by POST to a URL or to a shell command's standard input. Can be repeated
    #[arg(long, value_name = "URL|COMMAND")]
    pub(crate) notify: Vec<String>,
    /// Also write events to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Write the record of this run to this directory; if omitted, to one in ZEROPILOT_RUNS or the user's state directory
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Start without the preflight check
    #[arg(long)]
    pub(crate) no_preflight: bool,
    /// Predict GPU and host memory for this model; with --gpus, zeropilot also computes its fallbacks
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Set the GPUs: `8xA100-80G`, `5x44GB`, `4x8xH100` (nodes × GPUs per node), or only their number, such as `8`
    #[arg(long, value_name = "GPUS", requires = "model")]
    pub(crate) gpus: Option<String>,
    /// Set the tokens per sequence, such as `4096` or `128k` (k = 1024); if omitted, the value in the training command, or 2048
    #[arg(long, value_name = "N", value_parser = tokens, visible_alias = "max-seq-length", alias = "max-length")]
    pub(crate) seq_len: Option<u64>,
    /// Choose the parameters to train; if omitted, as in the training command, or all
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<MethodName>,
    /// Recompute every layer in the backward pass (gradient checkpointing); if omitted, as in the training command
    #[arg(long, visible_alias = "gradient-checkpointing")]
    pub(crate) grad_checkpointing: bool,
    /// Command that starts the training, after `--`
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl RunArguments {
    /// Whether fallbacks are to be tried.
    pub(crate) fn wants_fallbacks(&self) -> bool {
        self.fallback || self.plan.is_some()
    }

    /// How it is trained, as said to zeropilot; the rest is for the job to say.
    pub(crate) fn training(&self) -> Training {
        Training {
            seq_len: self.seq_len,
            method: self.method,
            grad_checkpointing: self.grad_checkpointing.then_some(true),
            ..Training::default()
        }
    }

    /// The file that events are added to, if one is named.
    pub(crate) fn open_events(&self, language: Language) -> Result<Option<EventsCopy>, String> {
        let open = |path: &PathBuf| {
            EventsCopy::open(path).map_err(|why| match why {
                NoCopy::NoReader => nobody_reads(path, language),
                NoCopy::Unwritable(error) => talk::cannot_write(path, &error, language),
            })
        };
        self.events.as_ref().map(open).transpose()
    }
}

fn nobody_reads(path: &Path, language: Language) -> String {
    let name = path.display().to_string();
    let name = escaped(&name);
    tr!(
        language,
        "error: no process reads the named pipe `{name}` (--events)\n  help: start the reader first, or write to a file",
        "错误：没有进程在读取命名管道 `{name}`（--events）\n  建议：先启动读取它的程序，或改为写入普通文件"
    )
}

/// A time that may be without end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(pub(crate) Option<Duration>);

fn limit(text: &str) -> Result<Limit, ValueError> {
    if matches!(text, "off" | "never" | "0") {
        return Ok(Limit(None));
    }
    match duration(text)? {
        Duration::ZERO => Err(ValueError::NoTime),
        duration => Ok(Limit(Some(duration))),
    }
}

fn duration(text: &str) -> Result<Duration, ValueError> {
    let duration: jiff::SignedDuration = text.parse().map_err(|_| ValueError::NotTime)?;
    Duration::try_from(duration).map_err(|_| ValueError::NegativeTime)
}

/// A name for a run that sorts by time, and where its record goes. Containers that share a home have the same process
/// numbers, so that a name may be taken.
pub(crate) fn place(record: Option<&Path>, home: &Path) -> (String, PathBuf) {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let id = format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), std::process::id());
    if let Some(record) = record {
        return (id, record.to_owned());
    }
    // Of two that want the same name, one makes the directory.
    let _ = std::fs::create_dir_all(home);
    let names = std::iter::once(id.clone()).chain((2..100).map(|count| format!("{id}-{count}")));
    let is_free = |name: &String| {
        let made = std::fs::create_dir(home.join(name));
        !made.is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists)
    };
    let id = names.into_iter().find(is_free).unwrap_or(id);
    let directory = home.join(&id);
    (id, directory)
}

/// What to say if the record cannot be written.
pub(crate) fn unwritable(directory: &Path, error: &std::io::Error, language: Language) -> String {
    let (directory, error) = (directory.display().to_string(), system::failure(error, language));
    let directory = escaped(&directory);
    tr!(
        language,
        "error: cannot write the record of the run to {directory}: {error}\n  help: choose another directory with --record DIR or ZEROPILOT_RUNS",
        "错误：无法把运行记录写入 {directory}：{error}\n  建议：用 --record DIR 或 ZEROPILOT_RUNS 换一个目录"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert!(duration("-5s").is_err() && duration("soon").is_err());
        assert!(limit("off").is_ok_and(|limit| limit.0.is_none()));
    }

    #[test]
    fn two_runs_of_one_second_and_number_have_two_records() {
        let home = tempfile::tempdir().expect("a directory");
        let places = [(); 3].map(|()| place(None, home.path()).1);
        assert!(places.iter().all(|place| place.is_dir()), "{places:?}");
        assert!(places[0] != places[1] && places[1] != places[2], "{places:?}");
    }
}
