use zeropilot_config::syntax::{Value, parse_json};

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launch, Said};
use zeropilot_text::Text;

use super::{STAGE_2, STAGE_3, llamafactory, stage};

pub(crate) static RULE: Rule = Rule {
    code: "Z04",
    name: "quantized-model",
    group: Group::Construction,
    severity: Severity::Error,
    summary: Text::new(
        "LLaMA-Factory rejects a quantized model with ZeRO stage 3",
        "LLaMA-Factory 在 ZeRO stage 3 下不支持这种量化模型",
    ),
    wordings: &[&METHOD, &BITS, &STORED],
    sources: &["hiyouga/LlamaFactory#2920", "TIGER-AI-Lab/TIGERScore#2"],
    examples: &[
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nfinetuning_type: lora\nbf16: true\ndeepspeed: ds.json\nquantization_bit: 4\nquantization_method: hqq\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nfinetuning_type: lora\nbf16: true\ndeepspeed: ds.json\nquantization_bit: 8\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nfinetuning_type: lora\nbf16: true\ndeepspeed: ds.json\nmodel_name_or_path: models/gptq\n"),
            ("ds.json", STAGE_3),
            ("models/gptq/config.json", r#"{"model_type": "llama", "quantization_config": {"quant_method": "gptq", "bits": 4}}"#),
        ]),
    ],
    good: &[
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nfinetuning_type: lora\nbf16: true\ndeepspeed: ds.json\nquantization_bit: 4\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nfinetuning_type: lora\nbf16: true\ndeepspeed: ds.json\nquantization_bit: 8\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static METHOD: Wording = Wording {
    message: Text::new(
        "LLaMA-Factory rejects `quantization_method: {method}` with ZeRO stage 3",
        "LLaMA-Factory 在 ZeRO stage 3 下不允许使用 `quantization_method: {method}`",
    ),
    why: Text::new(
        "`{method}` does not produce plain tensors, so DeepSpeed cannot partition the weights. The run exits when it loads the model.",
        "`{method}` 量化后的权重不是普通张量，DeepSpeed 无法切分，加载模型时会报错退出。",
    ),
    help: Text::new(
        "use stage 2, or 4-bit quantization with bitsandbytes",
        "改用 stage 2，或用 bitsandbytes 的 4 位量化",
    ),
};

static BITS: Wording = Wording {
    message: Text::new(
        "LLaMA-Factory rejects bitsandbytes `quantization_bit: {bits}` with ZeRO stage 3",
        "LLaMA-Factory 在 ZeRO stage 3 下不允许使用 bitsandbytes 的 `quantization_bit: {bits}`",
    ),
    why: Text::new(
        "Only 4-bit weights can be stored in a type that DeepSpeed can partition. The run exits with `Only 4-bit quantized model can use fsdp+qlora or auto device map.`",
        "只有 4 位权重能用可切分的类型存储；训练会报错退出：`Only 4-bit quantized model can use fsdp+qlora or auto device map.`",
    ),
    help: Text::new(
        "set `quantization_bit: 4`, or use stage 2",
        "改为 `quantization_bit: 4`，或用 stage 2",
    ),
};

static STORED: Wording = Wording {
    message: Text::new(
        "the model is quantized with `{method}`, which LLaMA-Factory rejects with ZeRO stage 3",
        "模型是用 `{method}` 量化的，LLaMA-Factory 在 ZeRO stage 3 下不支持",
    ),
    why: Text::new(
        "LLaMA-Factory exits with `DeepSpeed ZeRO-3 or FSDP is incompatible with PTQ-quantized models.`",
        "LLaMA-Factory 会报错退出：`DeepSpeed ZeRO-3 or FSDP is incompatible with PTQ-quantized models.`",
    ),
    help: Text::new("use stage 2, or the unquantized model", "改用 stage 2，或用未量化的模型"),
};

/// How a model in a directory is quantized, if it is in a way that is always refused.
fn stored(job: &JobView<'_>, model: &Said) -> Option<String> {
    let text = (job.files)(&format!("{}/config.json", model.value.trim_end_matches('/')))?;
    let document = parse_json(&text).ok()?;
    match &document.root().get("quantization_config")?.get("quant_method")?.value {
        Value::Str(method) if matches!(method.as_str(), "gptq" | "awq" | "aqlm") => {
            Some(method.to_string())
        }
        _ => None,
    }
}

fn refusal<'a>(
    job: &JobView<'_>,
    launch: &'a Launch,
) -> Option<(&'static Wording, &'a Said, String)> {
    let given = &launch.given;
    if let Some(model) = given.said("model_name_or_path")
        && let Some(method) = stored(job, model)
    {
        return Some((&STORED, model, method));
    }
    let bits = given.said("quantization_bit").filter(|bits| bits.value.parse::<u8>().is_ok())?;
    match given.said("quantization_method") {
        Some(said) if matches!(said.value.as_str(), "hqq" | "eetq") => {
            Some((&METHOD, said, said.value.clone()))
        }
        Some(said) if !matches!(said.value.as_str(), "bnb" | "bitsandbytes") => None,
        _ => (bits.value != "4").then(|| (&BITS, bits, String::new())),
    }
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (launch, _) in llamafactory(job).filter(|(_, report)| stage(*report) == Some(3)) {
        if let Some((wording, said, method)) = refusal(job, launch) {
            let diagnostic = Diagnostic::new(&RULE, wording, "", said.place.span)
                .with("method", method)
                .with("bits", said.value.as_str());
            found.at(&said.place, diagnostic);
        }
    }
}
