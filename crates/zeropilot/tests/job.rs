//! `zeropilot check` of launch scripts, as a user runs it.

mod command;

use std::fs;
use std::process::Command;

use command::directory;
use serde_json::Value;
use tempfile::TempDir;

const SCRIPT: &str = r"#!/bin/bash
GPUS=4
export CUDA_VISIBLE_DEVICES=2,3
deepspeed --num_gpus $GPUS train.py \
  --deepspeed conf/ds.json \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 8 \
  --bf16 True --learning_rate $LR --lr_scheduler_type cosine
";

const CONFIG: &str = r#"{
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": "auto",
  "bf16": {"enabled": "auto"},
  "zero_optimization": {"stage": 2}
}
"#;

fn run(directory: &TempDir, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory.path())
        .env_clear()
        .args(arguments)
        .output()
        .expect("the binary runs");
    let stdout = String::from_utf8(output.stdout).expect("text");
    (output.status.code().expect("an exit code"), stdout)
}

#[test]
fn a_script_is_judged_together_with_the_config_it_points_to() {
    let directory = directory(&[("train.sh", SCRIPT), ("conf/ds.json", CONFIG)]);
    let (code, stdout) = run(&directory, &["check", "train.sh", "--output-format", "json"]);
    assert_eq!(code, 1);
    let files: Vec<Value> = serde_json::from_str(&stdout).expect("JSON");
    let codes = |file: &Value| -> Vec<String> {
        let found = file["diagnostics"].as_array().expect("findings").iter();
        found.map(|found| found["code"].as_str().expect("a code").to_owned()).collect()
    };
    assert_eq!(files[0]["file"], "train.sh");
    assert_eq!(files[0]["verdict"], "reject");
    assert_eq!(codes(&files[0]), ["L02", "A08"]);
    let line = |index: usize| files[0]["diagnostics"][index]["span"]["line"].clone();
    assert_eq!((line(0), line(1)), (3.into(), 6.into()));
    assert_eq!(files[1]["file"], "conf/ds.json");
    assert_eq!(codes(&files[1]), [""; 0]);
    assert_eq!(
        (&files[1]["world_size"], &files[1]["world_size_source"]),
        (&4.into(), &"given".into())
    );
    assert_eq!(files[1]["front_end"]["name"], "hf-trainer");
}

#[test]
fn what_the_script_does_not_settle_is_said_and_not_guessed() {
    let script = "torchrun --nproc_per_node $N train.py --deepspeed conf/ds.json --max_steps $S\n";
    let directory = directory(&[("a.sh", script), ("train.py", ""), ("conf/ds.json", CONFIG)]);
    let (code, stdout) = run(&directory, &["check", "a.sh"]);
    assert_eq!(code, 0, "{stdout}");
    let head = "a.sh: `torchrun` starts an unknown number of ranks with conf/ds.json (known only at run time: max_steps)\n";
    assert!(stdout.starts_with(head), "{stdout}");
    let (_, chinese) = run(&directory, &["check", "a.sh", "--lang", "zh"]);
    assert!(chinese.contains("启动的 rank 数在脚本里没有写明"), "{chinese}");
}

#[test]
fn a_script_without_a_config_to_check_is_not_called_accepted() {
    let open = "deepspeed --num_gpus 4 train.py --deepspeed $CONFIG\n";
    let directory = directory(&[("a.sh", open), ("b.sh", "echo hello\n")]);
    for name in ["a.sh", "b.sh"] {
        let (code, stdout) = run(&directory, &["check", name]);
        let last = "1 file: 0 accepted, 0 rejected, 1 without a config to check; nothing found\n";
        assert_eq!(code, 0);
        assert!(stdout.ends_with(last), "{stdout}");
    }
}

