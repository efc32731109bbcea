//! `zeropilot check` as a user runs it: the real binary, its streams and its exit codes.

mod bench;

use std::fs;

use bench::{Bench, Run};
use serde_json::Value;

const TOO_SMALL: &str = r#"{
  "train_batch_size": 64,
  "gradient_accumulation_steps": 32,
  "zero_optimization": {"stage": 3}
}
"#;

const UNREAD: &str = r#"{
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 16,
  "bf16": {"enabled": true},
  "zero_optimization": {
    "stage": 3,
    "offload_param": {"device": "nvme", "nvme_path": "/nvme", "buffer_count": 5, "buffer_size": 1e8}
  },
  "memory_efficient_linear": false,
  "use_dynamic_tiling": true,
  "aio": {"block_size": 1048576, "queue_depth": 8, "single_submit": false},
  "activation_checkpointing": {"partition_activations": true, "cpu_checkpointing": true}
}
"#;

const PLACEHOLDERS: &str = r#"{
  "fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000, "min_loss_scale": 1},
  "zero_optimization": {
    "stage": 3, "stage3_gather_16bit_weights_on_model_save": true,
    "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto",
    "stage3_param_persistence_threshold": "auto"
  },
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": "auto",
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto"
}
"#;

const GOOD: &str = r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}}"#;

#[test]
fn a_batch_too_small_for_its_ranks() {
    let bench = Bench::new(&[("ds.json", TOO_SMALL)]);
    let run =
        bench.run(&["check", "ds.json", "--world-size", "4", "--deepspeed-version", "0.19.8"]);
    insta::assert_snapshot!(run.shown());
}

#[test]
fn a_batch_too_small_for_its_ranks_in_chinese() {
    let bench = Bench::new(&[("ds.json", TOO_SMALL)]);
    let run = bench.run(&["check", "ds.json", "--world-size", "4", "--lang", "zh"]);
    insta::assert_snapshot!(run.shown());
}

#[test]
fn keys_that_nobody_reads() {
    let bench = Bench::new(&[("ds.json", UNREAD)]);
    let run = bench.run(&["check", "ds.json", "--world-size", "4"]);
    insta::assert_snapshot!(run.shown());
}

#[test]
fn keys_that_nobody_reads_in_chinese() {
    let bench = Bench::new(&[("ds.json", UNREAD)]);
    let mut command = bench.command(&["check", "ds.json", "--world-size", "4"]);
    let run = Run::from(command.env("LANG", "zh_CN.UTF-8").output().expect("the binary runs"));
    insta::assert_snapshot!(run.shown());
}

#[test]
fn placeholders_for_the_trainer() {
    let bench = Bench::new(&[("ds.json", PLACEHOLDERS)]);
    let run = bench.run(&["check", "ds.json"]);
    insta::assert_snapshot!(run.shown());
    let run = bench.run(&["check", "ds.json", "--output-format", "json"]);
    let file = &run.json()[0];
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(file["verdict"], "accept");
    assert_eq!(file["front_end"], serde_json::json!({"name": "hf-trainer", "guessed": true}));
    assert_eq!(file["resolved"]["train_batch_size"], Value::Null);
    assert_eq!(file["resolved"]["zero_optimization"]["reduce_bucket_size"], "auto");
    let pending = file["pending"].as_array().expect("a list");
    let open = serde_json::json!({"path": "gradient_clipping", "filled_from": "max_grad_norm"});
    assert!(pending.contains(&open), "{pending:?}");
}

#[test]
fn training_arguments_fill_what_is_open() {
    let bench = Bench::new(&[("ds.json", PLACEHOLDERS)]);
    let run = bench.run(&[
        "check",
        "ds.json",
        "--output-format",
        "json",
        "--world-size",
        "8",
        "--per-device-train-batch-size",
        "2",
        "--gradient-accumulation-steps",
        "4",
        "--max-grad-norm",
        "1.0",
        "--bf16",
        "--hidden-size",
        "4096",
    ]);
    let file = &run.json()[0];
    assert_eq!(file["pending"], serde_json::json!([]));
    assert_eq!(file["resolved"]["train_batch_size"], 64);
    assert_eq!(file["resolved"]["zero_optimization"]["prefetch_bucket_size"], 15_099_494);
}

#[test]
fn arguments_of_the_trainer_mean_that_the_trainer_reads_the_file() {
    let config = r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}}"#;
    let bench = Bench::new(&[("ds.json", config)]);
    let run = bench.run(&[
        "check",
        "ds.json",
        "--output-format",
        "json",
        "--per-device-train-batch-size",
        "2",
    ]);
    let file = &run.json()[0];
    assert_eq!(file["front_end"], serde_json::json!({"name": "hf-trainer", "guessed": false}));
    assert_eq!((run.code, file["diagnostics"][0]["code"].as_str()), (1, Some("A08")));
}

