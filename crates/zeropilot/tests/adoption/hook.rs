//! The hooks of `.pre-commit-hooks.yaml` in a git repository, run by pre-commit.

use std::path::Path;
use std::process::{Command, Output};

use crate::{CONFIG, check, directory};

const HOOKS: &str = include_str!("../../../../.pre-commit-hooks.yaml");

fn git(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(root)
        .args([
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn committed(root: &Path) -> String {
    git(root, &["init", "--quiet"]);
    git(root, &["add", "--all"]);
    git(root, &["commit", "--quiet", "--message", "files"]);
    git(root, &["rev-parse", "HEAD"])
}

#[test]
fn pre_commit_runs_the_hooks_on_what_they_are_for() {
    let Some(program) = std::env::var_os("ZEROPILOT_PRE_COMMIT") else {
        return zeropilot_oracle::missing("ZEROPILOT_PRE_COMMIT");
    };
    let hooks = directory(&[(".pre-commit-hooks.yaml", HOOKS)]);
    let revision = committed(hooks.path());
    let settings = format!(
        "repos:\n  - repo: file://{}\n    rev: {revision}\n    hooks:\n      - id: zeropilot-check\n        args: [--world-size, \"8\", --lang, en]\n      - id: zeropilot-check-job\n        args: [--lang, en]\n",
        hooks.path().display()
    );
    let project = directory(&[
        (".pre-commit-config.yaml", &settings),
        ("conf/ds_config.json", CONFIG),
        ("package.json", "{\"name\": \"page\"}"),
        (
            "run.sh",
            "export CUDA_VISIBLE_DEVICES=2,3\ndeepspeed --num_gpus 2 train.py --deepspeed_config conf/ds_config.json\n",
        ),
        ("build.sh", "make all\n"),
    ]);
    let root = project.path();
    committed(root);
    let home = tempfile::tempdir().expect("a temporary directory");
    let bin = Path::new(env!("CARGO_BIN_EXE_zeropilot")).parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let run = || -> Output {
        Command::new(&program)
            .current_dir(root)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("PRE_COMMIT_HOME", home.path())
            .args(["run", "--all-files", "--color", "never"])
            .output()
            .expect("pre-commit runs")
    };
    let output = run();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for piece in [
        "check DeepSpeed configs...",
        "conf/ds_config.json:2:",
        "error B01",
        "check DeepSpeed launch scripts...",
        "run.sh:1:29: warning L02",
    ] {
        assert!(told.contains(piece), "{piece}: {told}");
    }
    assert!(!told.contains("package.json") && !told.contains("build.sh"), "{told}");
    // With a baseline that the project settles, nothing that was there fails.
    let arguments = ["conf", "run.sh", "--world-size", "8", "--write-baseline", "known.json"];
    assert_eq!(check(root, &arguments).status.code(), Some(0));
    std::fs::write(root.join("zeropilot.toml"), "baseline = \"known.json\"\n").expect("a file");
    let output = run();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
