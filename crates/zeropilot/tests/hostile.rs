//! Inputs made to do harm: each is refused with a reason, at once, and nothing is written or run.

mod bench;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use bench::{Bench, Run};
use serde_json::json;

/// An error that the command explains, not one that it dies of, and soon.
fn refused(bench: &Bench, arguments: &[&str]) -> Run {
    let began = Instant::now();
    let run = bench.run(arguments);
    assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
    assert!(run.stderr.contains("error: "), "{arguments:?}: {}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{arguments:?}: {}", run.stderr);
    assert!(began.elapsed() < Duration::from_secs(5), "{arguments:?}: {:?}", began.elapsed());
    run
}

fn llama(key: &str, value: serde_json::Value) -> String {
    let mut config = json!({
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "intermediate_size": 11008, "vocab_size": 32000
    });
    config[key] = value;
    config.to_string()
}

#[test]
fn models_of_impossible_size_are_refused_by_every_verb() {
    let bench = Bench::new(&[]);
    let cases = [
        ("num_hidden_layers", json!(1_000_000_000)),
        ("hidden_size", json!(-4096)),
        ("hidden_size", json!(i64::MAX)),
        ("vocab_size", json!(u64::MAX)),
        ("intermediate_size", json!(1e300)),
        ("num_attention_heads", json!(0)),
        ("num_hidden_layers", json!("32")),
        ("vocab_size", json!([32000])),
    ];
    for (key, value) in cases {
        bench.write("config.json", llama(key, value).as_bytes());
        for verb in ["memory", "plan", "simulate"] {
            let run = refused(&bench, &[verb, "--model", "config.json", "--gpus", "8xH100"]);
            assert!(run.stderr.contains(key), "{verb}: {}", run.stderr);
        }
    }
}

#[test]
fn the_largest_sizes_together_overflow_nothing() {
    let bench = Bench::new(&[]);
    let largest = json!({
        "model_type": "llama", "hidden_size": 1 << 30, "num_hidden_layers": 16, "num_attention_heads": 1 << 20,
        "intermediate_size": 1 << 30, "vocab_size": 1 << 30
    });
    bench.write("config.json", largest.to_string().as_bytes());
    for verb in ["memory", "plan", "simulate"] {
        let run = bench.run(&[
            verb,
            "--model",
            "config.json",
            "--gpus",
            "16384x8xH100",
            "--seq-len",
            "1048576",
        ]);
        assert!(run.code <= 2 && !run.stderr.contains("panicked"), "{verb}: {}", run.stderr);
    }
}

#[test]
fn a_header_that_claims_two_to_the_63_bytes_is_not_believed() {
    let bench = Bench::new(&[]);
    fs::create_dir(bench.path().join("stored")).expect("a directory");
    let bytes = [&(1_u64 << 63).to_le_bytes()[..], b"{}"].concat();
    fs::write(bench.path().join("stored/model.safetensors"), bytes).expect("a file");
    let run = refused(&bench, &["memory", "--model", "stored", "--gpus", "1x24GB"]);
    assert!(run.stderr.contains("9223372036854775808"), "{}", run.stderr);
}

#[test]
fn what_is_no_file_is_not_opened() {
    let bench = Bench::new(&[]);
    let made = Command::new("mkfifo").arg(bench.path().join("pipe.json")).status().expect("mkfifo");
    assert!(made.success());
    symlink("loop.json", bench.path().join("loop.json")).expect("a link");
    symlink("nowhere.json", bench.path().join("dangling.json")).expect("a link");
    for path in ["pipe.json", "loop.json", "dangling.json", "/dev/zero"] {
        refused(&bench, &["check", path]);
        refused(&bench, &["memory", "--model", path, "--gpus", "1x24GB"]);
        refused(&bench, &["explain", path]);
    }
}