#[test]
fn defaults_of_a_script_hold_and_other_ranks_are_named() {
    let script = "deepspeed --num_gpus ${N:-4} train.py --deepspeed ${1:-ds.json}\n";
    let config = r#"{"train_batch_size": 6, "gradient_accumulation_steps": 1}"#;
    let directory = directory(&[("a.sh", script), ("train.py", ""), ("ds.json", config)]);
    let (code, stdout) = run(&directory, &["check", "a.sh", "--front-end", "deepspeed"]);
    assert!(code == 1 && stdout.contains("B01"), "6 samples do not divide by 4 ranks: {stdout}");
    let two = ["check", "a.sh", "--front-end", "deepspeed", "--world-size", "2"];
    let (code, stdout) = run(&directory, &two);
    assert_eq!(code, 0, "{stdout}");
    let head = "a.sh: `deepspeed` starts 4 ranks with ds.json, checked for a world size of 2 (--world-size)\n";
    assert!(stdout.starts_with(head), "{stdout}");
}

#[test]
fn directories_are_searched_for_scripts_if_asked() {
    let files = [("jobs/a.slurm", SCRIPT), ("jobs/conf/ds.json", CONFIG), ("jobs/x.sh", "ls\n")];
    let directory = directory(&files);
    let (_, stdout) = run(&directory, &["check", "--job", "jobs", "--output-format", "concise"]);
    assert!(stdout.contains("jobs/a.slurm:3:29: warning L02"), "{stdout}");
    assert!(stdout.contains("jobs/a.slurm:6:33: error A08"), "{stdout}");
}

/// accelerate builds a config from these fields, and the Trainer compares it with its arguments.
#[test]
fn fields_of_accelerates_yaml_are_checked_and_explained_as_a_config() {
    let yaml = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 4\nmixed_precision: bf16\n\
        deepspeed_config:\n  zero_stage: 2\n  offload_optimizer_device: cpu\n  gradient_accumulation_steps: 1\n";
    let script = "from transformers import Trainer, TrainingArguments\n\
        args = TrainingArguments(output_dir='o', bf16=True, optim='adafactor', gradient_accumulation_steps=8)\n\
        Trainer(model, args).train()\n";
    let files = [
        ("a.sh", "accelerate launch --config_file acc.yaml train.py\n"),
        ("acc.yaml", yaml),
        ("train.py", script),
    ];
    let directory = directory(&files);
    let (code, stdout) = run(&directory, &["check", "a.sh", "--output-format", "concise"]);
    let mismatch = "train.py:2:72: error A08 `gradient_accumulation_steps` is 1, but";
    let replaced = "acc.yaml:7:29: warning O02 ";
    assert!(code == 1 && stdout.contains(mismatch) && stdout.contains(replaced), "{stdout}");
    let (_, human) = run(&directory, &["check", "a.sh"]);
    let head = "a.sh: `accelerate launch` starts 4 ranks with acc.yaml\n";
    assert!(human.starts_with(head), "{human}");
    let (_, explained) = run(&directory, &["explain", "a.sh"]);
    assert!(explained.contains("A08") && !explained.contains("I01"), "{explained}");
    let (code, alone) = run(&directory, &["check", "acc.yaml"]);
    let end = "1 file: 1 accepted, 0 rejected; nothing found\n";
    assert!(code == 0 && alone.ends_with(end), "{alone}");
    assert!(alone.contains("4 ranks with acc.yaml") && !alone.contains(".py"), "{alone}");
}

#[test]
fn front_ends_in_yaml_are_followed() {
    let llama_factory = "deepspeed: ds.json\nper_device_train_batch_size: 1\nbf16: true\n";
    let accelerate = "num_processes: 8\nmixed_precision: bf16\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n";
    let directory = directory(&[
        (
            "a.sh",
            "FORCE_TORCHRUN=1 llamafactory-cli train l.yaml\naccelerate launch --config_file a.yaml t.py\n",
        ),
        ("l.yaml", llama_factory),
        ("a.yaml", accelerate),
        ("ds.json", CONFIG),
    ]);
    let (_, stdout) = run(&directory, &["check", "a.sh", "--output-format", "concise"]);
    let mismatch = "l.yaml:2:30: error A08 `train_micro_batch_size_per_gpu` is 4, but the training argument `per_device_train_batch_size` is 1\n";
    assert!(stdout.contains(mismatch), "{stdout}");
    let (_, human) = run(&directory, &["check", "a.sh"]);
    assert!(human.contains("`accelerate launch` starts 8 ranks with ds.json"), "{human}");
}