#[test]
fn a_fraction_is_refused_for_the_ranks_there_are() {
    let config = r#"{"train_batch_size": 8, "gradient_accumulation_steps": 1.5}"#;
    let bench = Bench::new(&[("ds.json", config)]);
    let run = bench.run(&["check", "ds.json", "--world-size", "2"]);
    assert!(run.stdout.contains("is wrong for 2 ranks"), "{}", run.stdout);
}

#[test]
fn json_has_everything() {
    let bench = Bench::new(&[("ds.json", TOO_SMALL)]);
    let run = bench.run(&["check", "ds.json", "--world-size", "4", "--output-format", "json"]);
    let array: Value = serde_json::from_str(&run.stdout).expect("JSON");
    insta::assert_snapshot!(serde_json::to_string_pretty(&array).expect("JSON"));
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
}

#[test]
fn concise_and_github_lines() {
    let bench = Bench::new(&[("a,b.json", TOO_SMALL), ("ds.json", UNREAD)]);
    let run = bench.run(&["check", ".", "--world-size", "4", "--output-format", "concise"]);
    insta::assert_snapshot!(run.shown(), @r"
    exit code 1
    --- stdout
    a,b.json:2:23: error B03 `train_batch_size` 64 is below 4 ranks × 32 gradient accumulation steps = 128: micro-batch size is 0
    ds.json:9:3: warning K02 `memory_efficient_linear` must be inside `zero_optimization`
    ds.json:10:3: warning K01 DeepSpeed does not read the key `use_dynamic_tiling`
    --- stderr
    ");
    let run = bench.run(&["check", ".", "--world-size", "4", "--output-format", "github"]);
    insta::assert_snapshot!(run.shown());
}

#[test]
fn sarif_has_what_the_standard_requires() {
    let bench = Bench::new(&[("a b.json", TOO_SMALL), ("c.json", GOOD), ("ds.json", UNREAD)]);
    let run = bench.run(&["check", ".", "--world-size", "4", "--output-format", "sarif"]);
    assert_eq!(run.code, 1);
    let log: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let sarif = &log["runs"][0];
    let rules = sarif["tool"]["driver"]["rules"].as_array().expect("rules");
    let results = sarif["results"].as_array().expect("results");
    assert_eq!(results.len(), 3);
    for result in results {
        let index =
            usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().expect("a level")));
        assert!(!result["message"]["text"].as_str().expect("a message").is_empty());
        let region = &result["locations"][0]["physicalLocation"]["region"];
        assert!(region["startLine"].as_u64() >= Some(1), "{region}");
        assert!(region["startColumn"].as_u64() >= Some(1), "{region}");
    }
    let location = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(location["uri"], "a%20b.json");
    assert_eq!(
        results[0]["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"],
        "256"
    );
}

