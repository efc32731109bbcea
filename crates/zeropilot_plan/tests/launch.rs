//! A printed command, fed to a real shell with launchers that only say what they were given.
#![cfg(unix)]

use std::fs;
use std::num::NonZeroU64;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use proptest::prelude::*;
use zeropilot_plan::{Argument, Job, Launcher, Machines, Word};

/// Writes each argument and some variables, each ended by a zero byte.
const FAKE: &str = r#"#!/bin/bash
printf '%s\0' "${0##*/}" "$@"
printf '%s\0' "NPROC_PER_NODE=$NPROC_PER_NODE" "NNODES=$NNODES" "RANK=$NODE_RANK" "TORCHRUN=$FORCE_TORCHRUN"
"#;

/// A directory of fake launchers.
fn launchers() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for name in ["deepspeed", "torchrun", "accelerate", "swift", "llamafactory-cli"] {
        let path = directory.path().join(name);
        fs::write(&path, FAKE).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    directory
}

/// What the launcher got when bash ran the line.
fn run(line: &str, launchers: &tempfile::TempDir) -> Vec<String> {
    let path = format!("{}:/usr/bin:/bin", launchers.path().display());
    let output = Command::new("/bin/bash")
        .args(["--norc", "-c", line])
        .env_clear()
        .env("PATH", path)
        .env("NODE_RANK", "1")
        .output()
        .expect("bash runs");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn number(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).expect("not zero")
}

fn several<'a>() -> Machines<'a> {
    Machines::Several { count: number(2), main_address: "node-0", hostfile: "hosts" }
}

/// The words as the shell must hand them over.
fn expected(words: &[Word]) -> Vec<String> {
    let text = |word: &Word| match word {
        Word::Text(text) => text.clone(),
        Word::Variable(_) => "1".to_owned(),
    };
    words.iter().map(text).collect()
}

#[test]
fn commands_are_what_the_launchers_document() {
    let arguments = [Argument { name: "bf16", value: "true".to_owned() }];
    let job = Job {
        machines: Machines::One,
        ranks_per_machine: number(4),
        script: "train.py",
        config: "ds.json",
        arguments: &arguments,
        rlhf_type: None,
    };
    let line = |job: &Job<'_>, launcher| job.command(launcher).shell().expect("a line");
    let lines = [
        (Launcher::DeepSpeed, "deepspeed --num_gpus 4 train.py --deepspeed ds.json --bf16 true"),
        (
            Launcher::Torchrun,
            "torchrun --standalone --nproc-per-node 4 train.py --deepspeed ds.json --bf16 true",
        ),
        (
            Launcher::Accelerate,
            "accelerate launch --use_deepspeed --deepspeed_config_file ds.json --num_processes 4 --num_machines 1 \
             train.py --bf16 true",
        ),
        (Launcher::Swift, "NPROC_PER_NODE=4 swift sft --deepspeed ds.json --bf16 true"),
        (
            Launcher::LlamaFactory,
            "FORCE_TORCHRUN=1 NPROC_PER_NODE=4 llamafactory-cli train train.py 'deepspeed=ds.json' 'bf16=true'",
        ),
    ];
    for (launcher, expected) in lines {
        assert_eq!(line(&job, launcher), expected);
    }
    let job = Job { machines: several(), arguments: &[], ..job };
    let lines = [
        (
            Launcher::DeepSpeed,
            "deepspeed --hostfile hosts --num_nodes 2 --num_gpus 4 --master_addr node-0 train.py --deepspeed ds.json",
        ),
        (
            Launcher::Torchrun,
            "torchrun --nnodes 2 --nproc-per-node 4 --node-rank \"$NODE_RANK\" --master-addr node-0 --master-port 29500 \
             train.py --deepspeed ds.json",
        ),
        (
            Launcher::Accelerate,
            "accelerate launch --use_deepspeed --deepspeed_config_file ds.json --num_processes 8 --num_machines 2 \
             --machine_rank \"$NODE_RANK\" --main_process_ip node-0 --main_process_port 29500 \
             --deepspeed_multinode_launcher standard train.py",
        ),
    ];
    for (launcher, expected) in lines {
        assert_eq!(line(&job, launcher), expected);
    }
}

#[test]
fn swift_has_another_command_for_other_tasks() {
    let job = Job {
        machines: Machines::One,
        ranks_per_machine: number(2),
        script: "",
        config: "ds.json",
        arguments: &[],
        rlhf_type: Some("dpo"),
    };
    let line = job.command(Launcher::Swift).shell().expect("a line");
    assert_eq!(line, "NPROC_PER_NODE=2 swift rlhf --rlhf_type dpo --deepspeed ds.json");
}

#[test]
fn a_zero_byte_is_refused() {
    let job = Job {
        machines: Machines::One,
        ranks_per_machine: number(1),
        script: "train.py",
        config: "ds\0.json",
        arguments: &[],
        rlhf_type: None,
    };
    assert!(job.command(Launcher::Torchrun).shell().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Names with spaces, quotes, dollars, line breaks and other scripts arrive as they are.
    #[test]
    fn the_shell_hands_over_every_word_unchanged(
        script in "[^\0-]{1,12}",
        config in "[ '\"$`\\\\!*?~#&;|<>()\n{}a-z配置-]{1,12}",
        value in "[^\0]{0,12}",
        is_several in any::<bool>(),
    ) {
        let launchers = launchers();
        let arguments = [Argument { name: "output_dir", value }];
        let machines = if is_several { several() } else { Machines::One };
        let ranks_per_machine = number(8);
        let job = Job { machines, ranks_per_machine, script: &script, config: &config, arguments: &arguments, rlhf_type: None };
        for launcher in Launcher::ALL {
            let command = job.command(launcher);
            let line = command.shell().expect("no zero byte");
            let got = run(&line, &launchers);
            let words = expected(&command.words);
            prop_assert_eq!(&got[..words.len()], &words[..], "{}", line);
            if matches!(launcher, Launcher::Swift | Launcher::LlamaFactory) {
                prop_assert!(got.contains(&"NPROC_PER_NODE=8".to_owned()), "{:?}", got);
            }
        }
    }
}
