//! Sequences that are too long for one GPU: `plan` finds what makes room for them, and the code it prints trains.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use zeropilot_oracle::python;

fn zeropilot(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("zeropilot runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

fn answer(arguments: &[&str]) -> Value {
    serde_json::from_str(&zeropilot(arguments)).expect("it is JSON")
}

/// DeepSpeed trains 3.7 million tokens of this model on such a node (ALST): 131,072 fit by far.
#[test]
fn an_8b_model_learns_from_128k_tokens_on_one_node() {
    let question = ["plan", "--model", "llama-3.1-8b", "--gpus", "8xH100", "--seq-len", "131072"];
    let plan = answer(&[&question[..], &["--json"]].concat());
    let chosen = &plan["recommended"]["strategy"];
    assert_eq!(chosen["stage"], 3, "stages 1 and 2 multiply gradients: {chosen}");
    let ranks = chosen["sequence_parallel"].as_u64().expect("a number");
    assert!(ranks > 1 && 8 % ranks == 0, "{chosen}");
    assert_eq!(chosen["fused_loss"], true, "{chosen}");
    // What `memory` says about it is the same.
    let ranks = ranks.to_string();
    let memory = answer(&[
        "memory",
        "--model",
        "llama-3.1-8b",
        "--gpus",
        "8xH100",
        "--seq-len",
        "131072",
        "--json",
        "--sequence-parallel",
        &ranks,
        "--grad-checkpointing",
        "--fused-loss",
    ]);
    assert_eq!(memory["device"]["verdict"], "fits", "{memory}");
}

/// Every layer's input of a sequence that 8 GPUs share: 131,072 / 8 tokens × 4,096 × 2 bytes, 32 times, on the host.
#[test]
fn checkpoints_on_the_host_are_counted_there() {
    let asked = ["memory", "--model", "llama-3.1-8b", "--gpus", "8xH100", "--seq-len", "131072"];
    let shared = ["--sequence-parallel", "8", "--fused-loss", "--json", "--offload", "optimizer"];
    let host = |more: &[&str]| {
        let memory = answer(&[&asked[..], &shared, more].concat());
        memory["host"]["per_process"]["expected"].as_u64().expect("a number")
    };
    let more = host(&["--activation-offload"]) - host(&["--grad-checkpointing"]);
    assert_eq!(more, 32 * (131_072 / 8) * 4096 * 2);
}

/// A script that computes the loss in shards, as DeepSpeed documents it.
const TILED_LOSS: &str = r#"import deepspeed
from deepspeed.runtime.sequence_parallel.ulysses_sp import TiledFusedLogitsLoss
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.1-8B")
model.gradient_checkpointing_enable()
engine, _, _, _ = deepspeed.initialize(model=model, config="ds.json")


def compute(self, x, y):
    return self.loss_function(self.lm_head(x), None, self.config.vocab_size, shift_labels=y)


for batch in loader:
    labels = batch.pop("shift_labels")
    hidden = engine.module.model(**batch).last_hidden_state
    weights = [engine.module.lm_head.weight]
    loss = TiledFusedLogitsLoss.apply(compute, engine.module, hidden, labels, None, SHARDS, weights, "mean")
    engine.backward(loss)
    engine.step()
"#;

/// What `memory` says of that script with so many shards, or as many as it computes.
fn tiled_loss(shards: &str) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("a file");
    };
    write("train.py", &TILED_LOSS.replace("SHARDS", shards));
    write(
        "ds.json",
        r#"{"bf16": {"enabled": true}, "zero_optimization": {"stage": 2},
        "train_micro_batch_size_per_gpu": 1}"#,
    );
    write("run.sh", "deepspeed --num_gpus 8 train.py\n");
    let script = directory.path().join("run.sh").display().to_string();
    answer(&["memory", &script, "--gpus", "8xH100", "--seq-len", "16384", "--json"])
}

/// Of 16,384 tokens two shards have 8,192 each, four 4,096. Where forward is highest, in backward through a shard, each of
/// them has 128,256 log-probabilities, their gradients and those of the logits, of four bytes.
#[test]
fn a_loss_in_shards_is_read_in_the_script() {
    let forward = |memory: &Value| memory["tensors"]["peak"]["forward"].as_u64().expect("a number");
    let (two, four) = (tiled_loss("2"), tiled_loss("4"));
    assert_eq!(forward(&two) - forward(&four), 4096 * 128_256 * (4 + 4 + 4));
    let stated = |memory: &Value, name: &str| {
        let values = memory["provenance"]["values"].as_array().expect("a list").clone();
        values.into_iter().find(|it| it["name"] == name).expect("it is stated")
    };
    assert_eq!(stated(&four, "fused_loss")["value"], "tiled-fused");
    assert_eq!(stated(&four, "loss_shards")["value"], 4);
    let computed = tiled_loss("shards_of(hidden)");
    assert_eq!(stated(&computed, "loss_shards")["origin"]["kind"], "assumed");
}

