//! A preset in a precision for a program: the config as `zeropilot new` writes it, and the arguments it says to pass.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const PRESETS: [&str; 6] =
    ["zero1", "zero2", "zero2_offload", "zero3", "zero3_offload", "zero3_nvme"];
pub(crate) const PRECISIONS: [&str; 3] = ["bf16", "fp16", "fp32"];
pub(crate) const PROGRAMS: [Program; 3] =
    [Program::DeepSpeed, Program::HfTrainer, Program::Accelerate];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    DeepSpeed,
    HfTrainer,
    Accelerate,
}

impl Program {
    /// As `--for` takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DeepSpeed => "deepspeed",
            Self::HfTrainer => "hf-trainer",
            Self::Accelerate => "accelerate",
        }
    }

    /// The example that trains with it.
    pub(crate) fn script(self) -> &'static str {
        match self {
            Self::DeepSpeed => "engine_loop.py",
            Self::HfTrainer => "hf_trainer.py",
            Self::Accelerate => "accelerate_loop.py",
        }
    }
}

pub(crate) struct Combination {
    pub(crate) preset: &'static str,
    pub(crate) precision: &'static str,
    pub(crate) program: Program,
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} with {}", self.preset, self.precision, self.program.name())
    }
}

/// Where the examples are.
pub(crate) fn examples() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("examples").canonicalize().expect("the examples are there")
}

/// A config that was written, and what was said about it.
pub(crate) struct Written {
    directory: TempDir,
    said: Value,
}

impl Combination {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        PRESETS.into_iter().flat_map(|preset| {
            PRECISIONS.into_iter().flat_map(move |precision| {
                PROGRAMS.into_iter().map(move |program| Self { preset, precision, program })
            })
        })
    }

    /// Has `zeropilot new` write the config.
    pub(crate) fn write(&self) -> Written {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_zeropilot"));
        command
            .current_dir(directory.path())
            .args(["new", self.preset, "--for", self.program.name(), "--json", "-o", "ds.json"])
            .args(["--micro-batch", "2", "--grad-accum", "2", "--world-size", "2"])
            .args(["--deepspeed-version", "0.19.8"])
            .arg(format!("--{}", self.precision));
        if self.preset == "zero3_nvme" {
            command.arg("--nvme-path").arg(directory.path());
        }
        let output = command.output().expect("zeropilot runs");
        assert!(output.status.success(), "{self}: {}", String::from_utf8_lossy(&output.stderr));
        let said = serde_json::from_slice(&output.stdout).expect("JSON");
        Written { directory, said }
    }

    /// What the program is started with: what `zeropilot new` says, and what makes the run short.
    pub(crate) fn arguments(&self, written: &Written, steps: usize) -> Vec<String> {
        let mut arguments = vec!["--deepspeed".to_owned()];
        arguments.push(written.directory.path().join("ds.json").to_string_lossy().into_owned());
        let steps = steps.to_string();
        let told = written.said["arguments"].as_object().expect("arguments");
        let value = |value: &Value| value.to_string();
        match self.program {
            Program::DeepSpeed => arguments.extend(["--steps".to_owned(), steps]),
            Program::Accelerate => {
                arguments.extend(["--steps".to_owned(), steps, "--batch-size".to_owned()]);
                arguments.push(value(&told["batch_size"]));
            }
            Program::HfTrainer => {
                arguments.extend(
                    told.iter().flat_map(|(name, told)| [format!("--{name}"), value(told)]),
                );
                arguments.extend(["--max_steps".to_owned(), steps]);
                let short = "--logging_steps 1 --save_strategy no --report_to none --disable_tqdm true --use_cpu";
                arguments.extend(short.split(' ').map(str::to_owned));
            }
        }
        arguments
    }
}
