use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::report::Report;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

use super::{STAGE_2, quantized_models};

pub(crate) static RULE: Rule = Rule {
    code: "P18",
    name: "quantized-model-in-32-bits",
    group: Group::Precision,
    severity: Severity::Warning,
    summary: Text::new(
        "the unquantized weights of a quantized model stay in 32 bits",
        "量化模型中未量化的权重仍是 32 位",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/peft src/peft/utils/other.py"],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1, bf16=False, fp16=False)\nbnb = BitsAndBytesConfig(load_in_4bit=True)\nmodel = AutoModelForCausalLM.from_pretrained('m', quantization_config=bnb)\nmodel = prepare_model_for_kbit_training(model)\nTrainer(model, args).train()\n"),
            ("ds.json", WITHOUT_SECTION),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "bnb = BitsAndBytesConfig(load_in_4bit=True)\nmodel = AutoModelForCausalLM.from_pretrained('m', quantization_config=bnb)\nmodel = prepare_model_for_kbit_training(model)\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", BARE),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nbnb = BitsAndBytesConfig(load_in_4bit=True)\nmodel = AutoModelForCausalLM.from_pretrained('m', quantization_config=bnb)\nmodel = prepare_model_for_kbit_training(model)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        // accelerate adds the section.
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1, bf16=True)\nbnb = BitsAndBytesConfig(load_in_4bit=True)\nmodel = AutoModelForCausalLM.from_pretrained('m', quantization_config=bnb)\nmodel = prepare_model_for_kbit_training(model)\nTrainer(model, args).train()\n"),
            ("ds.json", WITHOUT_SECTION),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "parser = HfArgumentParser((TrainingArguments,))\nargs, = parser.parse_args_into_dataclasses()\nbnb = BitsAndBytesConfig(load_in_4bit=True)\nmodel = AutoModelForCausalLM.from_pretrained('m', quantization_config=bnb)\nmodel = prepare_model_for_kbit_training(model)\nTrainer(model, args).train()\n"),
            ("ds.json", WITHOUT_SECTION),
        ]),
    ],
    is_no_op: false,
};

const WITHOUT_SECTION: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2}}"#;

const BARE: &str = r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "all unquantized weights stay in 32 bits: the config enables neither `bf16` nor `fp16`",
        "未量化的权重仍是 32 位：配置没有启用 `bf16` 或 `fp16`",
    ),
    why: Text::new(
        "`prepare_model_for_kbit_training` casts embeddings, output layer, norms and unquantized experts to 32 bits. DeepSpeed casts them back to 16 bits only with a `bf16` or `fp16` section.",
        "`prepare_model_for_kbit_training` 会把词嵌入、输出层、norm 和未量化的专家转成 32 位；只有启用了 `bf16` 或 `fp16` 配置段，DeepSpeed 才会把它们转回 16 位。",
    ),
    help: Text::new(
        "add `\"bf16\": {{\"enabled\": true}}` to the config",
        "在配置里加上 `\"bf16\": {{\"enabled\": true}}`",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(is_in_32_bits) {
        if quantized_models(training.script).next().is_none() {
            continue;
        }
        let prepares = training.script.calls.iter().filter(|call| {
            call.name() == "prepare_model_for_kbit_training" && call.questions.is_empty()
        });
        for call in prepares {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span);
            found.at(&training.place(call.span), diagnostic);
        }
    }
}

/// Whether DeepSpeed casts nothing, below stage 3: there, weights are not whole when they are cast.
fn is_in_32_bits(training: &Training<'_>) -> bool {
    let Some(resolved) = training.config.and_then(Report::values) else {
        return false;
    };
    let table = resolved.keys.table();
    let is_off = |key| table.get(key).is_some_and(|value| !value.is_true());
    resolved.known_stage().is_some_and(|stage| stage < 3)
        && is_off("bf16.enabled")
        && is_off("fp16.enabled")
}
