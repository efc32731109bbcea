//! Jobs in the shapes people write, and what zeropilot reads from them. Expected values are those in the texts beside
//! them, or the defaults in `knowledge/recipes`.

#![cfg(feature = "scripts")]

use std::fs;
use std::path::Path;

use zeropilot_job::local::{JobProblem, open};
use zeropilot_job::{
    Attention, ConfigContent, Framework, LibraryVersion, MethodName, NumberFormat, Optimizer,
    Origin, ReferenceName, RolloutName, Sourced, TaskName, TrainerName, TrainingJob,
};

const DS: (&str, &str) =
    ("ds.json", r#"{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}"#);

/// The job that the first of these files describes.
fn job(files: &[(&str, &str)]) -> TrainingJob {
    try_job(files).expect("a job")
}

fn try_job(files: &[(&str, &str)]) -> Result<TrainingJob, JobProblem> {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        write(directory.path(), name, text);
    }
    open(&directory.path().join(files[0].0), None).map(|opened| opened.job)
}

fn write(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
    fs::write(path, text).expect("a file");
}

/// The value, and the file and line it comes from.
fn said<T: Clone>(value: &Option<Sourced<T>>) -> (T, String) {
    let Sourced { value, origin } = value.clone().expect("a value");
    let place = match origin {
        Origin::File { name, line } => {
            format!("{}:{line}", name.rsplit('/').next().unwrap_or_default())
        }
        Origin::FrameworkDefault { version } => version.to_owned(),
        other => format!("{other:?}"),
    };
    (value, place)
}