#[test]
fn a_config_that_does_not_exist_is_an_error() {
    let directory =
        directory(&[("a.sh", "deepspeed --num_gpus 2 t.py --deepspeed_config no.json\n")]);
    let (code, stdout) = run(&directory, &["check", "a.sh", "--output-format", "concise"]);
    assert_eq!((code, stdout.as_str()), (1, "a.sh:1:48: error L12 file `no.json` not found\n"));
}

#[test]
fn rules_are_selected_and_ignored_by_code_or_letter() {
    let config = "{\"train_batch_size\": 8, \"nobody\": 1, \"wall_clock_breakdown\": true}";
    let directory = directory(&[("ds.json", config)]);
    let told = |arguments: &[&str]| {
        let mut all = vec!["check", "ds.json", "--output-format", "concise"];
        all.extend(arguments);
        let (code, stdout) = run(&directory, &all);
        let codes = stdout.lines().filter_map(|line| line.split(' ').nth(2).map(str::to_owned));
        (code, codes.collect::<Vec<_>>())
    };
    assert_eq!(told(&[]), (1, vec!["K01".to_owned(), "K28".to_owned()]));
    assert_eq!(told(&["--ignore", "K01"]), (0, vec!["K28".to_owned()]));
    assert_eq!(told(&["--select", "k01,B"]), (1, vec!["K01".to_owned()]));
    assert_eq!(told(&["--ignore", "K", "--select", "K28"]), (0, vec!["K28".to_owned()]));
    assert_eq!(told(&["--select", "Q"]).0, 2);
}

const TRAINER: &str = "import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--batch', type=int, default=4)
parser.add_argument('--steps', type=int)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained('m')
training = TrainingArguments(
    output_dir='out',
    deepspeed='ds.json',
    per_device_train_batch_size=args.batch,
    gradient_accumulation_steps=2,
    max_steps=args.steps,
    bf16=True,
)
Trainer(model, training).train()
";

const STAGE_3: &str = r#"{
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 8,
  "bf16": {"enabled": "auto"},
  "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}
}"#;

#[test]
fn what_a_training_script_writes_out_is_checked_where_it_stands() {
    let directory = directory(&[
        ("a.sh", "torchrun --nproc_per_node 2 t.py --batch 2\n"),
        ("b.sh", "torchrun --nproc_per_node 2 t.py --steps $N\n"),
        ("t.py", TRAINER),
        ("ds.json", STAGE_3),
    ]);
    let (code, stdout) = run(&directory, &["check", "a.sh", "--output-format", "concise"]);
    // The launch line overrides the default of --batch, which then agrees with the config.
    let accumulation = "t.py:11:5: error A08 `gradient_accumulation_steps` is 8, but the training argument `gradient_accumulation_steps` is 2\n";
    assert!(code == 1 && stdout.ends_with(accumulation), "{stdout}");
    // The refused key has no part in the stage.
    let early = "t.py:6:9: warning Z01 the script loads the model before";
    assert!(stdout.starts_with(early) && stdout.lines().count() == 2, "{stdout}");
    let (_, stdout) = run(&directory, &["check", "b.sh", "--output-format", "concise"]);
    assert!(
        stdout.contains("t.py:3:42: error A08 `train_micro_batch_size_per_gpu` is 2"),
        "{stdout}"
    );
    let (_, human) = run(&directory, &["check", "b.sh"]);
    assert!(human.contains("(known only at run time: max_steps)"), "{human}");
    let (_, json) = run(&directory, &["check", "a.sh", "--output-format", "json"]);
    let files: Vec<Value> = serde_json::from_str(&json).expect("JSON");
    let verdicts: Vec<_> = files.iter().map(|file| (&file["file"], &file["verdict"])).collect();
    assert_eq!(verdicts[0], (&"a.sh".into(), &"reject".into()));
    assert_eq!(verdicts[1], (&"t.py".into(), &"reject".into()));
}

