use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use serde_json::Value;
use zeropilot_text::Text;

use super::frozen_models;

pub(crate) static RULE: Rule = Rule {
    code: "O31",
    name: "frozen-model-with-optimizer",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new(
        "TRL before 1.10 also creates an optimizer for a reference or teacher model",
        "1.10 之前的 TRL 也会给参考模型或教师模型创建优化器",
    ),
    wordings: &[&STATES, &ENDS],
    sources: &[
        "huggingface/trl#5916",
        "huggingface/trl trl/models/utils.py, prepare_deepspeed (1.9.0 and 1.10.0)",
    ],
    examples: &[
        Example::job("FORCE_TORCHRUN=1 NPROC_PER_NODE=2 llamafactory-cli train dpo.yaml").files(&[
            ("dpo.yaml", "model_name_or_path: m\nstage: dpo\nfinetuning_type: full\ndeepspeed: ds.json\n"),
            ("ds.json", WITH_OPTIMIZER),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nDPOTrainer(model='m', args=args).train()\n"),
            ("requirements.txt", "torch\ntrl==1.9.0\n"),
            ("ds.json", WITH_SCHEDULER),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nDPOTrainer(model='m', args=args).train()\n"),
            ("requirements.txt", "torch\ntrl==1.10.0\n"),
            ("ds.json", WITH_OPTIMIZER),
        ]),
        Example::job("FORCE_TORCHRUN=1 NPROC_PER_NODE=2 llamafactory-cli train dpo.yaml").files(&[
            ("dpo.yaml", "model_name_or_path: m\nstage: dpo\nfinetuning_type: lora\ndeepspeed: ds.json\n"),
            ("ds.json", WITH_OPTIMIZER),
        ]),
        Example::job("FORCE_TORCHRUN=1 NPROC_PER_NODE=2 llamafactory-cli train dpo.yaml").files(&[
            ("dpo.yaml", "model_name_or_path: m\nstage: dpo\nfinetuning_type: full\ndeepspeed: ds.json\n"),
            ("ds.json", crate::rules::launch::model_first::STAGE_3),
        ]),
    ],
    is_no_op: false,
};

const WITH_OPTIMIZER: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#;

const WITH_SCHEDULER: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto", "warmup_type": "linear"}}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#;

static STATES: Wording = Wording {
    message: Text::new(
        "TRL {version} also creates an optimizer for the reference or teacher model, which never uses it",
        "TRL {version} 也会给参考模型或教师模型创建优化器，但从不使用",
    ),
    why: Text::new(
        "TRL before 1.10 applies `optimizer` to frozen models: each GPU needs 14 bytes per parameter instead of 2 (stage 3: four times the shard size). Below stage 3 with `offload_optimizer`, the run exits with `CPUAdam param is on cuda:0 and must be 'cpu'`.",
        "1.10 之前的 TRL 会把 `optimizer` 配置段也用于冻结的模型：每张卡上每个参数占 14 字节而不是 2 字节，stage 3 下分片占四倍显存。stage 低于 3 且设了 `offload_optimizer` 时，训练会报错退出：`CPUAdam param is on cuda:0 and must be 'cpu'`。",
    ),
    help: Text::new(
        "remove `optimizer` and `scheduler` from the config, so that the Trainer creates both from its own arguments; or use TRL 1.10 or later",
        "从配置里删掉 `optimizer` 和 `scheduler`，Trainer 会按自己的参数创建；或者改用 TRL 1.10 及以上版本",
    ),
};

static ENDS: Wording = Wording {
    message: Text::new(
        "the run exits before training: the reference or teacher model gets `{key}` as the string `\"auto\"`",
        "训练开始前就会报错退出：参考模型或教师模型得到的 `{key}` 是字符串 `\"auto\"`",
    ),
    why: Text::new(
        "TRL {version} passes the config's `optimizer` and `scheduler` to a frozen model before the Trainer fills in `{path}`. DeepSpeed then creates the scheduler with the string `\"auto\"` and exits with a `ValueError` or `TypeError`.",
        "TRL {version} 会把配置里的 `optimizer` 和 `scheduler` 用于冻结的模型，此时 Trainer 还没有填写 `{path}`。DeepSpeed 用字符串 `\"auto\"` 创建调度器，以 `ValueError` 或 `TypeError` 退出。",
    ),
    help: Text::new(
        "remove `optimizer` and `scheduler` from the config, so that the Trainer creates both from its own arguments; or use TRL 1.10 or later",
        "从配置里删掉 `optimizer` 和 `scheduler`，Trainer 会按自己的参数创建；或者改用 TRL 1.10 及以上版本",
    ),
};

/// What the Trainer fills in only once it knows how many steps there are.
const BY_STEPS: [&str; 2] = ["warmup_num_steps", "total_num_steps"];

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for task in frozen_models::launches(job) {
        let trl = task.job.task.as_ref().and_then(|said| said.trl.as_ref());
        let Some(trl) = trl.filter(|trl| trl.value.leaves_optimizer_to_frozen()) else { continue };
        // LLaMA-Factory gives a quantized reference no engine.
        if task.stage.is_none() || task.said("ref_model_quantization_bit").is_some() {
            continue;
        }
        let Some(config) = task.config().filter(|config| has_type(config, "optimizer")) else {
            continue;
        };
        let (wording, path) = match unfilled(&config) {
            Some(key) => (&ENDS, format!("scheduler.params.{key}")),
            None => (&STATES, "optimizer".to_owned()),
        };
        let diagnostic = Diagnostic::new(&RULE, wording, path.as_str(), task.place.span)
            .with("version", trl.value.to_string());
        found.at(&task.place, diagnostic);
    }
}

fn has_type(config: &Value, section: &str) -> bool {
    config.get(section).is_some_and(|section| section.get("type").is_some_and(Value::is_string))
}

/// A number of steps that a scheduler of DeepSpeed leaves to the Trainer.
fn unfilled(config: &Value) -> Option<&'static str> {
    let scheduler = config.get("scheduler")?;
    let kind = scheduler.get("type")?.as_str()?;
    let is_auto = |key: &&str| scheduler["params"].get(key) == Some(&Value::from("auto"));
    let is_known = matches!(kind, "WarmupLR" | "WarmupDecayLR");
    BY_STEPS.into_iter().find(is_auto).filter(|_| is_known)
}