fn config_text(job: &TrainingJob) -> &str {
    match &job.config.as_ref().expect("a config").content {
        ConfigContent::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_torchrun_line_of_the_hf_trainer() {
    let script = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n\
        torchrun --nproc_per_node 8 train.py --deepspeed ds.json --model_name_or_path meta-llama/Llama-3.1-8B \\\n\
        --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_seq_length 4096 --bf16 True \\\n\
        --gradient_checkpointing True --optim paged_adamw_8bit\n";
    let job = job(&[("train.sh", script), DS]);
    assert_eq!(job.framework, Some(Framework::HfTrainer));
    assert_eq!(said(&job.model), ("meta-llama/Llama-3.1-8B".to_owned(), "train.sh:2".to_owned()));
    assert_eq!(said(&job.world_size), (8, "train.sh:2".to_owned()));
    assert_eq!(said(&job.micro_batch), (2, "train.sh:3".to_owned()));
    assert_eq!(said(&job.grad_accum), (4, "train.sh:3".to_owned()));
    assert_eq!(said(&job.seq_len), (4096, "train.sh:3".to_owned()));
    assert_eq!(said(&job.precision), (NumberFormat::Bf16, "train.sh:3".to_owned()));
    assert_eq!(said(&job.grad_checkpointing), (true, "train.sh:4".to_owned()));
    assert_eq!(said(&job.optimizer), (Optimizer::Adamw8bit, "train.sh:4".to_owned()));
    assert_eq!(job.method, None);
    assert_eq!(said(&job.expandable_segments), (true, "train.sh:1".to_owned()));
    assert!(job.not_modelled.is_empty());
    assert!(config_text(&job).contains("\"stage\": 3"));
}

#[test]
fn other_settings_of_the_allocator_are_named() {
    let script = "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512\n\
        torchrun --nproc_per_node 8 train.py --deepspeed ds.json --use_liger_kernel\n";
    let job = job(&[("train.sh", script), DS]);
    let left_out: Vec<&str> = job.not_modelled.iter().map(|it| it.written.as_str()).collect();
    assert_eq!(left_out, ["PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512"]);
    assert_eq!(job.expandable_segments, None);
    assert_eq!(said(&job.liger), (true, "train.sh:2".to_owned()));
}

#[test]
fn defaults_of_the_trainer_are_named_with_their_release() {
    let job =
        job(&[("train.sh", "deepspeed --num_gpus 2 train.py --deepspeed ds.json --bf16\n"), DS]);
    assert_eq!(said(&job.micro_batch), (8, "transformers 5.22.2".to_owned()));
    assert_eq!(said(&job.grad_checkpointing), (false, "transformers 5.22.2".to_owned()));
    assert_eq!((job.model, job.seq_len), (None, None));
}

#[test]
fn llamafactory_yaml_as_a_job() {
    let yaml = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\nlora_rank: 32\nlora_target: all\n\
        cutoff_len: 8192\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\nflash_attn: fa2\n\
        enable_liger_kernel: true\nquantization_bit: 4\ndeepspeed: ds.json\n";
    let job = job(&[("train.yaml", yaml), DS]);
    assert_eq!(job.framework, Some(Framework::LlamaFactory));
    assert_eq!(said(&job.method), (MethodName::Qlora, "train.yaml:12".to_owned()));
    assert_eq!(said(&job.lora_rank), (32, "train.yaml:4".to_owned()));
    assert_eq!(said(&job.lora_targets), (Vec::new(), "train.yaml:5".to_owned()));
    assert_eq!(said(&job.seq_len), (8192, "train.yaml:6".to_owned()));
    assert_eq!(said(&job.attention), (Attention::Flash, "train.yaml:10".to_owned()));
    assert_eq!(said(&job.fused_loss), (true, "train.yaml:11".to_owned()));
    assert_eq!(said(&job.grad_checkpointing), (true, "llamafactory 0.9.5".to_owned()));
    assert_eq!(job.world_size, None);
    assert!(job.not_modelled.is_empty(), "{:?}", job.not_modelled);
}

#[test]
fn llamafactory_started_by_a_script_with_overrides() {
    let script = "NPROC_PER_NODE=4 llamafactory-cli train train.yaml cutoff_len=1024\n";
    let yaml = "model_name_or_path: m\nstage: dpo\nfinetuning_type: full\ncutoff_len: 4096\ndeepspeed: ds.json\n";
    let job = job(&[("run.sh", script), ("train.yaml", yaml), DS]);
    assert_eq!(said(&job.seq_len), (1024, "run.sh:1".to_owned()));
    assert_eq!(said(&job.method), (MethodName::Full, "train.yaml:3".to_owned()));
    assert_eq!(said(&job.world_size), (4, "run.sh:1".to_owned()));
    assert_eq!(job.not_modelled, []);
    let task = job.task.expect("a task");
    assert_eq!(said(&Some(task.task)), (TaskName::Dpo, "train.yaml:2".to_owned()));
    let trainer = (TrainerName::LlamaFactory, "llamafactory 0.9.5".to_owned());
    assert_eq!(said(&task.trainer), trainer);
    assert_eq!(task.reference, None);
}

#[test]
fn tasks_that_no_answer_follows_are_named() {
    let yaml = "model_name_or_path: m\nstage: rm\nfinetuning_type: full\ndeepspeed: ds.json\n";
    let job = job(&[("train.yaml", yaml), DS]);
    let left_out: Vec<&str> = job.not_modelled.iter().map(|it| it.written.as_str()).collect();
    assert_eq!((left_out, job.task), (vec!["stage=rm"], None));
}

#[test]
fn grpo_of_axolotl_is_told_in_a_section() {
    let yaml = "base_model: m\nrl: grpo\nsequence_len: 4096\nmicro_batch_size: 2\ndeepspeed: ds.json\n\
        trl:\n  beta: 0.001\n  max_completion_length: 1024\n  use_vllm: true\n  vllm_mode: colocate\n\
        vllm:\n  gpu_memory_utilization: 0.4\n  tensor_parallel_size: 2\n";
    let job = job(&[("train.yml", yaml), DS]);
    let task = job.task.clone().expect("a task");
    assert_eq!(task.task.value, TaskName::Grpo);
    assert_eq!(said(&task.reference), (ReferenceName::Copy, "train.yml:7".to_owned()));
    assert_eq!(said(&task.completion_len), (1024, "train.yml:8".to_owned()));
    assert_eq!(said(&task.rollout), (RolloutName::Vllm, "train.yml:9".to_owned()));
    assert_eq!(said(&task.vllm.share), (0.4, "train.yml:12".to_owned()));
    assert_eq!(said(&task.vllm.tensor_parallel), (2, "train.yml:13".to_owned()));
    assert_eq!(task.vllm.sleeps, None);
    assert_eq!(said(&task.trl), (LibraryVersion::new(1, 9), "axolotl 0.19.0".to_owned()));
    assert_eq!(said(&job.seq_len).0, 4096);
    assert_eq!(job.not_modelled, []);
}

#[test]
fn the_release_of_trl_that_a_project_asks_for_is_read() {
    let script = "torchrun --nproc_per_node 4 dpo.py\n";
    let program =
        "args = DPOConfig(deepspeed='ds.json')\nDPOTrainer(model='m', args=args).train()\n";
    let trl = |files: &[(&str, &str)]| job(files).task.expect("a task").trl;
    let files = [("run.sh", script), ("dpo.py", program), DS];
    assert_eq!(trl(&files), None);
    let listed = ("requirements.txt", "torch\ntrl==0.24.0\n");
    let found = trl(&[files[0], files[1], DS, listed]);
    assert_eq!(said(&found), (LibraryVersion::new(0, 24), "requirements.txt:2".to_owned()));
    let head = format!("# /// script\n# dependencies = [\"trl==1.9.0\"]\n# ///\n{program}");
    let found = trl(&[files[0], ("dpo.py", &head), DS, listed]);
    assert_eq!(said(&found), (LibraryVersion::new(1, 9), "dpo.py:2".to_owned()));
}

#[test]
fn axolotl_yaml_as_a_job() {
    let yaml = "base_model: NousResearch/Meta-Llama-3-8B\nload_in_4bit: true\nadapter: qlora\nlora_r: 64\n\
        lora_target_modules:\n  - q_proj\n  - v_proj\nsequence_len: 4096\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\n\
        optimizer: adamw_bnb_8bit\nbf16: auto\nflash_attention: true\ngradient_checkpointing: true\ndeepspeed: ds.json\n\
        sequence_parallel_degree: 2\n";
    let job = job(&[("train.yml", yaml), DS]);
    assert_eq!(job.framework, Some(Framework::Axolotl));
    assert_eq!(said(&job.method), (MethodName::Qlora, "train.yml:3".to_owned()));
    assert_eq!(said(&job.lora_targets).0, ["q_proj", "v_proj"]);
    assert_eq!(said(&job.micro_batch), (2, "train.yml:9".to_owned()));
    assert_eq!(said(&job.optimizer).0, Optimizer::Adamw8bit);
    assert_eq!(said(&job.precision).0, NumberFormat::Bf16);
    let left_out: Vec<&str> = job.not_modelled.iter().map(|it| it.written.as_str()).collect();
    assert_eq!(left_out, ["sequence_parallel_degree=2"]);
}

/// `CutCrossEntropyArgs` of axolotl sets `cut_cross_entropy` by default, and only the plugin reads it.
#[test]
fn the_plugin_of_axolotl_for_cut_cross_entropy_is_a_fused_loss() {
    let yaml = "base_model: m\nsequence_len: 4096\nbf16: true\ndeepspeed: ds.json\n";
    let plugin = "plugins:\n  - axolotl.integrations.liger.LigerPlugin\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n";
    let short = "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n";
    let of = |more: &str| job(&[("train.yml", &format!("{yaml}{more}")), DS]);
    let left_out = |job: &TrainingJob| -> Vec<String> {
        job.not_modelled.iter().map(|it| it.written.clone()).collect()
    };
    for more in [plugin, short, &format!("{short}cut_cross_entropy: true\n")] {
        let job = of(more);
        let (is_fused, place) = said(&job.fused_loss);
        assert!(is_fused && (place == "train.yml:5" || place == "train.yml:6"), "{more}: {place}");
        assert_eq!(left_out(&job), ["plugins=CutCrossEntropyPlugin"]);
    }
    let off =
        of(&format!("{plugin}cut_cross_entropy: false\nliger_fused_linear_cross_entropy: true\n"));
    assert_eq!(said(&off.fused_loss), (true, "train.yml:9".to_owned()));
    assert_eq!(left_out(&off), [""; 0]);
    let alone = of("cut_cross_entropy: true\n");
    assert_eq!(
        (&alone.fused_loss, left_out(&alone)),
        (&None, vec!["cut_cross_entropy=true".to_owned()])
    );
    // Preferences are computed from logits.
    assert_eq!(of(&format!("{short}rl: dpo\n")).fused_loss, None);
}

/// `finetuning_args.py` and `model_args.py` of LLaMA-Factory, `tuner_args.py` of ms-swift.
#[test]
fn parts_that_a_framework_freezes_are_read_with_its_defaults() {
    let yaml = "model_name_or_path: m\nstage: sft\nfinetuning_type: full\ndeepspeed: ds.json\n";
    let of = |more: &str| job(&[("train.yaml", &format!("{yaml}{more}")), DS]);
    let by_default = "llamafactory 0.9.5".to_owned();
    let usual = of("");
    assert_eq!(said(&usual.frozen.towers), (true, by_default.clone()));
    assert_eq!(said(&usual.frozen.projector), (true, by_default.clone()));
    assert_eq!(said(&usual.frozen.language), (false, by_default.clone()));
    assert_eq!(said(&usual.max_pixels), (768 * 768, by_default));
    let written = of("freeze_vision_tower: false\nfreeze_multi_modal_projector: false\n\
        freeze_language_model: true\nimage_max_pixels: 262144\n");
    assert_eq!(said(&written.frozen.towers), (false, "train.yaml:5".to_owned()));
    assert_eq!(said(&written.frozen.projector), (false, "train.yaml:6".to_owned()));
    assert_eq!(said(&written.frozen.language), (true, "train.yaml:7".to_owned()));
    assert_eq!(said(&written.max_pixels), (262_144, "train.yaml:8".to_owned()));
    assert_eq!(written.not_modelled, []);
    let line = "MAX_PIXELS=1003520 NPROC_PER_NODE=2 swift sft --model m --deepspeed zero2";
    let swift = |more: &str| job(&[("train.sh", &format!("{line} {more}\n"))]);
    let tuned = swift("--freeze_vit false");
    assert_eq!(said(&tuned.frozen.towers), (false, "train.sh:1".to_owned()));
    assert!(said(&tuned.frozen.projector).0);
    assert_eq!(said(&tuned.max_pixels), (1_003_520, "train.sh:1".to_owned()));
    // Where modules are named, it gives adapters to all of that name.
    assert_eq!(swift("--target_modules q_proj v_proj").frozen.towers, None);
    let open = swift("--freeze_vit $FREEZE");
    assert_eq!((open.frozen.towers, open.unknown), (None, vec!["freeze"]));
}

#[test]
fn presets_of_ms_swift_are_the_public_ones() {
    let script = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --tuner_type full --deepspeed zero3_offload --max_length 8192 \\\n\
        --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --torch_dtype bfloat16 --attn_impl flash_attn\n";
    let job = job(&[("train.sh", script)]);
    assert_eq!(job.framework, Some(Framework::Swift));
    let config = job.config.as_ref().expect("a preset");
    assert_eq!(config.name, "ms-swift zero3_offload");
    assert!(config_text(&job).contains("\"offload_param\""));
    assert_eq!(said(&job.seq_len).0, 8192);
    assert_eq!(said(&job.precision).0, NumberFormat::Bf16);
    assert_eq!(said(&job.attention).0, Attention::Flash);
}

#[test]
fn swift_trains_adapters_where_nothing_is_said() {
    let job = job(&[("train.sh", "NPROC_PER_NODE=2 swift sft --model m --deepspeed zero2\n")]);
    assert_eq!(said(&job.method), (MethodName::Lora, "ms_swift 4.6.0".to_owned()));
    assert_eq!(said(&job.lora_rank), (8, "ms_swift 4.6.0".to_owned()));
}

#[test]
fn fields_of_accelerates_yaml_make_a_config() {
    let yaml = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 4\nmixed_precision: bf16\n\
        deepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n  gradient_accumulation_steps: 16\n";
    let script = "accelerate launch --config_file acc.yaml train.py\n";
    let program = "from accelerate import Accelerator\naccelerator = Accelerator()\n";
    let job = job(&[("run.sh", script), ("acc.yaml", yaml), ("train.py", program)]);
    assert_eq!(job.framework, Some(Framework::Accelerate));
    let config: serde_json::Value = serde_json::from_str(config_text(&job)).expect("JSON");
    assert_eq!(config["zero_optimization"]["stage"], 3);
    assert_eq!(config["zero_optimization"]["offload_optimizer"]["device"], "cpu");
    assert_eq!(config["gradient_accumulation_steps"], 16);
    assert_eq!(said(&job.precision), (NumberFormat::Bf16, "acc.yaml:4".to_owned()));
    assert_eq!(said(&job.world_size).0, 4);
}

#[test]
fn a_training_script_with_its_arguments_written_out() {
    let program = "from transformers import AutoModelForCausalLM, BitsAndBytesConfig\nfrom peft import LoraConfig\n\
        from trl import SFTConfig, SFTTrainer\n\
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-4B', attn_implementation='flash_attention_2')\n\
        peft_config = LoraConfig(r=64, target_modules='all-linear')\n\
        args = SFTConfig(output_dir='o', deepspeed='ds.json', max_length=2048, bf16=True, per_device_train_batch_size=4)\n\
        SFTTrainer(model=model, args=args, peft_config=peft_config).train()\n";
    let job = job(&[("train.py", program), DS]);
    assert_eq!(job.framework, Some(Framework::Trl));
    assert_eq!(said(&job.model), ("Qwen/Qwen3-4B".to_owned(), "train.py:4".to_owned()));
    assert_eq!(said(&job.method), (MethodName::Lora, "train.py:5".to_owned()));
    assert_eq!(said(&job.lora_rank), (64, "train.py:5".to_owned()));
    assert_eq!(said(&job.seq_len), (2048, "train.py:6".to_owned()));
    assert_eq!(said(&job.grad_checkpointing), (true, "trl 1.16.0".to_owned()));
    assert_eq!(said(&job.attention).0, Attention::Flash);
}

#[test]
fn options_of_a_script_come_from_the_line_or_their_default() {
    let program = "import argparse, deepspeed\nfrom transformers import AutoModelForCausalLM\n\
        parser = argparse.ArgumentParser()\nparser.add_argument('--model_id', default='gpt2')\n\
        args = parser.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained(args.model_id)\n\
        engine, *_ = deepspeed.initialize(model=model, config='ds.json')\n";
    let default =
        job(&[("run.sh", "deepspeed --num_gpus 2 train.py\n"), ("train.py", program), DS]);
    assert_eq!(default.framework, Some(Framework::DeepSpeed));
    assert_eq!(said(&default.model), ("gpt2".to_owned(), "train.py:4".to_owned()));
    let given = job(&[
        ("run.sh", "deepspeed --num_gpus 2 train.py --model_id m\n"),
        ("train.py", program),
        DS,
    ]);
    assert_eq!(said(&given.model), ("m".to_owned(), "run.sh:1".to_owned()));
}

#[test]
fn what_only_the_run_knows_is_named() {
    let script = "torchrun --nproc_per_node 2 t.py --deepspeed ds.json --model_name_or_path $1 --max_seq_length $LEN\n";
    let job = job(&[("run.sh", script), DS]);
    assert_eq!((job.model, job.seq_len), (None, None));
    assert_eq!(job.unknown, ["model", "seq_len"]);
}

#[test]
fn a_config_that_is_not_there_or_computed_is_said_to_be() {
    let missing = job(&[("run.sh", "deepspeed --num_gpus 2 t.py --deepspeed no.json\n")]);
    assert_eq!(missing.config.map(|config| config.content), Some(ConfigContent::Missing));
    let program =
        "import deepspeed\nconfig = build()\ndeepspeed.initialize(model=m, config=config)\n";
    let computed = job(&[("run.sh", "deepspeed --num_gpus 2 t.py\n"), ("t.py", program)]);
    assert_eq!(computed.config.map(|config| config.content), Some(ConfigContent::Computed));
}

#[test]
fn what_is_no_job_is_refused_with_its_kind() {
    let model = try_job(&[("config.json", r#"{"model_type": "llama"}"#)]);
    assert!(matches!(model, Err(JobProblem::NotAJob(_))));
    assert!(matches!(try_job(&[("a.sh", "echo hi\n")]), Err(JobProblem::NoLaunch(_))));
    let two = "deepspeed --num_gpus 2 a.py --deepspeed ds.json\ndeepspeed --num_gpus 4 b.py --deepspeed ds.json\n";
    match try_job(&[("a.sh", two), DS]) {
        Err(JobProblem::WhichLaunch { wanted: None, launches }) => {
            assert_eq!(launches.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_directory_with_one_launch_is_that_job() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = "deepspeed --num_gpus 2 t.py --deepspeed ds.json --max_length 77\n";
    for (name, text) in [("run.sh", line), ("setup.sh", "pip install deepspeed\n"), DS] {
        write(directory.path(), name, text);
    }
    let opened = open(directory.path(), None).expect("one job");
    assert_eq!(said(&opened.job.seq_len).0, 77);
    write(directory.path(), "other.sh", line);
    assert!(
        matches!(open(directory.path(), None), Err(JobProblem::Directory(found)) if found.len() == 2)
    );
}

/// The job of a training script.
fn of_script(script: &str) -> TrainingJob {
    let launch = "accelerate launch --num_processes 8 --use_deepspeed --deepspeed_config_file ds.json train.py\n";
    job(&[("run.sh", launch), ("train.py", script), DS])
}

/// What a job says that no prediction follows.
fn left_out(job: &TrainingJob) -> Vec<&str> {
    job.not_modelled.iter().map(|it| it.written.as_str()).collect()
}

#[test]
fn adapters_of_a_script_are_read_and_the_rest_of_them_is_named() {
    let adapters = |arguments: &str| {
        of_script(&format!(
            "a = SFTConfig(output_dir='o', deepspeed='ds.json')\n\
             SFTTrainer(model='m', args=a, peft_config=LoraConfig(r=16, {arguments})).train()\n"
        ))
    };
    let listed = adapters("target_modules=['q_proj', 'v_proj'], bias='none', modules_to_save=None");
    let targets = (vec!["q_proj".to_owned(), "v_proj".to_owned()], "train.py:2".to_owned());
    assert_eq!(said(&listed.lora_targets), targets);
    assert!(left_out(&listed).is_empty() && listed.unknown.is_empty());
    let open = adapters("target_modules=find(model)");
    assert_eq!((open.lora_targets, open.unknown), (None, vec!["lora_targets"]));
    let named = adapters(
        "target_modules='all-linear', modules_to_save=['lm_head'], use_dora=True, bias='all', \
         rank_pattern={'q_proj': 64}, layers_to_transform=[0, 1], use_qalora=x.y",
    );
    assert_eq!(said(&named.lora_targets).0, Vec::<String>::new());
    let expected = [
        "use_dora=True",
        "modules_to_save=['lm_head']",
        "bias=all",
        "layers_to_transform=[0, 1]",
        "rank_pattern={'q_proj': 64}",
    ];
    assert_eq!(left_out(&named), expected);
    let other = of_script("model = get_peft_model(model, VeraConfig(r=256))\n");
    assert_eq!((left_out(&other), said(&other.method).0), (vec!["VeraConfig"], MethodName::Lora));
}

#[test]
fn judges_and_vllm_of_a_script_are_read() {
    let grpo = |judges: &str, mode: &str| {
        of_script(&format!(
            "a = GRPOConfig(output_dir='o', deepspeed='ds.json', {mode})\n\
             GRPOTrainer(model='m', reward_funcs={judges}, args=a).train()\n"
        ))
    };
    for (judges, first, others) in [
        ("['a/b']", Some("a/b"), vec![]),
        ("[f, 'a/b']", Some("a/b"), vec![]),
        ("['a/b', 'c/d']", Some("a/b"), vec!["reward_funcs=c/d"]),
        ("[f, g]", None, vec![]),
    ] {
        let job = grpo(judges, "");
        assert_eq!(left_out(&job), others, "{judges}");
        let model = job.task.expect("a task").reward_model;
        assert_eq!(model.map(|said| said.value).as_deref(), first, "{judges}");
    }
    for (mode, rollout, is_assumed) in [
        ("'server'", RolloutName::Server, false),
        ("'colocate'", RolloutName::Vllm, false),
        ("a.mode", RolloutName::Vllm, true),
    ] {
        let job = grpo("f", &format!("use_vllm=True, vllm_mode={mode}"));
        let said = job.task.expect("a task").rollout.expect("a rollout");
        assert_eq!((said.value, said.origin == Origin::Assumed), (rollout, is_assumed), "{mode}");
    }
    assert_eq!(grpo("f", "use_vllm=x").unknown, ["rollout"]);
}

#[test]
fn dictionaries_among_training_arguments_are_read() {
    let sft = |arguments: &str| {
        of_script(&format!(
            "a = SFTConfig(output_dir='o', deepspeed='ds.json', {arguments})\n\
             SFTTrainer(model='m', args=a).train()\n"
        ))
    };
    for kwargs in ["{'use_reentrant': False}", "dict(use_reentrant=True)", "{}", "None"] {
        let job = sft(&format!("gradient_checkpointing_kwargs={kwargs}"));
        assert_eq!(left_out(&job), Vec::<&str>::new(), "{kwargs}");
    }
    for (kwargs, written) in [
        ("{'offload': True, 'use_reentrant': False}", "gradient_checkpointing_kwargs.offload=True"),
        ("dict(every_n_layers=4)", "gradient_checkpointing_kwargs.every_n_layers=4"),
        ("{'every_n_layers': n}", "gradient_checkpointing_kwargs.every_n_layers=n"),
        ("{'context_fn': f}", "gradient_checkpointing_kwargs={'context_fn': f}"),
    ] {
        let job = sft(&format!("gradient_checkpointing_kwargs={kwargs}"));
        assert_eq!(left_out(&job), [written]);
    }
    let job = sft("model_init_kwargs={'attn_implementation': 'eager', 'dtype': torch.bfloat16}");
    assert_eq!(said(&job.attention), (Attention::Eager, "train.py:1".to_owned()));
    let job = sft("model_init_kwargs=dict(attn_implementation=x)");
    assert_eq!((job.attention, job.unknown), (None, vec!["attention"]));
    let line = "torchrun --nproc_per_node 8 train.py --deepspeed ds.json \\\n\
        --gradient_checkpointing_kwargs '{\"use_reentrant\": false, \"every_n_layers\": 2}'\n";
    let job = self::job(&[("run.sh", line), DS]);
    assert_eq!(left_out(&job), ["gradient_checkpointing_kwargs.every_n_layers=2"]);
}

#[test]
fn checkpoints_that_axolotl_offloads_are_named() {
    for (value, offload) in [
        ("true", vec![]),
        ("offload", vec!["gradient_checkpointing=offload"]),
        ("offload_disk", vec!["gradient_checkpointing=offload_disk"]),
    ] {
        let yaml = format!(
            "base_model: m\ngradient_checkpointing: {value}\nmicro_batch_size: 2\nsequence_len: 4096\ndeepspeed: ds.json\n"
        );
        let job = job(&[("train.yml", &yaml), DS]);
        assert_eq!(left_out(&job), offload);
        assert_eq!(said(&job.grad_checkpointing), (true, "train.yml:2".to_owned()));
    }
}

#[test]
fn a_larger_batch_for_the_reference_is_named() {
    for (arguments, left) in [
        ("precompute_ref_log_probs=True, precompute_ref_batch_size=2", vec![]),
        (
            "precompute_ref_log_probs=True, precompute_ref_batch_size=32",
            vec!["precompute_ref_batch_size=32"],
        ),
        ("precompute_ref_batch_size=32", vec![]),
    ] {
        let job = of_script(&format!(
            "a = DPOConfig(output_dir='o', deepspeed='ds.json', per_device_train_batch_size=2, {arguments})\n\
             DPOTrainer(model='m', args=a).train()\n"
        ));
        assert_eq!(left_out(&job), left, "{arguments}");
    }
}

#[test]
fn what_a_script_does_to_the_model_is_named() {
    for (lines, left) in [
        ("model = torch.compile(model)", vec!["torch.compile(model)"]),
        ("engine.compile()", vec!["engine.compile()"]),
        ("pattern = re.compile('x')", vec![]),
        ("if args.fast:\n    model = torch.compile(model)", vec![]),
        ("model.embed.requires_grad_(False)", vec!["model.embed.requires_grad_(False)"]),
        (
            "for p in model.parameters():\n    p.requires_grad = False",
            vec!["p.requires_grad = False"],
        ),
        ("for p in ref_model.parameters():\n    p.requires_grad = False", vec![]),
    ] {
        let script = format!(
            "p = argparse.ArgumentParser()\np.add_argument('--fast', action='store_true')\n\
             p.add_argument('--size')\nargs = p.parse_args()\n\
             model = AutoModelForCausalLM.from_pretrained('m')\n{lines}\n\
             engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"
        );
        let launch = "deepspeed --num_gpus 8 train.py --size 1\n";
        let job = job(&[("run.sh", launch), ("train.py", &script), DS]);
        assert_eq!(left_out(&job), left, "{lines}");
    }
}