#[test]
fn exit_codes() {
    let bench = Bench::new(&[
        ("good.json", GOOD),
        ("note.json", r#"{"train_batch_size": 8, "_comment": "x"}"#),
        ("warning.json", r#"{"train_batch_size": 8, "nobody": 1}"#),
        ("error.json", "{"),
    ]);
    for (arguments, code) in [
        (&["check", "good.json"][..], 0),
        (&["check", "note.json"], 0),
        (&["check", "warning.json"], 1),
        (&["check", "error.json"], 1),
        (&["check", "missing.json"], 2),
        (&["check", "error.json", "missing.json"], 2),
        (&["check", "good.json", "--world-size", "0"], 2),
        (&["check", "good.json", "--no-such-flag"], 2),
        (&["check", "good.json", "--deepspeed-version", "newest"], 2),
        (&["check"], 2),
        (&["--help"], 0),
        (&["check", "--help"], 0),
        (&["--version"], 0),
    ] {
        let run = bench.run(arguments);
        assert_eq!(run.code, code, "{arguments:?}: {}", run.shown());
    }
}

#[test]
fn problems_with_inputs_are_talk() {
    let bench = Bench::new(&[("empty/readme.md", ""), ("good.json", GOOD)]);
    let run =
        bench.run(&["check", "missing.json", "empty", "good.json", "--output-format", "json"]);
    assert_eq!(run.json().len(), 1);
    insta::assert_snapshot!(run.stderr, @r"
    error: missing.json: no such file or directory
    error: empty: no .json or .hjson file in this directory
    ");
    let run = bench.run(&["check", "missing.json", "--lang", "zh", "-q"]);
    assert_eq!(run.stderr, "错误：missing.json：文件或目录不存在\n");
}

#[test]
fn standard_input_is_a_file() {
    let bench = Bench::new(&[]);
    let arguments = ["check", "-", "--world-size", "4", "--output-format", "concise"];
    let run = bench.run_with_input(&arguments, TOO_SMALL.as_bytes());
    assert!(run.stdout.starts_with("<stdin>:2:23: error B03 "), "{}", run.stdout);
}

#[test]
fn colour_is_asked_for_or_absent() {
    let bench = Bench::new(&[("ds.json", TOO_SMALL)]);
    let escape = '\u{1b}';
    let plain = bench.run(&["check", "ds.json"]);
    assert!(!plain.stdout.contains(escape));
    let always = bench.run(&["check", "ds.json", "--color", "always"]);
    assert!(always.stdout.contains(escape));
    let mut command = bench.command(&["check", "ds.json"]);
    let run = Run::from(
        command.env("NO_COLOR", "1").env("CLICOLOR_FORCE", "1").output().expect("it runs"),
    );
    assert!(!run.stdout.contains(escape));
    let json = bench.run(&["check", "ds.json", "--color", "always", "--output-format", "json"]);
    assert!(!json.stdout.contains(escape));
}

#[test]
fn files_from_elsewhere_give_a_terminal_no_orders() {
    let bench = Bench::new(&[(
        "evil\u{1b}[31m\n.json",
        "{\"train_batch_size\": 8, \"x\u{9b}31m\\u001b[2J\": 1, \"\\u202ey\": \"\u{1b}]0;t\u{7}\"}",
    )]);
    for format in ["human", "concise", "github"] {
        let run = bench.run(&["check", ".", "--output-format", format, "--front-end", "deepspeed"]);
        let harmful =
            |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!run.stdout.chars().any(harmful), "{format}: {:?}", run.stdout);
        assert!(!run.stderr.chars().any(harmful), "{format}: {:?}", run.stderr);
        assert_eq!(run.code, 1, "{}", run.shown());
    }
}

#[test]
fn unusual_texts() {
    let bench = Bench::new(&[]);
    bench.write("latin.json", b"{\"train_batch_size\": 8, \"x\": \"\xe9\"}");
    bench.write(
        "bom.json",
        b"\xef\xbb\xbf{\"train_batch_size\": \"auto\", \"zero_optimization\": {}}",
    );
    bench.write("crlf.json", b"{\r\n  \"train_batch_size\": 8,\r\n  \"nobody\": 1\r\n}\r\n");
    bench.write("twice.json", b"{\"train_batch_size\": 8,\n \"fp16\": {},\n \"fp16\": {}}");
    bench.write("ds_empty.json", b"");
    let run = bench.run(&["check", ".", "--output-format", "concise"]);
    insta::assert_snapshot!(run.shown(), @r"
    exit code 1
    --- stdout
    bom.json:1:1: error K10 this is not JSON: the file starts with a byte-order mark
    crlf.json:3:3: warning K01 DeepSpeed does not read the key `nobody`
    ds_empty.json:1:1: error B04 the file is empty, so no key sets the batch size
    latin.json:1:31: error K20 the file is not UTF-8 text from here on
    twice.json:3:2: error K11 `fp16` is written twice in the same object
    --- stderr
    ");
    let run = bench.run(&["check", ".", "-q"]);
    insta::assert_snapshot!(run.stdout);
}

#[test]
fn ten_megabytes_of_brackets() {
    let bench = Bench::new(&[]);
    bench.write("deep.json", &vec![b'['; 10 << 20]);
    for format in ["human", "json", "sarif"] {
        let run = bench.run(&["check", "deep.json", "--output-format", format]);
        assert_eq!(run.code, 1);
        // SARIF lists every rule with its words, whatever the file.
        let longest = if format == "sarif" { 200_000 } else { 20_000 };
        assert!(run.stdout.len() < longest, "{format}: {}", run.stdout.len());
    }
}

#[test]
fn what_is_too_large_or_no_file_is_not_read() {
    let bench = Bench::new(&[]);
    let file = fs::File::create(bench.path().join("large.json")).expect("a file");
    file.set_len(65 << 20).expect("a size");
    let run = bench.run(&["check", "large.json"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("larger than 64 MiB"), "{}", run.stderr);
    #[cfg(unix)]
    {
        let run = bench.run(&["check", "/dev/null"]);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("not a regular file"), "{}", run.stderr);
    }
}

#[test]
fn other_json_in_a_directory_is_left_alone_unless_it_is_named() {
    let files = [
        ("repo/package.json", "{\"name\": \"page\"}"),
        ("repo/config.json", "{\"hidden_size\": 4096}"),
        ("repo/ds.json", "{\"train_batch_size\": 8}"),
    ];
    let bench = Bench::new(&files);
    let run = bench.run(&["check", "repo"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert!(run.stdout.contains("1 file: 1 accepted, 0 rejected, 2 skipped"), "{}", run.stdout);
    let named = bench.run(&["check", "repo/package.json"]);
    assert_eq!(named.code, 2);
    assert!(named.stderr.contains("not a DeepSpeed config"), "{}", named.stderr);
}

#[test]
fn directories_keep_the_order_of_their_names() {
    let bench = Bench::new(&[]);
    for number in 0..1100 {
        bench.write(&format!("{:02}/{number:04}.json", number / 100), GOOD.as_bytes());
    }
    let run = bench.run(&["check", ".", "--output-format", "json"]);
    let names: Vec<String> =
        run.json().iter().map(|file| file["file"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(names.len(), 1100);
    assert!(names.is_sorted());
    let run = bench.run(&["check", "."]);
    assert_eq!(run.stdout, "1100 files: 1100 accepted, 0 rejected; nothing found\n");
}

#[test]
fn help_in_both_languages() {
    let bench = Bench::new(&[]);
    insta::assert_snapshot!(bench.run(&["check", "--help"]).stdout);
    insta::assert_snapshot!(bench.run(&["check", "--help", "--lang", "zh"]).stdout);
}

const MUON: &str = r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "reduce_scatter": true, "stage3_gather_16bit_weights_on_model_save": true}, "optimizer": {"type": "Muon", "params": {"lr": 0.02}}}"#;

#[test]
fn what_loads_and_fails_is_never_called_accepted() {
    let bench = Bench::new(&[("muon.json", MUON)]);
    let human = bench.run(&["check", "muon.json", "--world-size", "8"]);
    assert_eq!(human.code, 1);
    assert!(human.stdout.starts_with("muon.json: loads, but the run fails, ZeRO stage 3"));
    let end = "1 file: 0 accepted, 0 rejected, 1 loads but the run fails; 1 error\n";
    assert!(human.stdout.ends_with(end), "{}", human.stdout);
    let chinese = bench.run(&["check", "muon.json", "--world-size", "8", "--lang", "zh"]);
    assert!(chinese.stdout.starts_with("muon.json：能加载，但训练会失败，"), "{}", chinese.stdout);
    let json = bench.run(&["check", "muon.json", "--world-size", "8", "--json"]);
    assert_eq!((json.code, &json.json()[0]["verdict"]), (1, &Value::from("fail")));
    assert_eq!(json.json()[0]["resolved"]["train_batch_size"], 8);
}

/// The longest line is the one of the headline, which is not folded.
#[test]
fn a_fix_in_a_long_line_shows_only_what_it_changes() {
    let bench = Bench::new(&[("muon.json", MUON)]);
    let shown = bench.run(&["check", "muon.json", "--world-size", "8"]).stdout;
    let changed: Vec<&str> =
        shown.lines().filter(|line| line.starts_with("1 - ") || line.starts_with("1 + ")).collect();
    assert_eq!(changed.len(), 2, "{shown}");
    assert!(changed[0].contains("\"reduce_scatter\": true"), "{shown}");
    assert!(changed[1].contains("\"reduce_scatter\": false"), "{shown}");
    assert!(changed.iter().all(|line| line.chars().count() <= 100), "{shown}");
}

#[test]
fn syntax_that_only_deepspeed_reads_is_named_where_the_reader_is_a_guess() {
    let bench = Bench::new(&[("ds.json", "{\"train_batch_size\": 8,}")]);
    let guessed = bench.run(&["check", "ds.json", "--output-format", "concise"]);
    let note = "K10 the HF Trainer and accelerate reject this file: a comma before the closing `}`";
    assert!(guessed.code == 0 && guessed.stdout.contains(note), "{}", guessed.stdout);
    let said =
        bench.run(&["check", "ds.json", "--front-end", "deepspeed", "--output-format", "concise"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, ""));
}

#[test]
fn the_version_is_noted_only_where_results_do_not_show_it() {
    let bench = Bench::new(&[("ds.json", "{\"train_batch_size\": 8}")]);
    let usual = bench.run(&["check", "ds.json", "--world-size", "8"]);
    assert_eq!(usual.stderr, "");
    assert!(usual.stdout.contains("for DeepSpeed 0.19.8"), "{}", usual.stdout);
    let near =
        bench.run(&["check", "ds.json", "--world-size", "8", "--deepspeed-version", "0.17.4"]);
    assert!(near.stderr.contains("with the rules of 0.17.6"), "{}", near.stderr);
}