#[test]
fn a_disk_that_takes_nothing_is_said_and_leaves_nothing_behind() {
    let bench = Bench::new(&[]);
    let new = ["new", "zero3", "--micro-batch", "1", "--world-size", "2", "--force", "-o"];
    let made = Command::new("mkfifo").arg(bench.path().join("pipe.json")).status().expect("mkfifo");
    assert!(made.success());
    refused(&bench, &[&new[..], &["pipe.json"]].concat());
    assert!(!bench.path().join("pipe.json").is_file(), "the pipe was replaced");
    refused(&bench, &[&new[..], &["no/such/directory.json"]].concat());
    fs::create_dir(bench.path().join("directory.json")).expect("a directory");
    refused(&bench, &[&new[..], &["directory.json"]].concat());
    let left: Vec<_> = fs::read_dir(bench.path()).expect("a directory").collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn nothing_from_a_file_commands_the_terminal() {
    let bench = Bench::new(&[]);
    let name = "a\u{1b}]0;owned\u{7}\u{1b}[2J\nb.json";
    let text = "{\"\u{1b}[31mkey\": 1, \"train_batch_size\": \"\u{9b}5n\u{202e}\", \"fp16\": {\"\\u001b[8m\": 1}}";
    bench.write(name, text.as_bytes());
    for arguments in [
        &["check", name][..],
        &["check", name, "--output-format", "concise"],
        &["check", name, "--output-format", "github"],
        &["check", name, "--color", "always", "--lang", "zh"],
        &["explain", name],
        &["memory", "--model", name, "--gpus", "1x24GB"],
        &["rule", "\u{1b}[31mB03"],
        &["explain", "\u{1b}[31mstage"],
        &["memory", "--model", "gpt2", "--gpus", "\u{1b}[31m8"],
    ] {
        let run = bench.run(arguments);
        let told = format!("{}{}", run.stdout, run.stderr);
        // Colours are ours: letters of styles only.
        let rest = told
            .split("\u{1b}[")
            .skip(1)
            .map(|after| after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        for after in rest {
            assert!(
                arguments.contains(&"always") && after.starts_with('m'),
                "{arguments:?}: {after:?}"
            );
        }
        assert!(!told.contains(['\u{7}', '\u{9b}', '\u{202e}']), "{arguments:?}: {told:?}");
    }
}

#[test]
fn what_a_program_logs_commands_neither_the_screen_nor_the_report() {
    let bench = Bench::new(&[]);
    let logged = "printf 'step 1 loss 2.5\\n\\033]0;owned\\007\\033[2JRuntimeError: \\033[31mCUDA out of memory <script>\\n'; exit 1";
    let run = bench.run(&["run", "--no-preflight", "--record", "run", "--", "sh", "-c", logged]);
    assert_ne!(run.code, 0);
    let watched = bench.run(&["watch", "--once", "run"]);
    assert!(watched.code == 0 && watched.stdout.contains("2.5"), "{}", watched.shown());
    assert!(!watched.stdout.contains(['\u{1b}', '\u{7}']), "{:?}", watched.stdout);
    let reported = bench.run(&["report", "run"]);
    assert_eq!(reported.code, 0, "{}", reported.shown());
    let page = fs::read_to_string(bench.path().join("run/report.html")).expect("a page");
    assert!(!page.contains(['\u{1b}', '\u{7}']), "escape sequences reach the page");
    assert!(!page.contains("memory <script>"), "a log line is markup");
}

#[test]
fn a_secret_argument_is_in_no_file_of_the_record() {
    let bench = Bench::new(&[]);
    bench.run(&["run", "--record", "run", "--", "/bin/true", "--hub_token", "never-written"]);
    let record = fs::read_dir(bench.path().join("run")).expect("a record");
    let files: Vec<_> = record.map(|entry| entry.expect("an entry").path()).collect();
    assert!(files.iter().any(|path| path.ends_with("command.sh")), "{files:?}");
    for path in files.iter().filter(|path| path.is_file()) {
        let text = fs::read_to_string(path).expect("text");
        assert!(!text.contains("never-written"), "{}: {text}", path.display());
    }
}

/// Every printed command, given to bash with `train.py`'s launchers replaced by one that tells its arguments, names the
/// file it is about as one word.
#[test]
fn printed_commands_do_what_they_say_in_a_shell() {
    let bench = Bench::new(&[]);
    let config = "a b;$(touch owned)`touch owned`'\"\\ &|>x*?.json";
    let run = bench.run(&[
        "plan",
        "--model",
        "qwen3-0.6b",
        "--gpus",
        "2x24GB",
        "--for",
        "hf-trainer",
        "-o",
        config,
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(bench.path().join(config).is_file());
    let launchers = ["deepspeed", "torchrun", "accelerate", "swift", "llamafactory-cli"];
    let tell = "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done\n";
    for launcher in launchers {
        bench.write(launcher, tell.as_bytes());
        let changed = Command::new("chmod").arg("+x").arg(bench.path().join(launcher)).status();
        assert!(changed.expect("chmod").success());
    }
    let mut seen = 0;
    for line in run.stdout.lines().map(str::trim) {
        if !launchers.iter().any(|launcher| line.split(' ').any(|word| word == *launcher)) {
            continue;
        }
        let output = Command::new("bash")
            .args(["-c", line])
            .current_dir(bench.path())
            .env("PATH", format!("{}:/usr/bin:/bin", bench.path().display()))
            .output()
            .expect("bash");
        let words = String::from_utf8(output.stdout).expect("text");
        assert!(
            words.lines().any(|word| word.strip_prefix("deepspeed=").unwrap_or(word) == config),
            "{line}\n{words}"
        );
        assert!(!bench.path().join("owned").exists(), "{line}");
        seen += 1;
    }
    assert!(seen >= launchers.len(), "{}", run.stdout);
}
