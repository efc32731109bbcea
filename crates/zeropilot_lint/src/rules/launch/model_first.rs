use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Place;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "Z01",
    name: "model-before-arguments",
    group: Group::Construction,
    severity: Severity::Warning,
    summary: Text::new(
        "the script loads the model before it creates the training arguments",
        "脚本在创建训练参数之前就加载了模型",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed#5617",
        "deepspeedai/DeepSpeed#3125",
        "huggingface/transformers#24964",
    ],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "model = AutoModelForCausalLM.from_pretrained('m')\nargs = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m')\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "tokenizer = AutoTokenizer.from_pretrained('m')\nkeep = HfDeepSpeedConfig('ds.json')\nmodel = AutoModelForCausalLM.from_pretrained('m')\nargs = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

/// Configs for the HF Trainer.
pub(crate) const STAGE_2: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#;
pub(crate) const STAGE_3: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "the script loads the model before it creates the training arguments: every rank loads the full model",
        "脚本在创建训练参数之前加载模型，每个 rank 都会加载完整的模型",
    ),
    why: Text::new(
        "Under ZeRO stage 3, transformers loads a model in shards (`zero.Init`) only after `TrainingArguments(deepspeed=…)` has registered the config. Before that, each rank holds the full model in host memory.",
        "ZeRO stage 3 下，只有 `TrainingArguments(deepspeed=…)` 登记了配置之后，transformers 才会分片加载模型（`zero.Init`）；在此之前，每个 rank 都在主机内存里放一份完整的模型。",
    ),
    help: Text::new(
        "create the training arguments first, then load the model",
        "先创建训练参数，再加载模型",
    ),
};

/// Whether a call loads a model, rather than a tokenizer or a config.
pub(crate) fn loads_a_model(callee: &str) -> bool {
    callee.strip_suffix(".from_pretrained").is_some_and(|class| {
        let class = class.rsplit('.').next().unwrap_or(class);
        class.starts_with("AutoModel")
            || class.contains("For") && class.ends_with("LM")
            || class.ends_with("ForConditionalGeneration")
            || class.ends_with("ForSequenceClassification")
    })
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (script, name) in job.stage_3_scripts() {
        if script.calls.iter().any(|call| call.name() == "HfDeepSpeedConfig") {
            continue;
        }
        let Some(arguments) = script.training_arguments().min_by_key(|call| call.span.start) else {
            continue;
        };
        let early = script.calls.iter().find(|call| {
            loads_a_model(&call.callee)
                && call.scope == arguments.scope
                && call.span.end <= arguments.span.start
        });
        if let Some(call) = early {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span);
            found.at(&Place::in_file(name, call.span), diagnostic);
        }
    }
}
