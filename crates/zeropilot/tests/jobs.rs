//! Jobs in the shapes people write them: `memory JOB`, `simulate JOB` and `plan JOB` answer what the same question by options
//! answers. The options beside each job are read off its text by hand, defaults of frameworks off
//! `knowledge/recipes`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use zeropilot_oracle::part_of;

const Z2: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
 "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}"#;
const Z3: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
 "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}}"#;
const Z3_OFFLOAD: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
 "bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
 "offload_optimizer": {"device": "cpu", "pin_memory": true}, "offload_param": {"device": "cpu", "pin_memory": true}}}"#;
/// A config for `deepspeed.initialize`, which nothing fills.
const FIXED: &str = r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}"#;

struct Case {
    name: &'static str,
    /// The job is the first of them.
    files: Vec<(&'static str, String)>,
    /// The same question by options, `--config` included.
    options: &'static str,
    /// What the job leaves open, given to both questions.
    beside: &'static str,
}

fn case(name: &'static str, files: &[(&'static str, &str)], options: &'static str) -> Case {
    let files = files.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
    Case { name, files, options, beside: "" }
}

impl Case {
    fn beside(mut self, beside: &'static str) -> Self {
        self.beside = beside;
        self
    }

    /// A directory with its files.
    fn written(&self) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        for (file, text) in &self.files {
            fs::write(directory.path().join(file), text).expect("a file");
        }
        directory
    }
}

fn hf_trainer() -> Vec<Case> {
    let line = "torchrun --nproc_per_node 8 train.py --deepspeed ds.json --model_name_or_path Qwen/Qwen3-8B \\\n  \
        --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16 True --gradient_checkpointing True \\\n  \
        --max_seq_length 4096\n";
    let same = "--model Qwen/Qwen3-8B --config ds.json --micro-batch 2 --grad-accum 4 --precision bf16 --grad-checkpointing --seq-len 4096";
    let deepspeed = line.replace("torchrun --nproc_per_node 8", "deepspeed --num_gpus 8");
    let variables = format!(
        "MODEL=Qwen/Qwen3-8B\nGPUS=8\nLEN=4096\n{}",
        line.replace("Qwen/Qwen3-8B", "$MODEL").replace(" 8 ", " $GPUS ").replace("4096", "${LEN}")
    );
    let slurm = format!("#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=8\nsrun {line}");
    let module = line.replace("torchrun", "python -m torch.distributed.run");
    let equals = line
        .replace("--max_seq_length 4096", "--max_seq_length=4096")
        .replace("--bf16 True", "--bf16");
    let dashes = line
        .replace("--max_seq_length", "--max-seq-length")
        .replace("--gradient_checkpointing", "--gradient-checkpointing");
    let lora = line.replace("--max_seq_length", "--use_peft --lora_r 32 --max_seq_length");
    let qlora =
        line.replace("--max_seq_length", "--use_peft --lora_r 8 --load_in_4bit --max_seq_length");
    let flash = line.replace(
        "--max_seq_length",
        "--attn_implementation flash_attention_2 --use_liger_kernel --max_seq_length",
    );
    let small = line.replace("--max_seq_length", "--optim adamw_bnb_8bit --max_seq_length");
    let bare = "deepspeed --num_gpus 8 train.py --deepspeed ds.json --bf16\n";
    vec![
        case("torchrun", &[("train.sh", line), ("ds.json", Z3)], same),
        case("torchrun, stage 2", &[("train.sh", line), ("ds.json", Z2)], same),
        case("torchrun, offload", &[("train.sh", line), ("ds.json", Z3_OFFLOAD)], same),
        case("deepspeed", &[("train.sh", &deepspeed), ("ds.json", Z3)], same),
        case("variables", &[("train.sh", &variables), ("ds.json", Z3)], same),
        case("Slurm", &[("job.slurm", &slurm), ("ds.json", Z3)], same),
        case("torch.distributed.run", &[("train.sh", &module), ("ds.json", Z3)], same),
        case("equals signs", &[("train.sh", &equals), ("ds.json", Z3)], same),
        case("dashes", &[("train.sh", &dashes), ("ds.json", Z3)], same),
        case(
            "adapters",
            &[("train.sh", &lora), ("ds.json", Z2)],
            "--model Qwen/Qwen3-8B --config ds.json --micro-batch 2 --grad-accum 4 --precision bf16 --grad-checkpointing --seq-len 4096 --method lora --lora-rank 32",
        ),
        case(
            "QLoRA",
            &[("train.sh", &qlora), ("ds.json", Z2)],
            "--model Qwen/Qwen3-8B --config ds.json --micro-batch 2 --grad-accum 4 --precision bf16 --grad-checkpointing --seq-len 4096 --method qlora --lora-rank 8",
        ),
        case(
            "kernels",
            &[("train.sh", &flash), ("ds.json", Z3)],
            "--model Qwen/Qwen3-8B --config ds.json --micro-batch 2 --grad-accum 4 --precision bf16 --grad-checkpointing --seq-len 4096 --attention flash --fused-loss --liger",
        ),
        case(
            "8-bit optimizer",
            &[("train.sh", &small), ("ds.json", Z3)],
            "--model Qwen/Qwen3-8B --config ds.json --micro-batch 2 --grad-accum 4 --precision bf16 --grad-checkpointing --seq-len 4096 --optimizer adamw8bit",
        ),
        // transformers 5.22.2: 8 sequences per device, no accumulation, no checkpointing.
        case(
            "defaults of the Trainer",
            &[("train.sh", bare), ("ds.json", Z3)],
            "--config ds.json --micro-batch 8 --grad-accum 1 --precision bf16",
        )
        .beside("--model Qwen/Qwen3-0.6B --seq-len 512"),
    ]
}

