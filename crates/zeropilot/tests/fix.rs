//! `zeropilot check --fix` and `--diff`, as a user runs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A misspelt key (a guess), a deprecated one (the same in other words) and one that is nobody's.
const CONFIG: &str = "{\r\n\t\"train_batch_size\" : 8,\r\n\t\"gradient_clipp1ng\": 1.0,\r\n\t\"nobody\": 1,\r\n\t\"zero_optimization\": {\"stage\": 2, \"cpu_offload\": true}\r\n}";

fn with(text: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("ds.json"), text).expect("a file");
    directory
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory)
        .env_clear()
        .arg("check")
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

#[test]
fn what_may_be_mended_unseen_is_mended_and_the_rest_is_told() {
    let directory = with(CONFIG);
    let output = run(directory.path(), &["ds.json", "--fix", "--world-size", "2"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(
        text.contains("  fixed K14: write `\"offload_optimizer\": {\"device\": \"cpu\"}`\n"),
        "{text}"
    );
    assert!(text.contains("warning[K01]") && text.contains("gradient_clipp1ng"), "{text}");
    assert!(text.contains("1 finding fixed; 2 warnings\n"), "{text}");
    let after = fs::read_to_string(directory.path().join("ds.json")).expect("the file");
    let expected =
        CONFIG.replace("\"cpu_offload\": true", "\"offload_optimizer\": {\"device\": \"cpu\"}");
    assert_eq!(after, expected);
}

#[test]
fn guesses_are_applied_if_asked_for() {
    let directory = with(CONFIG);
    let arguments = ["ds.json", "--fix", "--unsafe-fixes", "--output-format", "json"];
    let output = run(directory.path(), &arguments);
    let files: Vec<Value> = serde_json::from_str(stdout(&output)).expect("JSON");
    let codes = |list: &str| -> Vec<&str> {
        let all = files[0][list].as_array().expect("an array").iter();
        all.map(|found| found["code"].as_str().expect("a code")).collect()
    };
    assert_eq!((codes("fixed"), codes("diagnostics")), (vec!["K01", "K14"], vec!["K01"]));
    let again = run(directory.path(), &arguments);
    let files: Vec<Value> = serde_json::from_str(stdout(&again)).expect("JSON");
    assert_eq!(files[0].get("fixed"), None);
}

#[test]
fn a_diff_is_shown_and_nothing_written() {
    let directory = with(CONFIG);
    let output = run(directory.path(), &["ds.json", "--diff"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stdout(&output),
        "--- ds.json\n+++ ds.json\n@@ -2,5 +2,5 @@\n \t\"train_batch_size\" : 8,\r\n \t\"gradient_clipp1ng\": 1.0,\r\n \t\"nobody\": 1,\r\n-\t\"zero_optimization\": {\"stage\": 2, \"cpu_offload\": true}\r\n+\t\"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\"}}\r\n }\n\\ No newline at end of file\n"
    );
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(talk.contains("1 finding in 1 file would be fixed"), "{talk}");
    let file = directory.path().join("ds.json");
    assert_eq!(fs::read_to_string(&file).expect("the file"), CONFIG);
    fs::write(&file, "{\"train_batch_size\": 8}").expect("a file");
    let output = run(directory.path(), &["ds.json", "--diff", "--lang", "zh"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
    assert!(String::from_utf8_lossy(&output.stderr).contains("没有可以修复的问题"));
}

#[test]
fn a_diff_can_be_applied_by_patch() {
    let directory = with(&CONFIG.replace("\r\n", "\n"));
    let diff = run(directory.path(), &["ds.json", "--diff", "--unsafe-fixes"]);
    fs::write(directory.path().join("x.patch"), &diff.stdout).expect("a file");
    let Ok(patched) =
        Command::new("patch").current_dir(directory.path()).args(["-p0", "-i", "x.patch"]).output()
    else {
        return;
    };
    assert!(patched.status.success(), "{patched:?}");
    let by_patch = fs::read_to_string(directory.path().join("ds.json")).expect("the file");
    let directory = with(&CONFIG.replace("\r\n", "\n"));
    run(directory.path(), &["ds.json", "--fix", "--unsafe-fixes"]);
    let by_fix = fs::read_to_string(directory.path().join("ds.json")).expect("the file");
    assert_eq!(by_patch, by_fix);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay_and_read_only_files_are_left_alone() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let directory = with(CONFIG);
    let file = directory.path().join("ds.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("permissions");
    symlink("ds.json", directory.path().join("link.json")).expect("a link");
    run(directory.path(), &["link.json", "--fix"]);
    let link = fs::symlink_metadata(directory.path().join("link.json")).expect("the link");
    assert!(link.file_type().is_symlink());
    let mode = fs::metadata(&file).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_ne!(fs::read_to_string(&file).expect("the file"), CONFIG);

    fs::write(&file, CONFIG).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).expect("permissions");
    let output = run(directory.path(), &["ds.json", "--fix"]);
    assert_eq!(output.status.code(), Some(2));
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(talk.contains("the fixes cannot be written"), "{talk}");
    assert_eq!(fs::read_to_string(&file).expect("the file"), CONFIG);
}

#[test]
fn a_job_is_mended_with_what_its_script_says() {
    let config = "{\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": \"auto\", \"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": \"auto\"}}";
    let directory = with(config);
    let script = "deepspeed --num_gpus 2 t.py --deepspeed ds.json --per_device_train_batch_size 2 --gradient_accumulation_steps 1 --bf16\n";
    fs::write(directory.path().join("a.sh"), script).expect("a file");
    let output = run(directory.path(), &["a.sh", "--fix", "--unsafe-fixes"]);
    let text = stdout(&output);
    assert!(text.contains("fixed A08"), "{text}");
    let after = fs::read_to_string(directory.path().join("ds.json")).expect("the file");
    assert!(after.starts_with("{\"train_micro_batch_size_per_gpu\": \"auto\""), "{after}");
}