#[test]
fn a_model_loaded_too_early_is_found_in_the_training_script() {
    let config = STAGE_3.replace("8", "\"auto\"").replace(": 2,", ": \"auto\",");
    let directory = directory(&[
        ("a.sh", "torchrun --nproc_per_node 2 t.py\n"),
        ("t.py", TRAINER),
        ("ds.json", &config),
    ]);
    let (code, stdout) = run(&directory, &["check", "a.sh", "--output-format", "concise"]);
    assert_eq!(code, 1);
    assert!(
        stdout.starts_with("t.py:6:9: warning Z01 the script loads the model before"),
        "{stdout}"
    );
    let (_, human) = run(&directory, &["check", "a.sh", "--lang", "zh"]);
    assert!(human.contains("t.py：属于这个任务"), "{human}");
}

#[test]
fn a_dictionary_in_the_script_is_checked_in_its_place() {
    let script = "import deepspeed
config = {
    'train_batch_size': 7,  # seven
    'zero_optimisation': {'stage': 2},
    'fp16': {'enabled': True},
}
engine, _, _, _ = deepspeed.initialize(model=model, config=config, optimizer=torch.optim.AdamW(model.parameters()))
";
    let directory = directory(&[("a.sh", "deepspeed --num_gpus 2 t.py\n"), ("t.py", script)]);
    let (code, stdout) = run(&directory, &["check", "a.sh", "--output-format", "concise"]);
    assert_eq!(code, 1);
    assert!(stdout.contains("t.py:3:"), "{stdout}");
    assert!(
        stdout
            .contains("t.py:4:5: warning K01 DeepSpeed does not read the key `zero_optimisation`"),
        "{stdout}"
    );
    let open = script.replace("7,", "size,");
    fs::write(directory.path().join("t.py"), open).expect("a file");
    let (code, stdout) = run(&directory, &["check", "a.sh"]);
    let head = "a.sh: `deepspeed` starts 2 ranks with a config known only at run time\n";
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.starts_with(head), "{stdout}");
}

#[test]
fn axolotl_and_slurm_are_followed() {
    let yaml = "base_model: m\nmicro_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\ndeepspeed: ds.json\noptimizer: adamw_torch\n";
    let slurm = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_ON_NODE -m axolotl.cli.train c.yaml\naxolotl train c.yaml\n";
    let directory = directory(&[("a.slurm", slurm), ("c.yaml", yaml), ("ds.json", STAGE_3)]);
    let (_, stdout) = run(&directory, &["check", "a.slurm", "--output-format", "concise"]);
    let mismatch = "c.yaml:2:19: error A08 `train_micro_batch_size_per_gpu` is 2, but the training argument `per_device_train_batch_size` is 1\n";
    assert!(stdout.contains(mismatch), "{stdout}");
    let (_, human) = run(&directory, &["check", "a.slurm"]);
    assert!(human.contains("`torchrun` starts 16 ranks with ds.json"), "{human}");
}

#[test]
fn fields_in_the_yaml_of_accelerate_beside_a_config_file_are_refused_where_they_stand() {
    let yaml =
        "num_processes: 2\ndeepspeed_config:\n  zero_stage: 3\n  deepspeed_config_file: ds.json\n";
    let config = "{\"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": 1, \"zero_optimization\": {\"stage\": 2}}";
    let directory = directory(&[
        ("a.sh", "accelerate launch --config_file a.yaml t.py\n"),
        ("t.py", "accelerator = Accelerator()\n"),
        ("a.yaml", yaml),
        ("ds.json", config),
    ]);
    let (code, stdout) = run(&directory, &["check", "a.sh", "--output-format", "concise"]);
    assert_eq!(code, 1);
    assert!(stdout.starts_with("a.yaml:3:15: error I01 "), "{stdout}");
}