fn training_scripts() -> Vec<Case> {
    let trainer = "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-1.7B')\n\
        args = TrainingArguments(output_dir='out', deepspeed='ds.json', per_device_train_batch_size=4,\n    \
            gradient_accumulation_steps=2, bf16=True, gradient_checkpointing=True)\n\
        Trainer(model=model, args=args).train()\n";
    let same = "--model Qwen/Qwen3-1.7B --config ds.json --micro-batch 4 --grad-accum 2 --precision bf16 --grad-checkpointing";
    let trl = "from peft import LoraConfig\nfrom trl import SFTConfig, SFTTrainer\n\
        peft_config = LoraConfig(r=16, target_modules='all-linear')\n\
        args = SFTConfig(output_dir='out', deepspeed='ds.json', max_length=2048, per_device_train_batch_size=1, bf16=True)\n\
        SFTTrainer(model='Qwen/Qwen3-1.7B', args=args, peft_config=peft_config).train()\n";
    let dictionary = format!(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\nconfig = {Z2}\n\
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-1.7B')\n\
        args = TrainingArguments(output_dir='out', deepspeed=config, per_device_train_batch_size=4, bf16=True)\n\
        Trainer(model=model, args=args).train()\n"
    );
    let engine = "import argparse\nimport deepspeed\nfrom transformers import AutoModelForCausalLM\n\
        parser = argparse.ArgumentParser()\nparser.add_argument('--model_name_or_path', default='Qwen/Qwen3-1.7B')\n\
        parser.add_argument('--local_rank', type=int, default=-1)\nargs = parser.parse_args()\n\
        model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)\nmodel.gradient_checkpointing_enable()\n\
        engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n";
    vec![
        case("TrainingArguments written out", &[("train.py", trainer), ("ds.json", Z3)], same).beside("--seq-len 1024"),
        case("the same, started by torchrun", &[("run.sh", "torchrun --nproc_per_node 8 train.py\n"), ("train.py", trainer), ("ds.json", Z3)], same).beside("--seq-len 1024"),
        case("the same, started by deepspeed", &[("run.sh", "deepspeed --num_gpus 8 train.py\n"), ("train.py", trainer), ("ds.json", Z2)], same).beside("--seq-len 1024"),
        // trl 1.16.0 recomputes layers by itself.
        case("TRL", &[("train.py", trl), ("ds.json", Z2)], "--model Qwen/Qwen3-1.7B --config ds.json --micro-batch 1 --grad-accum 1 --precision bf16 --grad-checkpointing --seq-len 2048 --method lora --lora-rank 16 --fused-loss=trl"),
        case("TRL before its own head", &[("train.py", trl), ("ds.json", Z2)], "--model Qwen/Qwen3-1.7B --config ds.json --micro-batch 1 --grad-accum 1 --precision bf16 --grad-checkpointing --seq-len 2048 --method lora --lora-rank 16").beside("--trl-version 1.6"),
        case("a config in the script", &[("train.py", &dictionary), ("z2.json", Z2)], "--model Qwen/Qwen3-1.7B --config z2.json --micro-batch 4 --grad-accum 1 --precision bf16").beside("--seq-len 1024"),
        case("deepspeed.initialize", &[("train.sh", "deepspeed --num_gpus 8 train.py\n"), ("train.py", engine), ("ds.json", FIXED)], "--model Qwen/Qwen3-1.7B --config ds.json --grad-checkpointing").beside("--seq-len 1024"),
        case("its model on the line", &[("train.sh", "deepspeed --num_gpus 8 train.py --model_name_or_path gpt2\n"), ("train.py", engine), ("ds.json", FIXED)], "--model gpt2 --config ds.json --grad-checkpointing").beside("--seq-len 1024"),
    ]
}

