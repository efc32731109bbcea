//! A directory with a config, and `zeropilot run` started in it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::supervised::Supervised;

pub(crate) fn here(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The loop that people start from.
pub(crate) fn example(name: &str) -> PathBuf {
    here("../../examples").join(name)
}

/// The program with faults on demand.
pub(crate) fn program() -> PathBuf {
    here("tests/run/program.py")
}

/// The program whose losses depend on nothing but the step.
pub(crate) fn numbered() -> PathBuf {
    here("tests/run/numbered.py")
}

/// A program that prints steps and writes parts of checkpoints without an engine, for what an engine adds nothing to.
pub(crate) fn stand_in() -> PathBuf {
    here("tests/run/stand_in.py")
}

/// A config of two ranks whose buffers do not hide what a stage saves on so small a model.
pub(crate) fn config(stage: u64) -> Value {
    let small = 1_000_000;
    json!({
        "train_batch_size": 4,
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 2,
        "bf16": {"enabled": true},
        "optimizer": {"type": "AdamW", "params": {"lr": 0.001}},
        "zero_optimization": {
            "stage": stage,
            "reduce_bucket_size": small,
            "allgather_bucket_size": small,
            "stage3_prefetch_bucket_size": small,
        },
    })
}

/// The model of `engine_loop.py --layers LAYERS --width 1024`, as its config says it.
pub(crate) fn model(layers: u64) -> Value {
    json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 64,
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "tie_word_embeddings": false,
    })
}

/// What starts in the directory.
pub(crate) struct Job {
    pub(crate) directory: TempDir,
    home: PathBuf,
    /// Of every process of this job, so that none escapes.
    pub(crate) mark: String,
    /// What `zeropilot` is started by, such as a limit.
    wrapper: Vec<OsString>,
    program: PathBuf,
    /// Whether the launch stands in a shell script.
    is_scripted: bool,
    environment: Vec<(String, OsString)>,
}

impl Job {
    pub(crate) fn new(home: &Path, stage: u64) -> Self {
        Self::with_config(home, &config(stage))
    }

    pub(crate) fn with_config(home: &Path, config: &Value) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("ds.json"), config.to_string()).expect("a config");
        Self {
            mark: directory.path().display().to_string(),
            directory,
            home: home.to_owned(),
            wrapper: Vec::new(),
            program: example("engine_loop.py"),
            is_scripted: false,
            environment: Vec::new(),
        }
    }

    /// Another one with the stand-in, whose record is listed beside the records of this one.
    pub(crate) fn beside(&self) -> Self {
        Self::new(&self.home, 2).running(stand_in()).with("ZEROPILOT_RUNS", self.path("runs"))
    }

    /// The same with this much data for each process.
    pub(crate) fn capped(self, cap: u64) -> Self {
        self.wrapped(&["prlimit", &format!("--data={cap}")])
    }

    /// The same started by another command.
    pub(crate) fn wrapped(self, words: &[&str]) -> Self {
        Self { wrapper: words.iter().map(OsString::from).collect(), ..self }
    }

    /// The same with another training program.
    pub(crate) fn running(self, program: PathBuf) -> Self {
        Self { program, ..self }
    }

    /// The same from a script, as `bash train.sh`.
    pub(crate) fn scripted(self) -> Self {
        Self { is_scripted: true, ..self }
    }

    /// The same with a variable set.
    pub(crate) fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What the training program and zeropilot printed.
    pub(crate) fn printed(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.path(name)).unwrap_or_default();
        read("out.log") + &read("err.log")
    }

    /// The steps and losses that were printed.
    pub(crate) fn losses(&self) -> Vec<(u64, f64)> {
        let out = fs::read_to_string(self.path("out.log")).unwrap_or_default();
        let read = |line: &str| {
            let mut words = line.strip_prefix("step ")?.split(' ');
            Some((words.next()?.parse().ok()?, words.nth(1)?.parse().ok()?))
        };
        out.lines().filter_map(read).collect()
    }

    /// The config of an attempt.
    pub(crate) fn config(&self, attempt: usize) -> Value {
        let text = fs::read_to_string(self.path(&format!("record/config-{attempt}.json")));
        serde_json::from_str(&text.expect("a config")).expect("JSON")
    }

    /// `zeropilot run OPTIONS -- LAUNCHER program.py --deepspeed ds.json ARGUMENTS` on two ranks.
    pub(crate) fn start(&self, options: &[&str], launcher: &str, arguments: &str) -> Supervised {
        let port = free_port();
        let launcher = match launcher {
            "deepspeed" => format!("deepspeed --num_gpus 2 --master_port {port}"),
            "torchrun" => format!("torchrun --nproc-per-node 2 --master-port {port}"),
            "accelerate" => format!(
                "accelerate launch --num_processes 2 --num_machines 1 --mixed_precision no \
                 --dynamo_backend no --main_process_port {port} --use_deepspeed \
                 --deepspeed_config_file ds.json"
            ),
            launcher => launcher.to_owned(),
        };
        let mut words: Vec<OsString> = launcher.split(' ').map(OsString::from).collect();
        words.push(self.program.clone().into());
        if !launcher.contains("--deepspeed_config_file") {
            words.extend(["--deepspeed".into(), "ds.json".into()]);
        }
        words.extend(arguments.split(' ').filter(|word| !word.is_empty()).map(OsString::from));
        if self.is_scripted {
            let launch = zeropilot_run::line(&words).replace("ds.json", "\"$CONFIG\"");
            let text =
                format!("set -e\nCONFIG=ds.json\ncd \"$(dirname \"$0\")\"\n{launch} \\\n  2>&1\n");
            fs::write(self.path("train.sh"), text).expect("a script");
            words = ["bash", "train.sh"].map(OsString::from).into();
        }
        self.start_command(options, &words)
    }

    /// `zeropilot run OPTIONS -- WORDS`.
    pub(crate) fn start_command(&self, options: &[&str], words: &[OsString]) -> Supervised {
        let own = OsString::from(env!("CARGO_BIN_EXE_zeropilot"));
        let mut started = self.wrapper.iter().chain(std::iter::once(&own));
        let child = Command::new(started.next().expect("a program"))
            .args(started)
            .current_dir(self.directory.path())
            .args(["run", "--record", "record"])
            .args(if options.contains(&"--grace") { &[][..] } else { &["--grace", "3s"] })
            .args(options)
            .arg("--")
            .args(words)
            .envs(zeropilot_oracle::surroundings(&self.home))
            .env("ZEROPILOT_TEST_MARK", &self.mark)
            .env("ZEROPILOT_RUNS", self.path("runs"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(fs::File::create(self.path("out.log")).expect("a file"))
            .stderr(fs::File::create(self.path("err.log")).expect("a file"))
            .spawn()
            .expect("zeropilot starts");
        Supervised::new(child, self.directory.path(), &self.mark)
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}