/// A config of the same name lies where the command is typed, but the training program does not.
#[test]
fn files_are_looked_for_where_the_training_program_is() {
    let good = r#"{"train_micro_batch_size_per_gpu": 2}"#;
    let files = [
        ("job/a.sh", "deepspeed --num_gpus 2 train.py --deepspeed_config ds.json\n"),
        ("job/train.py", "print('here')\n"),
        ("job/ds.json", good),
        ("ds.json", r#"{"train_batch_sise": 2}"#),
    ];
    let directory = directory(&files);
    let (code, said) = run(&directory, &["check", "job/a.sh"]);
    assert!(code == 0 && said.contains("job/ds.json"), "{said}");
    // With a program in both places it is the one that would run from here.
    fs::write(directory.path().join("train.py"), "").expect("a program");
    let (code, said) = run(&directory, &["check", "job/a.sh"]);
    assert!(code == 1 && said.contains("train_batch_sise"), "{said}");
}

#[test]
fn a_config_that_several_scripts_share_is_told_once() {
    let launch =
        |ranks| format!("torchrun --nproc_per_node {ranks} train.py --deepspeed ds.json\n");
    let directory = directory(&[
        ("a.sh", &launch(2)),
        ("b.sh", &launch(2)),
        ("c.sh", &launch(4)),
        ("train.py", "args = parser.parse_args_into_dataclasses()\n"),
        (
            "ds.json",
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimisation": {"stage": 2}, "zero_optimization": {"stage": 2}}"#,
        ),
    ]);
    let (_, concise) = run(&directory, &["check", "--job", ".", "--output-format", "concise"]);
    let found =
        concise.lines().filter(|line| line.starts_with("ds.json:1:") && line.contains("K01"));
    assert_eq!(found.count(), 1, "{concise}");
    let (code, human) = run(&directory, &["check", "--job", "."]);
    assert_eq!(code, 1);
    assert_eq!(human.matches("[K01]").count(), 1, "{human}");
    // Four ranks are other circumstances with the same findings.
    assert_eq!(human.matches("same findings as above").count(), 1, "{human}");
    let names: Vec<&str> = human
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_once(": "))
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&"a.sh") && !names.iter().any(|name| name.starts_with("./")), "{human}");
    assert!(human.contains("4 files: "), "{human}");
}

#[test]
fn a_training_script_that_is_not_there_is_named() {
    let directory = directory(&[
        ("a.sh", "torchrun --nproc_per_node 2 missing.py --deepspeed ds.json\n"),
        ("ds.json", CONFIG),
    ]);
    let (_, human) = run(&directory, &["check", "a.sh"]);
    let head = "a.sh: `torchrun` starts 2 ranks with ds.json; zeropilot did not find missing.py, so it did not read the arguments in this script\n";
    assert!(human.starts_with(head), "{human}");
}

#[test]
fn a_job_that_is_not_there_is_no_unknown_model() {
    let directory = directory(&[]);
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory.path())
        .env_clear()
        .args(["plan", "trian.sh", "--gpus", "8xH100"])
        .output()
        .expect("the binary runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.starts_with("error: trian.sh cannot be read: "), "{said}");
    assert!(said.contains("a job is a launch script"), "{said}");
}

#[test]
fn accelerate_with_fsdp_does_not_start_deepspeed_and_its_section_is_not_counted() {
    let directory = directory(&[
        ("a.sh", "accelerate launch --config_file a.yaml t.py\n"),
        (
            "a.yaml",
            "distributed_type: FSDP\nnum_processes: 2\nmixed_precision: bf16\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n",
        ),
        (
            "t.py",
            "args = TrainingArguments(deepspeed='ds.json', bf16=True, per_device_train_batch_size=4)\n",
        ),
        ("ds.json", CONFIG),
    ]);
    let (_, concise) = run(&directory, &["check", "a.sh", "--output-format", "concise"]);
    assert!(concise.starts_with("a.yaml:1:19: warning I12 "), "{concise}");
    assert!(!concise.contains("I01"), "{concise}");
}