fn llamafactory() -> Vec<Case> {
    let lora = "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ndo_train: true\nfinetuning_type: lora\nlora_rank: 16\n\
        lora_target: all\ndeepspeed: ds.json\ncutoff_len: 4096\nper_device_train_batch_size: 1\n\
        gradient_accumulation_steps: 8\nbf16: true\n";
    let same = "--model Qwen/Qwen3-8B --config ds.json --method lora --lora-rank 16 --seq-len 4096 --micro-batch 1 --grad-accum 8 --precision bf16 --grad-checkpointing";
    let full = lora.replace(
        "finetuning_type: lora\nlora_rank: 16\nlora_target: all\n",
        "finetuning_type: full\n",
    );
    let sees = full.replace("Qwen/Qwen3-8B", "Qwen/Qwen2.5-VL-7B-Instruct");
    let tower = lora.replace("Qwen/Qwen3-8B", "Qwen/Qwen2.5-VL-7B-Instruct")
        + "freeze_vision_tower: false\nfreeze_language_model: true\nimage_max_pixels: 262144\n";
    let short = "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ndeepspeed: ds.json\nper_device_train_batch_size: 1\nbf16: true\n";
    let qlora = format!("{lora}quantization_bit: 4\n");
    let off = format!(
        "{lora}disable_gradient_checkpointing: true\nenable_liger_kernel: true\nflash_attn: fa2\n"
    );
    let script = "export NPROC_PER_NODE=8\nllamafactory-cli train train.yaml\n";
    let forced = "FORCE_TORCHRUN=1 NPROC_PER_NODE=8 llamafactory-cli train train.yaml cutoff_len=2048 per_device_train_batch_size=2\n";
    vec![
        case("LLaMA-Factory's YAML", &[("train.yaml", lora), ("ds.json", Z2)], same),
        case(
            "LLaMA-Factory, full",
            &[("train.yaml", &full), ("ds.json", Z3)],
            "--model Qwen/Qwen3-8B --config ds.json --seq-len 4096 --micro-batch 1 --grad-accum 8 --precision bf16 --grad-checkpointing",
        ),
        // llamafactory 0.9.5: LoRA of rank 8 on all linear layers, 2048 tokens, layers recomputed.
        case(
            "LLaMA-Factory's defaults",
            &[("train.yaml", short), ("ds.json", Z2)],
            "--model Qwen/Qwen3-8B --config ds.json --method lora --lora-rank 8 --seq-len 2048 --micro-batch 1 --grad-accum 1 --precision bf16 --grad-checkpointing",
        ),
        case(
            "LLaMA-Factory, QLoRA",
            &[("train.yaml", &qlora), ("ds.json", Z2)],
            "--model Qwen/Qwen3-8B --config ds.json --method qlora --lora-rank 16 --seq-len 4096 --micro-batch 1 --grad-accum 8 --precision bf16 --grad-checkpointing",
        ),
        case(
            "LLaMA-Factory, kernels",
            &[("train.yaml", &off), ("ds.json", Z2)],
            "--model Qwen/Qwen3-8B --config ds.json --method lora --lora-rank 16 --seq-len 4096 --micro-batch 1 --grad-accum 8 --precision bf16 --fused-loss --liger --attention flash",
        ),
        // llamafactory 0.9.5: tower and projector are frozen, images have at most 768 × 768 pixels.
        case(
            "LLaMA-Factory, a model that sees",
            &[("train.yaml", &sees), ("ds.json", Z3)],
            "--model Qwen/Qwen2.5-VL-7B-Instruct --config ds.json --seq-len 4096 --micro-batch 1 --grad-accum 8 --precision bf16 --grad-checkpointing --freeze vision,projector --max-pixels 589824",
        )
        .beside("--image 2048x2048"),
        case(
            "LLaMA-Factory, a tower with adapters",
            &[("train.yaml", &tower), ("ds.json", Z2)],
            "--model Qwen/Qwen2.5-VL-7B-Instruct --config ds.json --method lora --lora-rank 16 --seq-len 4096 --micro-batch 1 --grad-accum 8 --precision bf16 --grad-checkpointing --freeze projector,language --max-pixels 262144",
        )
        .beside("--image 2048x2048"),
        case(
            "LLaMA-Factory by a script",
            &[("run.sh", script), ("train.yaml", lora), ("ds.json", Z2)],
            same,
        ),
        case(
            "LLaMA-Factory with overrides",
            &[("run.sh", forced), ("train.yaml", lora), ("ds.json", Z2)],
            "--model Qwen/Qwen3-8B --config ds.json --method lora --lora-rank 16 --seq-len 2048 --micro-batch 2 --grad-accum 8 --precision bf16 --grad-checkpointing",
        ),
    ]
}

