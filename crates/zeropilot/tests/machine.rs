//! Machine profiles as users give them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn profile(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/machines");
    directory.join(name).display().to_string()
}

fn zeropilot(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zeropilot"));
    command.args(arguments).env("XDG_CONFIG_HOME", home).env("LANG", "C").env_remove("LC_ALL");
    command.output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A home without a profile.
fn nowhere() -> PathBuf {
    PathBuf::from("/nonexistent")
}

const SMALL: [&str; 6] = ["--model", "qwen3-0.6b", "--seq-len", "128", "--stage", "2"];

#[test]
fn a_profile_of_processors_times_a_step() {
    let cpu = profile("cpu.json");
    let mut arguments = vec!["simulate", "--machine", &cpu, "--grad-accum", "3", "--json"];
    arguments.extend(SMALL);
    let output = zeropilot(&nowhere(), &arguments);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // Three micro steps of 0.5 s and an optimizer step of 2 s; the profile's spread is 0.9 to 1.2.
    for (name, seconds) in [("expected", 3.5), ("low", 3.15), ("high", 4.2)] {
        let said = answer["step"][name].as_f64().expect("a number");
        assert!((said - seconds).abs() < 0.01, "{name}: {said}");
    }
    assert_eq!(answer["world_size"], 2);
    // 0.5 GB of libraries, and at least two bytes of each of 596 million weights.
    assert!(answer["process_bytes"].as_u64().expect("a number") > 500_000_000 + 2 * 596_000_000);
    assert_eq!(answer["verdict"], Value::Null);

    let output = zeropilot(&nowhere(), &[&["simulate", "--machine", &cpu][..], &SMALL].concat());
    let said = text(&output.stdout);
    assert!(said.contains("2 CPU ranks") && said.contains("host memory of a rank"), "{said}");
    assert!(said.contains("51 per rank") && !said.contains("MFU"), "{said}");
    assert!(said.contains("2 ranks on this machine"), "{said}");
}

#[test]
fn what_a_profile_does_not_know_is_refused_with_a_way_out() {
    let (cpu, h100) = (profile("cpu.json"), profile("h100.json"));
    let config = profile("README.md");
    let cases: [(&[&str], [&str; 2]); 6] = [
        (&["memory", "--machine", &cpu], ["GPU memory", "GPU 显存"]),
        (&["plan", "--machine", &cpu], ["GPU memory", "GPU 显存"]),
        (&["simulate", "--machine", &cpu, "--gpus", "4"], ["calibrate --ranks 4"; 2]),
        (&["simulate", "--machine", &h100, "--gpus", "8xA100-80G"], ["H100 80GB HBM3"; 2]),
        (&["simulate", "--machine", &config], ["not a machine profile", "不是机器实测文件"]),
        (&["memory", "--machine", "absent.json"], ["absent.json"; 2]),
    ];
    for (arguments, words) in cases {
        for (language, words) in ["en", "zh"].into_iter().zip(words) {
            let model = ["--model", "qwen3-0.6b", "--seq-len", "128", "--lang", language];
            let output = zeropilot(&nowhere(), &[arguments, &model].concat());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
    }
}

/// 942 and 659 MiB stand in the profile; DeepSpeed has further groups, so communicators are at least the one measured.
#[test]
fn context_and_communicators_are_those_that_were_measured() {
    let a100 = profile("a100.json");
    let arguments = ["memory", "--machine", &a100, "--json"];
    let output = zeropilot(&nowhere(), &[&arguments[..], &SMALL].concat());
    let said = text(&output.stdout);
    let answer: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(answer["world_size"], 8, "{said}");
    assert!(said.contains(&(942_u64 << 20).to_string()), "{said}");
    let without = zeropilot(
        &nowhere(),
        &[&["memory", "--gpus", "8xA100-80G", "--json"][..], &SMALL].concat(),
    );
    assert!(!text(&without.stdout).contains(&(942_u64 << 20).to_string()));
}

#[test]
fn the_profile_of_this_machine_is_found_and_serves_its_own_gpus_only() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("zeropilot");
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::copy(profile("a100.json"), directory.join("machine.json")).expect("a copy");
    let asked = |gpus: &str| {
        let arguments = [&["simulate", "--gpus", gpus][..], &SMALL].concat();
        text(&zeropilot(home.path(), &arguments).stdout)
    };
    assert!(asked("8xA100-80G").contains("8 ranks on this machine"));
    // Calls between nodes were not measured.
    assert!(asked("2x8xA100-80G").contains("Links were not measured"));
    assert!(!asked("8xH100").contains("measured"));
}

#[test]
fn the_program_that_measures_can_be_read() {
    let output = zeropilot(&nowhere(), &["calibrate", "--show-program"]);
    assert!(text(&output.stdout).contains("`zeropilot calibrate` runs this program"));
    let output = zeropilot(&nowhere(), &["calibrate", "--python", "/nonexistent"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--python"));
}
