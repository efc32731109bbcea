use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launch, Said};
use zeropilot_text::Text;

use super::{STAGE_2, checkpoint, is_on, quantized_models};

pub(crate) static RULE: Rule = Rule {
    code: "P19",
    name: "experts-not-quantized",
    group: Group::Precision,
    severity: Severity::Warning,
    summary: Text::new(
        "4-bit loading of an MoE model whose experts stay in 16 bits",
        "以 4 位加载 MoE 模型，专家仍是 16 位",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/transformers src/transformers/integrations/bitsandbytes.py"],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nbnb = BitsAndBytesConfig(load_in_4bit=True)\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-30B-A3B', quantization_config=bnb)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py --deepspeed ds.json --per_device_train_batch_size 1 --model_name_or_path mistralai/Mixtral-8x7B-v0.1 --load_in_4bit").files(&[
            ("t.py", "parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))\nscript, args, model = parser.parse_args_and_config()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nbnb = BitsAndBytesConfig(load_in_4bit=True)\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-32B', quantization_config=bnb)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-30B-A3B')\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the experts of `{model}` stay in 16 bits, so 4-bit loading saves little GPU memory",
        "`{model}` 的专家仍是 16 位，以 4 位加载省不了多少显存",
    ),
    why: Text::new(
        "In transformers 5, all experts in a layer are one 3-D parameter. bitsandbytes quantizes linear layers only, and the experts hold most of the weights.",
        "在 transformers 5 里，一层的所有专家合成一个三维参数；bitsandbytes 只量化线性层，而大部分权重都在专家里。",
    ),
    help: Text::new(
        "use LoRA without quantization in ZeRO stage 3, or use a dense model. With transformers 4, the experts of most text models are still quantized",
        "在 ZeRO stage 3 下用不量化的 LoRA，或换用稠密模型；transformers 4 仍会量化多数文本模型的专家",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        for model in quantized_models(training.script).filter(|it| is_on(it.config, "load_in_4bit"))
        {
            let Some(name) = checkpoint(&training, model.load).filter(|it| is_mixture(it)) else {
                continue;
            };
            let span = model.load.span;
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", span).with("model", name);
            found.at(&training.place(span), diagnostic);
        }
    }
    for (launch, _) in job.launches() {
        if let Some(said) = named_in_arguments(launch).filter(|said| is_mixture(&said.value)) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", said.place.span)
                .with("model", said.value.as_str());
            found.at(&said.place, diagnostic);
        }
    }
}

/// The model that arguments name, where they ask for 4 bits too; a script that writes out what it loads is looked at by
/// itself.
fn named_in_arguments(launch: &Launch) -> Option<&Said> {
    let is_written = launch.script.as_ref().is_some_and(|it| quantized_models(it).next().is_some());
    let is_asked = launch.given.switch("load_in_4bit") == Some(true);
    launch.given.said("model_name_or_path").filter(|_| is_asked && !is_written)
}

/// Whether a checkpoint has a class of transformers that stacks its experts, and comes in 16 bits.
fn is_mixture(name: &str) -> bool {
    let name = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name).to_lowercase();
    let is_quantized =
        ["bnb", "4bit", "gptq", "awq", "fp8", "int4", "int8"].iter().any(|it| name.contains(it));
    let is_known = ["mixtral-8x", "olmoe-", "glm-4.5"].iter().any(|it| name.starts_with(it));
    let is_qwen = name.starts_with("qwen") && name.split('-').any(names_experts);
    !is_quantized && (is_known || is_qwen)
}

/// `MoE`, or what is active, such as `A3B`.
fn names_experts(part: &str) -> bool {
    let active = part.strip_prefix('a').and_then(|part| part.strip_suffix('b'));
    part == "moe" || active.is_some_and(|active| active.parse::<f64>().is_ok())
}