fn axolotl() -> Vec<Case> {
    let full = "base_model: meta-llama/Llama-3.1-8B\ndatasets:\n  - path: a\n    type: alpaca\nsequence_len: 8192\n\
        micro_batch_size: 1\ngradient_accumulation_steps: 4\noptimizer: adamw_torch_fused\nbf16: true\n\
        gradient_checkpointing: true\nflash_attention: true\ndeepspeed: ds.json\n";
    let lora = format!("{full}adapter: lora\nlora_r: 32\nlora_target_linear: true\n");
    let qlora = format!(
        "{full}adapter: qlora\nload_in_4bit: true\nlora_r: 8\nlora_target_modules:\n  - q_proj\n  - v_proj\n"
    );
    let cut = format!(
        "{full}plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n"
    );
    let script = "accelerate launch --num_processes 8 -m axolotl.cli.train train.yml\n";
    let same = "--model meta-llama/Llama-3.1-8B --config ds.json --seq-len 8192 --micro-batch 1 --grad-accum 4 --precision bf16 --grad-checkpointing --attention flash --optimizer adamw";
    vec![
        case("axolotl's YAML", &[("train.yml", full), ("ds.json", Z3)], same),
        case(
            "axolotl, LoRA",
            &[("train.yml", &lora), ("ds.json", Z2)],
            "--model meta-llama/Llama-3.1-8B --config ds.json --seq-len 8192 --micro-batch 1 --grad-accum 4 --precision bf16 --grad-checkpointing --attention flash --method lora --lora-rank 32",
        ),
        case(
            "axolotl, QLoRA",
            &[("train.yml", &qlora), ("ds.json", Z2)],
            "--model meta-llama/Llama-3.1-8B --config ds.json --seq-len 8192 --micro-batch 1 --grad-accum 4 --precision bf16 --grad-checkpointing --attention flash --method qlora --lora-rank 8 --lora-targets q_proj,v_proj",
        ),
        case(
            "axolotl, Cut Cross Entropy",
            &[("train.yml", &cut), ("ds.json", Z3)],
            "--model meta-llama/Llama-3.1-8B --config ds.json --seq-len 8192 --micro-batch 1 --grad-accum 4 --precision bf16 --grad-checkpointing --attention flash --fused-loss",
        ),
        case(
            "axolotl train",
            &[("run.sh", "axolotl train train.yml\n"), ("train.yml", full), ("ds.json", Z3)],
            same,
        ),
        case(
            "axolotl by accelerate",
            &[("run.sh", script), ("train.yml", full), ("ds.json", Z3)],
            same,
        ),
    ]
}

