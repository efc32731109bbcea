//! `zeropilot new` as a user runs it: files, streams and exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Bench {
    directory: TempDir,
}

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Bench {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a command line of words without quoting.
    fn run(&self, line: &str) -> Run {
        let output: Output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
            .current_dir(self.path())
            .env_clear()
            .args(line.split_whitespace())
            .output()
            .expect("the binary runs");
        Run {
            code: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    fn read(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.path().join(name)).expect("a file");
        serde_json::from_str(&text).expect("strict JSON")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).expect("a directory");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

impl Run {
    fn shown(&self) -> String {
        format!("exit code {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

const GUIDE: &str =
    "new --stage 3 --micro-batch 2 --grad-accum 32 --offload --world-size 4 -o ds_zero3.json";

#[test]
fn the_batch_includes_all_ranks() {
    let bench = Bench::new();
    let run = bench.run(GUIDE);
    insta::assert_snapshot!(run.shown());
    let config = bench.read("ds_zero3.json");
    assert_eq!(config["train_batch_size"], 2 * 32 * 4);
    assert_eq!(config["zero_optimization"]["offload_param"]["device"], "cpu");
    assert_eq!(bench.run("check ds_zero3.json --world-size 4").code, 0);
    assert_eq!(bench.names(), ["ds_zero3.json"]);
}

#[test]
fn it_speaks_chinese() {
    let bench = Bench::new();
    let run = bench.run(&format!("{GUIDE} --lang zh"));
    assert!(run.stdout.starts_with("DeepSpeed 配置已保存至 ds_zero3.json\n"), "{}", run.stdout);
    insta::assert_snapshot!(run.shown());
}

#[test]
fn the_trainers_own_numbers_are_left_to_it() {
    let bench = Bench::new();
    let run = bench
        .run("new zero3 --for hf-trainer --micro-batch 2 --grad-accum 8 --world-size 4 --lr 2e-5");
    insta::assert_snapshot!(run.shown());
    let config = bench.read("ds_zero3.json");
    assert_eq!(
        config,
        json!({
            "train_batch_size": "auto",
            "train_micro_batch_size_per_gpu": "auto",
            "gradient_accumulation_steps": "auto",
            "gradient_clipping": "auto",
            "bf16": {"enabled": "auto"},
            "fp16": {"enabled": "auto"},
            "zero_optimization": {
                "stage": 3,
                "reduce_bucket_size": "auto",
                "stage3_prefetch_bucket_size": "auto",
                "stage3_param_persistence_threshold": "auto",
                "stage3_gather_16bit_weights_on_model_save": true,
            },
        })
    );
}

/// The next steps that are printed work as they stand.
#[test]
fn the_printed_check_finds_nothing() {
    for target in ["deepspeed", "hf-trainer", "accelerate", "swift", "llamafactory", "axolotl"] {
        let bench = Bench::new();
        let run = bench.run(&format!("new zero3_offload --for {target} --world-size 8 --fp16"));
        let command = run.stdout.lines().find_map(|line| line.trim().strip_prefix("zeropilot "));
        let check = bench.run(command.expect("a next step"));
        assert_eq!(check.code, 0, "{target}: {}", check.shown());
    }
}

#[test]
fn the_printed_prediction_of_memory_runs() {
    for target in ["deepspeed", "hf-trainer", "swift"] {
        let bench = Bench::new();
        let run =
            bench.run(&format!("new zero3_offload --for {target} --world-size 8 --model gpt2"));
        let mut lines = run.stdout.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with("zeropilot memory "));
        let memory = bench.run(line.expect("a next step").trim_start_matches("zeropilot "));
        assert_eq!(memory.code, 0, "{target}: {}", memory.shown());
    }
}

#[test]
fn values_follow_from_the_model() {
    let bench = Bench::new();
    let run = bench.run("new zero3_nvme --nvme-path /nvme --model qwen3-8b --world-size 8");
    insta::assert_snapshot!(run.shown());
    let zero = &bench.read("ds_zero3_nvme.json")["zero_optimization"];
    assert_eq!(zero["reduce_bucket_size"], 4096 * 4096);
    assert_eq!(zero["stage3_param_persistence_threshold"], 10 * 4096);
    // The embedding has 151936 × 4096 elements, and a rank keeps an eighth of it.
    assert_eq!(zero["offload_param"]["buffer_size"], 151_936 * 4096 / 8);
}

#[test]
fn a_model_directory_is_read() {
    let bench = Bench::new();
    fs::create_dir(bench.path().join("model")).expect("a directory");
    let config = json!({
        "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
        "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1000,
    });
    fs::write(bench.path().join("model/config.json"), config.to_string()).expect("a file");
    assert_eq!(bench.run("new zero2 --model model").code, 0);
    assert_eq!(bench.read("ds_zero2.json")["zero_optimization"]["reduce_bucket_size"], 512 * 512);
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let bench = Bench::new();
    fs::write(bench.path().join("ds.json"), "mine").expect("a file");
    let run = bench.run("new zero2 -o ds.json");
    insta::assert_snapshot!(run.shown());
    assert_eq!(fs::read_to_string(bench.path().join("ds.json")).expect("a file"), "mine");
    assert_eq!(bench.run("new zero2 -o ds.json --force").code, 0);
    assert_eq!(bench.read("ds.json")["zero_optimization"]["stage"], 2);
    assert_eq!(bench.names(), ["ds.json"]);
}

/// One of three is there: none is written, and nothing is left behind.
#[test]
fn tiers_are_written_together_or_not_at_all() {
    let bench = Bench::new();
    fs::write(bench.path().join("ds_large.json"), "mine").expect("a file");
    assert_eq!(bench.run("new zero3 --tiers -o ds.json").code, 2);
    assert_eq!(bench.names(), ["ds_large.json"]);
    let run = bench
        .run("new zero3 --tiers -o ds.json --force --micro-batch 4 --grad-accum 4 --world-size 2");
    insta::assert_snapshot!(run.shown());
    assert_eq!(bench.names(), ["ds_large.json", "ds_medium.json", "ds_small.json"]);
    for tier in ["small", "medium", "large"] {
        assert_eq!(bench.read(&format!("ds_{tier}.json"))["train_batch_size"], 32);
    }
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written_to_is_said() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    let locked = bench.path().join("locked");
    fs::create_dir(&locked).expect("a directory");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).expect("permissions");
    let run = bench.run("new zero2 -o locked/ds.json");
    // The superuser may write anywhere.
    if run.code != 0 {
        assert!(run.stderr.contains("`locked/ds.json` cannot be written"), "{}", run.stderr);
    }
    for (path, words) in [("none/ds.json", "does not exist"), ("locked", "is a directory")] {
        let run = bench.run(&format!("new zero2 -o {path}"));
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
}

#[test]
fn nonsense_is_refused_with_a_way_out() {
    let bench = Bench::new();
    let lines = [
        "new",
        "new zero2 --offload-param cpu",
        "new zero3_nvme",
        "new zero3 --bf16 --fp16",
        "new zero2 --offload-optimizer nvme --nvme-path /nvme",
        "new zero2 --stage3-max-live-parameters 1e9",
        "new zero3 --for hf-trainer --activation-checkpointing",
        "new zero3 --world-size 6 --zero-hpz-partition-size 4",
        "new zero2 --world-size 3 --micro-batch 2 --global-batch 100",
        "new zero2 --scheduler WarmupDecayLR",
        "new zero2 --model no-such-model",
    ];
    let shown: Vec<String> = lines
        .into_iter()
        .map(|line| {
            let run = bench.run(line);
            assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{line}");
            format!("$ zeropilot {line}\n{}", run.stderr)
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
    assert_eq!(bench.names(), [""; 0]);
}

#[test]
fn a_key_the_engine_does_not_have_is_not_written() {
    let bench = Bench::new();
    let run =
        bench.run("new zero3 --stage3-module-granularity-threshold 9 --deepspeed-version 0.14.5");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("nothing was written"), "{}", run.stderr);
    assert_eq!(bench.names(), [""; 0]);
}

#[test]
fn standard_output_carries_nothing_but_the_config() {
    let bench = Bench::new();
    let run = bench.run("new zero1 -o -");
    let config: Value = serde_json::from_str(&run.stdout).expect("strict JSON");
    assert_eq!(config["zero_optimization"]["stage"], 1);
    assert!(run.stderr.contains("per GPU"), "{}", run.stderr);
    assert_eq!(bench.run("new zero1 -o - --quiet").stderr, "");
    assert_eq!(bench.run("new zero1 -o - --tiers").code, 2);
    assert_eq!(bench.names(), [""; 0]);
}

#[test]
fn programs_are_told_everything() {
    let bench = Bench::new();
    let run = bench
        .run("new zero2_offload --for swift --micro-batch 2 --grad-accum 4 --world-size 2 --json");
    let said: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(said["path"], "ds_zero2_offload.json");
    assert_eq!(
        said["batch"],
        json!({"micro_batch": 2, "gradient_accumulation_steps": 4, "world_size": 2, "global_batch": 16})
    );
    assert_eq!(
        said["arguments"],
        json!({"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "bf16": true})
    );
    assert_eq!(said["config"], bench.read("ds_zero2_offload.json"));
    let tiers: Value =
        serde_json::from_str(&bench.run("new zero3 --tiers --json -o -").stdout).expect("JSON");
    assert_eq!(tiers.as_array().map(Vec::len), Some(3));
    let refused = bench.run("new zero3_nvme --json");
    let said: Value = serde_json::from_str(&refused.stdout).expect("JSON");
    assert_eq!((refused.code, said["errors"].as_array().map(Vec::len)), (2, Some(1)));
}

#[test]
fn the_help_is_there_in_both_languages() {
    let bench = Bench::new();
    let english = bench.run("new --help").stdout;
    assert!(
        english.contains("Fine-grained keys") && english.contains("--stage3-max-live-parameters")
    );
    let chinese = bench.run("new --help --lang zh").stdout;
    assert!(chinese.contains("细粒度") && chinese.contains("退出码"), "{chinese}");
    let headings = chinese.lines().filter(|line| line.ends_with([':', '：']));
    for heading in headings {
        assert!(
            !heading.starts_with(char::is_alphabetic)
                || !heading.is_ascii()
                || heading.starts_with("Offload"),
            "{heading}"
        );
    }
}
