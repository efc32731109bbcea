//! The command that starts a run, for the launchers people use, safe to paste into a shell.
//!
//! Nothing is started here, and what a launcher does with its arguments is not known here.

use std::num::NonZeroU64;

use zeropilot_config::front_end::FrontEnd;

use crate::arguments::Argument;
use crate::target::Target;

/// Who starts the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Launcher {
    /// `deepspeed`.
    DeepSpeed,
    /// `torchrun`.
    Torchrun,
    /// `accelerate launch`.
    Accelerate,
    /// `swift sft` or `swift rlhf`.
    Swift,
    /// `llamafactory-cli train`.
    LlamaFactory,
}

impl Launcher {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::DeepSpeed, Self::Torchrun, Self::Accelerate, Self::Swift, Self::LlamaFactory];

    /// Its name in machine formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::DeepSpeed => "deepspeed",
            Self::Torchrun => "torchrun",
            Self::Accelerate => "accelerate",
            Self::Swift => "swift",
            Self::LlamaFactory => "llamafactory",
        }
    }

    /// What it starts.
    pub fn script(self) -> &'static str {
        if self == Self::LlamaFactory { "train.yaml" } else { "train.py" }
    }

    /// The program it starts with a config written for `target`; nothing if no program it starts reads that as it is.
    pub fn reader(self, target: Target) -> Option<Target> {
        match (self, target.front_end()) {
            (Self::Swift, FrontEnd::HfTrainer) => Some(Target::Swift),
            (Self::LlamaFactory, FrontEnd::HfTrainer) => Some(Target::LlamaFactory),
            (_, FrontEnd::HfTrainer) => Some(Target::HfTrainer),
            (Self::DeepSpeed | Self::Torchrun, FrontEnd::DeepSpeed)
            | (Self::Accelerate, FrontEnd::Accelerate) => Some(target),
            _ => None,
        }
    }

    /// The one people use for a program; axolotl starts itself.
    pub fn of(target: Target) -> Option<Self> {
        Some(match target {
            Target::DeepSpeed => Self::DeepSpeed,
            Target::HfTrainer => Self::Torchrun,
            Target::Accelerate => Self::Accelerate,
            Target::Swift => Self::Swift,
            Target::LlamaFactory => Self::LlamaFactory,
            Target::Axolotl => return None,
        })
    }
}

/// The machines of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machines<'a> {
    /// This one.
    One,
    /// Several. All launchers but `deepspeed` are started on each of them, with `NODE_RANK` set to its number.
    Several {
        /// How many.
        count: NonZeroU64,
        /// The address of the first.
        main_address: &'a str,
        /// The file that lists them, which `deepspeed` reads.
        hostfile: &'a str,
    },
}

/// A run to be started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job<'a> {
    /// The machines.
    pub machines: Machines<'a>,
    /// Ranks on each.
    pub ranks_per_machine: NonZeroU64,
    /// The training script; for LLaMA-Factory the YAML file; swift has none.
    pub script: &'a str,
    /// The DeepSpeed config.
    pub config: &'a str,
    /// What the program is told.
    pub arguments: &'a [Argument],
    /// What swift calls the task, where it is not the next token.
    pub rlhf_type: Option<&'a str>,
}