/// The preset behind a name of ms-swift, as its wheel has it.
fn preset(name: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../knowledge/recipes/ms-swift").join(name);
    fs::read_to_string(path).expect("a preset")
}

fn swift() -> Vec<Case> {
    let line = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --tuner_type full --deepspeed zero3 --max_length 4096 \\\n  \
        --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --torch_dtype bfloat16 --attn_impl flash_attn\n";
    let same = "--model Qwen/Qwen3-8B --config preset.json --seq-len 4096 --micro-batch 1 --grad-accum 2 --precision bf16 --attention flash --grad-checkpointing";
    let mut cases = Vec::new();
    for (name, word, file) in [
        ("ms-swift zero3", "zero3", "zero3.json"),
        ("ms-swift zero3_offload", "zero3_offload", "zero3_offload.json"),
        ("ms-swift zero2", "zero2", "zero2.json"),
        ("ms-swift zero2_offload", "zero2_offload", "zero2_offload.json"),
        ("ms-swift zero1", "zero1", "zero1.json"),
    ] {
        let line = line.replace("zero3", word);
        cases.push(case(name, &[("train.sh", &line), ("preset.json", &preset(file))], same));
    }
    // ms_swift 4.6.0: LoRA of rank 8 on all linear layers, layers recomputed.
    let short = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --deepspeed zero2 --max_length 2048 --gradient_accumulation_steps 16 --torch_dtype bfloat16\n";
    cases.push(case("ms-swift's defaults", &[("train.sh", short), ("preset.json", &preset("zero2.json"))], "--model Qwen/Qwen3-8B --config preset.json --seq-len 2048 --micro-batch 1 --grad-accum 16 --precision bf16 --method lora --lora-rank 8 --grad-checkpointing"));
    let own = line.replace("zero3", "ds.json");
    cases.push(case("ms-swift with a file", &[("train.sh", &own), ("ds.json", Z2)], "--model Qwen/Qwen3-8B --config ds.json --seq-len 4096 --micro-batch 1 --grad-accum 2 --precision bf16 --attention flash --grad-checkpointing"));
    cases
}

fn accelerate() -> Vec<Case> {
    let yaml = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_machines: 1\nnum_processes: 8\n\
        mixed_precision: bf16\ndeepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n  offload_param_device: none\n  \
        gradient_accumulation_steps: 4\n  gradient_clipping: 1.0\n  zero3_init_flag: true\n";
    let program = "from accelerate import Accelerator\nfrom transformers import AutoModelForCausalLM\n\
        accelerator = Accelerator()\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-1.7B')\n";
    // What DeepSpeedPlugin of accelerate 1.15.0 builds from those fields.
    let built = json!({
        "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 4,
        "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "nvme_path": null},
                              "offload_param": {"device": "none", "nvme_path": null}},
        "gradient_clipping": 1.0, "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"},
    })
    .to_string();
    let stage_2 = yaml
        .replace("zero_stage: 3", "zero_stage: 2")
        .replace("offload_optimizer_device: cpu", "offload_optimizer_device: none");
    let built_2 = built.replace("\"stage\":3", "\"stage\":2").replace("\"cpu\"", "\"none\"");
    let file = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 8\n\
        deepspeed_config:\n  deepspeed_config_file: ds.json\n  zero3_init_flag: true\n";
    let launch = "accelerate launch --config_file acc.yaml train.py\n";
    let options = "accelerate launch --use_deepspeed --num_processes 8 --num_machines 1 --mixed_precision bf16 --zero_stage 2 --gradient_accumulation_steps 4 --gradient_clipping 1.0 train.py\n";
    let same = "--model Qwen/Qwen3-1.7B --config built.json --precision bf16";
    vec![
        case(
            "accelerate's fields",
            &[
                ("run.sh", launch),
                ("acc.yaml", yaml),
                ("train.py", program),
                ("built.json", &built),
            ],
            same,
        )
        .beside("--seq-len 512 --micro-batch 2"),
        case(
            "accelerate's fields, stage 2",
            &[
                ("run.sh", launch),
                ("acc.yaml", &stage_2),
                ("train.py", program),
                ("built.json", &built_2),
            ],
            same,
        )
        .beside("--seq-len 512 --micro-batch 2"),
        case(
            "accelerate's options",
            &[("run.sh", options), ("train.py", program), ("built.json", &built_2)],
            same,
        )
        .beside("--seq-len 512 --micro-batch 2"),
        case(
            "accelerate's YAML alone",
            &[("acc.yaml", yaml), ("built.json", &built)],
            "--config built.json --precision bf16",
        )
        .beside("--model Qwen/Qwen3-1.7B --seq-len 512 --micro-batch 2"),
        case(
            "accelerate with a file",
            &[
                ("run.sh", launch),
                ("acc.yaml", file),
                ("train.py", program),
                ("ds.json", Z3_OFFLOAD),
            ],
            "--model Qwen/Qwen3-1.7B --config ds.json --precision bf16",
        )
        .beside("--seq-len 512 --micro-batch 2"),
    ]
}