#[test]
fn a_script_below_the_root_finds_what_stands_between() {
    let directory = directory(&[
        (
            "part/launch/go.sh",
            "deepspeed --num_gpus 2 part_train.py --deepspeed settings/ds.json\n",
        ),
        ("part/settings/ds.json", "{\"train_micro_batch_size_per_gpu\": 1, \"nobody\": 1}"),
        ("part/part_train.py", "import deepspeed\n"),
    ]);
    let (code, stdout) = run(&directory, &["check", "--job", ".", "--output-format", "concise"]);
    let found = "part/settings/ds.json:1:39: warning K01";
    assert!(code == 1 && stdout.contains(found) && !stdout.contains("L12"), "{stdout}");
}

#[test]
fn a_command_in_a_variable_is_a_launch() {
    let config = ("ds.json", "{\"train_micro_batch_size_per_gpu\": 1, \"nobody\": 1}");
    for script in [
        "OPTS=\"--lr $LR \\\n  --deepspeed_config ds.json\"\nCMD=\"NCCL_DEBUG=INFO deepspeed --num_gpus 2 t.py $OPTS |& tee log\"\neval $CMD\n",
        "RUN=\"torchrun --nproc_per_node 2\"\nsrun -N 1 bash -c \"$RUN t.py --deepspeed ds.json\"\n",
        "ARGS=\"--deepspeed ds.json\"\nuv run torchrun --nproc_per_node 2 t.py $ARGS\n",
        "python submit.py --gpus 8 -- deepspeed t.py --deepspeed_config ds.json\n",
    ] {
        let directory = directory(&[("go.sh", script), config]);
        let (code, stdout) = run(&directory, &["check", "go.sh", "--output-format", "concise"]);
        assert!(code == 1 && stdout.contains("ds.json:1:39: warning K01"), "{script}: {stdout}");
    }
}

#[test]
fn a_training_program_by_itself_is_not_launched_by_anybody() {
    let program = "import deepspeed\nengine, *_ = deepspeed.initialize(model=m, config={'train_micro_batch_size_per_gpu': 1})\n";
    let directory = directory(&[("t.py", program), ("go.sh", "python t.py\n")]);
    let (code, stdout) = run(&directory, &["check", "t.py", "--output-format", "concise"]);
    assert_eq!((code, stdout.as_str()), (0, ""));
    let (_, stdout) = run(&directory, &["check", "go.sh", "--output-format", "concise"]);
    assert!(stdout.contains("warning L01"), "a launch that is written: {stdout}");
}

#[test]
fn yaml_of_other_programs_is_no_config_and_presets_are_no_files() {
    let other = "files:\n  train: a.json\ntrainer:\n  gradient_accumulation_steps: 4\n  deepspeed: z3.json\n";
    let swift =
        "model: some/model\ntuner_type: lora\nper_device_train_batch_size: 1\ndeepspeed: zero3\n";
    let directory = directory(&[("own.yaml", other), ("swift.yaml", swift)]);
    let (code, stdout) = run(&directory, &["check", "own.yaml", "--output-format", "concise"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    let (code, stdout) = run(&directory, &["check", "swift.yaml", "--output-format", "concise"]);
    assert!(code == 0 && !stdout.contains("L12"), "{stdout}");
}

#[test]
fn a_script_that_opens_its_config_does_not_show_who_reads_it() {
    let config = ("ds.json", "{\"train_micro_batch_size_per_gpu\": 1}");
    let program = |body: &str| {
        format!(
            "from transformers import HfArgumentParser\n(options,) = HfArgumentParser((Options,)).parse_args_into_dataclasses()\n{body}\n"
        )
    };
    let launch = ("go.sh", "deepspeed --num_gpus 1 t.py --deepspeed ds.json\n");
    let found = |body: &str| {
        let directory = directory(&[launch, config, ("t.py", &program(body))]);
        run(&directory, &["check", "go.sh", "--output-format", "concise"]).1
    };
    assert!(found("train(options)").contains("error I02"));
    let own = found("with open(options.deepspeed) as f:\n    serve(json.load(f))");
    assert!(!own.contains("I02"), "{own}");
}