const PORT: &str = "29500";

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// As it stands.
    Text(String),
    /// What an environment variable holds on the machine where the command runs.
    Variable(&'static str),
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A command with the variables it is started with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaunchCommand {
    /// Variables and their values.
    pub environment: Vec<(&'static str, Word)>,
    /// The program and its arguments.
    pub words: Vec<Word>,
}

/// A word that no shell can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} contains a zero byte, which a command line cannot contain")]
pub struct NotAShellWord(pub String);

impl LaunchCommand {
    /// As a line for a POSIX shell.
    ///
    /// # Errors
    ///
    /// If a word holds a zero byte.
    pub fn shell(&self) -> Result<String, NotAShellWord> {
        let quoted = |word: &Word| match word {
            Word::Variable(name) => Ok(format!("\"${name}\"")),
            Word::Text(text) => match shlex::try_quote(text) {
                Ok(quoted) => Ok(quoted.into_owned()),
                Err(_) => Err(NotAShellWord(text.clone())),
            },
        };
        let mut parts = Vec::new();
        for (name, value) in &self.environment {
            parts.push(format!("{name}={}", quoted(value)?));
        }
        for word in &self.words {
            parts.push(quoted(word)?);
        }
        Ok(parts.join(" "))
    }

    fn words(mut self, words: impl IntoIterator<Item = impl Into<Word>>) -> Self {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    fn set(mut self, name: &'static str, value: impl Into<Word>) -> Self {
        self.environment.push((name, value.into()));
        self
    }
}

impl Job<'_> {
    /// The command.
    pub fn command(&self, launcher: Launcher) -> LaunchCommand {
        match launcher {
            Launcher::DeepSpeed => self.deepspeed(),
            Launcher::Torchrun => self.torchrun(),
            Launcher::Accelerate => self.accelerate(),
            Launcher::Swift => {
                let task = match self.rlhf_type {
                    Some(task) => vec!["swift", "rlhf", "--rlhf_type", task],
                    None => vec!["swift", "sft"],
                };
                self.torchrun_variables()
                    .words(task)
                    .words(["--deepspeed", self.config])
                    .words(self.options())
            }
            Launcher::LlamaFactory => {
                let told = self.arguments.iter();
                // Behind a YAML file it takes `key=value` and nothing else.
                let told = told.map(|argument| format!("{}={}", argument.name, argument.value));
                LaunchCommand::default()
                    .set("FORCE_TORCHRUN", "1")
                    .and(self.torchrun_variables())
                    .words(["llamafactory-cli", "train", self.script])
                    .words([format!("deepspeed={}", self.config)])
                    .words(told)
            }
        }
    }

    fn deepspeed(&self) -> LaunchCommand {
        let ranks = self.ranks_per_machine.to_string();
        let command = LaunchCommand::default().words(["deepspeed"]);
        let command = match self.machines {
            Machines::One => command.words(["--num_gpus", &ranks]),
            Machines::Several { count, main_address, hostfile } => command
                .words(["--hostfile", hostfile, "--num_nodes", &count.to_string()])
                .words(["--num_gpus", &ranks, "--master_addr", main_address]),
        };
        command.words([self.script, "--deepspeed", self.config]).words(self.options())
    }

    fn torchrun(&self) -> LaunchCommand {
        let ranks = self.ranks_per_machine.to_string();
        let command = LaunchCommand::default().words(["torchrun"]);
        let command = match self.machines {
            Machines::One => command.words(["--standalone", "--nproc-per-node", &ranks]),
            Machines::Several { count, main_address, .. } => command
                .words(["--nnodes", &count.to_string(), "--nproc-per-node", &ranks, "--node-rank"])
                .words([Word::Variable("NODE_RANK")])
                .words(["--master-addr", main_address, "--master-port", PORT]),
        };
        command.words([self.script, "--deepspeed", self.config]).words(self.options())
    }

    /// accelerate counts the ranks of all machines together, and takes the config itself.
    fn accelerate(&self) -> LaunchCommand {
        let machines = match self.machines {
            Machines::One => NonZeroU64::MIN,
            Machines::Several { count, .. } => count,
        };
        let ranks = self.ranks_per_machine.saturating_mul(machines).to_string();
        let command = LaunchCommand::default()
            .words(["accelerate", "launch", "--use_deepspeed"])
            .words(["--deepspeed_config_file", self.config, "--num_processes", &ranks])
            .words(["--num_machines", &machines.to_string()]);
        let command = match self.machines {
            Machines::One => command,
            Machines::Several { main_address, .. } => command
                .words(["--machine_rank"])
                .words([Word::Variable("NODE_RANK")])
                .words(["--main_process_ip", main_address, "--main_process_port", PORT])
                .words(["--deepspeed_multinode_launcher", "standard"]),
        };
        command.words([self.script]).words(self.options())
    }

    /// What swift and LLaMA-Factory hand to torchrun.
    fn torchrun_variables(&self) -> LaunchCommand {
        let command =
            LaunchCommand::default().set("NPROC_PER_NODE", self.ranks_per_machine.to_string());
        match self.machines {
            Machines::One => command,
            Machines::Several { count, main_address, .. } => command
                .set("NNODES", count.to_string())
                .set("NODE_RANK", Word::Variable("NODE_RANK"))
                .set("MASTER_ADDR", main_address)
                .set("MASTER_PORT", PORT),
        }
    }

    fn options(&self) -> Vec<String> {
        let told = self.arguments.iter();
        told.flat_map(|argument| [format!("--{}", argument.name), argument.value.clone()]).collect()
    }
}

impl LaunchCommand {
    fn and(mut self, other: Self) -> Self {
        self.environment.extend(other.environment);
        self.words.extend(other.words);
        self
    }
}