fn configs() -> Vec<Case> {
    let example = "#!/bin/bash\nOUTPUT=./output\nmkdir -p $OUTPUT\ndeepspeed --num_gpus 8 main.py \\\n   \
        --model_name_or_path facebook/opt-1.3b \\\n   --per_device_train_batch_size 8 \\\n   --max_seq_len 512 \\\n   \
        --gradient_accumulation_steps 1 \\\n   --gradient_checkpointing \\\n   --deepspeed --deepspeed_config ds.json \\\n   \
        --output_dir $OUTPUT &> $OUTPUT/training.log\n";
    let fixed = r#"{"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1, "fp16": {"enabled": true},
        "zero_optimization": {"stage": 3}}"#;
    vec![
        case("a config alone", &[("ds.json", FIXED)], "--config ds.json")
            .beside("--model Qwen/Qwen3-1.7B --seq-len 1024"),
        case("a config of the Trainer alone", &[("ds.json", Z3)], "--config ds.json")
            .beside("--model Qwen/Qwen3-1.7B --seq-len 1024 --micro-batch 1"),
        case(
            "DeepSpeedExamples",
            &[("train.sh", example), ("ds.json", fixed)],
            "--model facebook/opt-1.3b --config ds.json --seq-len 512 --grad-checkpointing",
        ),
    ]
}

/// The jobs that `crates/zeropilot_lint/tests/scripts.rs` runs with the real launchers: their programs name no model.
fn jobs_that_are_run() -> Vec<Case> {
    let program = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../zeropilot_lint/tests/scripts")
            .join(name);
        fs::read_to_string(path).expect("a program")
    };
    let mut cases = Vec::new();
    for (name, file) in [
        ("no_sync", "no_sync.py"),
        ("clipping", "clipping.py"),
        ("saved by transformers", "saved_by_transformers.py"),
        ("saved by torch", "saved_by_torch.py"),
        ("generation", "generation.py"),
        ("early init", "early_init.py"),
        ("ten steps", "ten_steps.py"),
        ("options", "options.py"),
    ] {
        let text = program(file);
        for line in
            ["torchrun --standalone --nproc_per_node 8 t.py\n", "deepspeed --num_gpus 8 t.py\n"]
        {
            cases.push(
                case(
                    name,
                    &[("run.sh", line), ("t.py", &text), ("ds.json", FIXED)],
                    "--config ds.json",
                )
                .beside("--model Qwen/Qwen3-0.6B --seq-len 512"),
            );
        }
    }
    cases
}

fn all() -> Vec<Case> {
    let mut cases = hf_trainer();
    cases.extend(training_scripts());
    cases.extend(llamafactory());
    cases.extend(axolotl());
    cases.extend(swift());
    cases.extend(accelerate());
    cases.extend(configs());
    cases.extend(jobs_that_are_run());
    cases
}

/// An answer without what it rests on, which differs by design.
fn answer(directory: &Path, verb: &str, words: &[&str]) -> Result<Value, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .current_dir(directory)
        .env_clear()
        .env("HF_HUB_OFFLINE", "1")
        .args([verb, "--json", "--gpus", "8xA100-80G"])
        .args(words)
        .output()
        .expect("the command runs");
    if output.status.code().is_none_or(|code| code > 1) {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    answer.as_object_mut().expect("an object").remove("provenance");
    answer.as_object_mut().expect("an object").remove("precision_assumed");
    Ok(answer)
}