/// What `plan` says of a job on eight GPUs that all share a sequence: four sequences are a step, and not 32
/// (`Trainer.get_total_train_batch_size`, and `train_batch_size` of DeepSpeed's loop).
#[test]
fn a_job_that_divides_sequences_already_keeps_its_batch_and_its_script() {
    let trainer = "from accelerate import ParallelismConfig\n\
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\
        model = AutoModelForCausalLM.from_pretrained('meta-llama/Llama-3.1-8B')\n\
        args = TrainingArguments(output_dir='o', deepspeed='ds.json', bf16=True, per_device_train_batch_size=1,\n    \
            gradient_accumulation_steps=4, gradient_checkpointing=True,\n    \
            parallelism_config=ParallelismConfig(sp_size=8, sp_backend='deepspeed'))\n\
        Trainer(model=model, args=args).train()\n";
    let auto = r#"{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"},
        "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}"#;
    let options = "torchrun --nproc_per_node 8 train.py --deepspeed ds.json --bf16 True --parallelism_config_sp_size 8 \\\n  \
        --model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 --gradient_accumulation_steps 4 \\\n  \
        --gradient_checkpointing True\n";
    let by_hand = "import deepspeed\n\
        from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF\n\
        from transformers import AutoModelForCausalLM\n\
        mpu = UlyssesSPAttentionHF.register_with_transformers(\n    \
            model_name_or_path='meta-llama/Llama-3.1-8B', core_attn_implementation='flash_attention_2',\n    \
            sequence_parallel_size=8, micro_batch_size=1, seq_length=131072)\n\
        model = AutoModelForCausalLM.from_pretrained('meta-llama/Llama-3.1-8B')\n\
        engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json', mpu=mpu)\n";
    let fixed = r#"{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true},
        "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4}"#;
    let run = "torchrun --nproc_per_node 8 train.py\n";
    for (launch, script, config) in
        [(run, trainer, auto), (options, "", auto), (run, by_hand, fixed)]
    {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in [("run.sh", launch), ("train.py", script), ("ds.json", config)] {
            std::fs::write(directory.path().join(name), text).expect("a file");
        }
        let job = directory.path().join("run.sh").display().to_string();
        let question = ["plan", &job, "--gpus", "8xH100", "--seq-len", "131072", "--fused-loss"];
        let plan = answer(&[&question[..], &["--json"]].concat());
        assert_eq!(plan["recommended"]["strategy"]["sequence_parallel"], 8, "{launch}{script}");
        let stated = plan["provenance"]["values"].as_array().expect("a list").iter();
        let batch = stated.clone().find(|it| it["name"] == "global_batch").expect("a batch");
        assert_eq!(batch["value"], 4, "{launch}{script}");
        let text = zeropilot(&question);
        assert!(!text.contains("Your script must divide"), "{text}");
    }
}

/// DeepSpeed's losses in shards reduce a shared weight twice (run on real ranks: an AssertionError in stages 2 and 3).
#[test]
fn a_loss_in_shards_of_a_shared_weight_is_refused() {
    let question = ["memory", "--model", "llama-3.2-1b", "--gpus", "8xH100"];
    let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
        .args([&question[..], &["--fused-loss=tiled-fused"]].concat())
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("zeropilot runs");
    let error = String::from_utf8(output.stderr).expect("it is text");
    assert!(!output.status.success() && error.contains("shares its weight"), "{error}");
}

/// A model whose sequences need everything there is, on GPUs so small that a test can name them.
const MODEL: &str = r#"{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 128,
    "intermediate_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 512, "tie_word_embeddings": false, "max_position_embeddings": 1000000}"#;

/// The longest sequence fits, the next multiple of what lengths are counted in does not.
#[test]
fn the_longest_sequence_is_the_last_that_fits() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("config.json"), MODEL).expect("a file");
    let model = directory.path().display().to_string();
    let asked = ["plan", "--model", &model, "--gpus", "4x6GB", "--host-ram", "64GB", "--json"];
    let plan = answer(&[&asked[..], &["--max-seq-len"]].concat());
    let longest = &plan["longest"];
    let tokens = longest["seq_len"].as_u64().expect("a number");
    assert!(tokens > 0 && tokens.is_multiple_of(1024), "{longest}");
    let reached = longest["by_changes"].as_array().expect("a list");
    let lengths: Vec<u64> = reached.iter().filter_map(|one| one["seq_len"].as_u64()).collect();
    assert!(lengths.len() > 2 && lengths.is_sorted(), "{longest}");
    assert_eq!(lengths.last(), Some(&tokens));
    assert!(longest["expected"].as_u64() >= Some(tokens), "{longest}");
    let chosen = &plan["recommended"]["strategy"];
    for key in ["sequence_parallel", "activation_offload", "tiled_mlp"] {
        assert_eq!(chosen[key], reached[reached.len() - 1][key], "{key}");
    }
    let fits = |tokens: u64| {
        let tokens = tokens.to_string();
        let question = [&asked[..], &["--seq-len", &tokens]].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_zeropilot")).args(question).output();
        output.expect("zeropilot runs").status.code() == Some(0)
    };
    assert!(fits(tokens));
    if reached[reached.len() - 1]["limit"] == "memory" {
        assert!(!fits(tokens + 1024));
    }
}