fn same_answers(verb: &str) {
    let cases = all();
    assert!(cases.len() >= 60, "{}", cases.len());
    for case in &cases {
        let Case { name, files, options, beside } = case;
        let directory = case.written();
        let beside: Vec<&str> = beside.split_whitespace().collect();
        let job: Vec<&str> = [files[0].0].into_iter().chain(beside.iter().copied()).collect();
        let options: Vec<&str> = options.split_whitespace().chain(beside.iter().copied()).collect();
        let by_job = answer(directory.path(), verb, &job);
        let by_options = answer(directory.path(), verb, &options);
        assert!(by_options.is_ok(), "{name}: {by_options:?}");
        assert_eq!(by_job, by_options, "{name}: {job:?} and {options:?}");
    }
}

#[test]
fn memory_of_a_job_is_memory_of_its_options() {
    same_answers("memory");
}

#[test]
fn a_step_of_a_job_is_a_step_of_its_options() {
    same_answers("simulate");
}

/// A plan without what differs by design: what it rests on, the job as written, and what is written for one reader.
fn plan(directory: &Path, words: &[String]) -> Result<Value, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut plan = answer(directory, "plan", &words)?;
    plan.as_object_mut().expect("an object").remove("current");
    let of_reader = |strategy: &mut Value| {
        let strategy = strategy.as_object_mut().expect("a strategy");
        strategy.retain(|key, _| !matches!(key.as_str(), "config" | "launch"));
    };
    of_reader(&mut plan["recommended"]);
    for list in ["alternatives", "fallbacks"] {
        plan[list].as_array_mut().expect("strategies").iter_mut().for_each(of_reader);
    }
    Ok(plan)
}

/// Options as a plan takes them, with micro-batch and accumulation apart: it chooses these, stage, offload and
/// checkpointing itself.
fn plan_options(text: &str) -> (Vec<String>, [Option<u64>; 2]) {
    let (mut options, mut batch) = (Vec::new(), [None; 2]);
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let on = if word == "--liger" { "true" } else { "yes" };
        let value = words.next_if(|next| !next.starts_with("--")).unwrap_or(on);
        match word {
            "--config" | "--stage" | "--offload" | "--grad-checkpointing" => {}
            "--micro-batch" => batch[0] = value.parse().ok(),
            "--grad-accum" => batch[1] = value.parse().ok(),
            // Of a trainer: the config that is written for others names AdamW.
            "--optimizer" => options.extend([format!("{word}={value}"), "--for=hf-trainer".into()]),
            word if word.contains('=') => options.push(word.to_owned()),
            _ => options.push(format!("{word}={value}")),
        }
    }
    (options, batch)
}

/// What a plan keeps of a job beside its options: the precision of its config, and the global batch, which is micro-batch
/// × accumulation × 8 ranks.
fn kept(case: &Case, [micro, accumulation]: [Option<u64>; 2]) -> Vec<String> {
    let config = case.files.iter().find(|(name, _)| *name == "ds.json").map(|(_, text)| text);
    let config: Value = config.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let micro = micro.or(config["train_micro_batch_size_per_gpu"].as_u64());
    let accumulation = accumulation.or(config["gradient_accumulation_steps"].as_u64());
    let global = micro.zip(accumulation).map(|(micro, steps)| micro * steps * 8);
    let precision = (config["fp16"]["enabled"] == true).then(|| "--precision=fp16".to_owned());
    global.map(|batch| format!("--global-batch={batch}")).into_iter().chain(precision).collect()
}

/// Planning takes long, so each build asks about a sixth of the jobs.
#[test]
fn a_plan_for_a_job_is_a_plan_for_its_options() {
    let mut wrong = Vec::new();
    for case in part_of(all(), 6) {
        let directory = case.written();
        let (beside, _) = plan_options(case.beside);
        let (options, batch) = plan_options(case.options);
        let kept = kept(&case, batch);
        let job = [&[case.files[0].0.to_owned()][..], &beside].concat();
        let options = [options, beside, kept].concat();
        let by_job = plan(directory.path(), &job);
        let by_options = plan(directory.path(), &options);
        if by_job.is_err() || by_job != by_options {
            wrong.push(format!("{}: {options:?}\n{by_job:?}\n{by_options:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