/// What stands before the printed code, where it says that the model is built: a model whose own loss takes shifted labels,
/// as Liger's does, the norm of its gradients on one rank, and one sequence.
const BEFORE: &str = r#"import deepspeed
import torch
import torch.distributed.nn.functional
from transformers import LlamaConfig, LlamaForCausalLM

deepspeed.init_distributed(dist_backend="gloo")
torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
    vocab_size=64, attn_implementation="sdpa",
)
MODEL = f"model-{torch.distributed.get_rank()}"
config.save_pretrained(MODEL)

class Causal(LlamaForCausalLM):
    def forward(self, shift_labels=None, **inputs):
        out = super().forward(**inputs)
        out.loss = torch.nn.functional.cross_entropy(out.logits.float().view(-1, 64), shift_labels.view(-1))
        return out

ids = torch.randint(0, 64, (1, 64), generator=torch.Generator().manual_seed(1))
positions = torch.arange(64)[None]
shifted = torch.nn.functional.pad(ids, (0, 1), value=-100)[:, 1:]
alone = Causal(config)
alone(input_ids=ids, position_ids=positions, shift_labels=shifted).loss.backward()
norm = torch.stack([parameter.grad.norm() for parameter in alone.parameters()]).norm().item()
loader = [{"input_ids": ids, "position_ids": positions, "labels": ids}]
"#;

const BUILD: &str = r#"torch.manual_seed(0)
model = Causal(config)
model.load_state_dict(alone.state_dict())
model.train()
"#;

/// The code that a plan prints, made to run on CPUs: no flash attention there, and sequences of 64 tokens.
fn program(plan: &str) -> String {
    let code = plan.split("Your script must divide each sequence").nth(1).expect("code");
    let code = code.split("\nStart the training with").next().expect("a block").lines().skip(1);
    let lines = code.map(|line| line.strip_prefix("  ").unwrap_or(line));
    let mut program = BEFORE.to_owned();
    for line in lines {
        if line.starts_with('…') {
            program.push_str(BUILD);
            continue;
        }
        let line =
            line.replace("flash_attention_2", "sdpa").replace("seq_length=131072", "seq_length=64");
        program.push_str(&line.replace("micro_batch_size=2", "micro_batch_size=1"));
        program.push('\n');
    }
    // The adapter hands out the batch of every rank of the group in turn; the first step is compared.
    let program = program.replace("    engine.step()\n", "    engine.step()\n    break\n");
    program
        + "print(f'the norm is {float(engine.get_global_grad_norm()) / norm:.2f} times that of one rank')\n"
}

fn launched(home: &Path, directory: &Path) -> String {
    let torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"];
    let output = python(home)
        .current_dir(directory)
        .args(torchrun)
        .arg("train.py")
        .env("DS_ACCELERATOR", "cpu")
        .env("OMP_NUM_THREADS", "1")
        .output()
        .expect("Python runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// All three changes at once on two real ranks, with the config of the plan's stage: gradients are those of one rank.
#[test]
fn the_code_that_makes_room_for_long_sequences_trains_as_one_rank_does() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let model = directory.path().join("config.json");
    std::fs::write(&model, MODEL).expect("it is written");
    let model = model.to_str().expect("text");
    let config = directory.path().join("ds_config.json");
    let question = ["plan", "--model", model, "--gpus", "2x4GB", "--seq-len", "131072"];
    let plan = zeropilot(&[&question[..], &["-o", config.to_str().expect("text")]].concat());
    for change in
        ["each sequence divided among 2 GPUs", "activation checkpoints in host memory", "tiled MLP"]
    {
        assert!(plan.lines().next().is_some_and(|line| line.contains(change)), "{change}: {plan}");
    }
    let Some(home) = zeropilot_oracle::home() else { return };
    let text = std::fs::read_to_string(&config).expect("the config");
    let mut written: Value = serde_json::from_str(&text).expect("it is JSON");
    // A single sequence of the test, in the precision in which the comparison is made, with an optimizer to step.
    written["train_micro_batch_size_per_gpu"] = json!(1);
    written["bf16"] = json!({"enabled": false});
    written["optimizer"] = json!({"type": "AdamW", "params": {"torch_adam": true}});
    std::fs::write(&config, written.to_string()).expect("it is written");
    std::fs::write(directory.path().join("train.py"), program(&plan)).expect("it is written");
    let told = launched(&home, directory.path());
    assert!(told.contains("the norm is 1.00 times that of one rank"), "{told}");
}
