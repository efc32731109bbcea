use zeropilot_config::front_end::FrontEnd;

use super::accumulation_type::kind;
use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P12",
    name: "parameter-type",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new(
        "`param_dtype` contradicts `fp16` and `bf16`",
        "`param_dtype` 与 `fp16`/`bf16` 矛盾",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "data_types": {"param_dtype": "bf16"}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, "data_types": {"param_dtype": "bf16"}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`param_dtype` is `{value}`, but the model trains in {model}",
        "`param_dtype` 写的是 `{value}`，但模型按 {model} 训练",
    ),
    why: Text::new(
        "`fp16.enabled` and `bf16.enabled` set the type of the parameters. DeepSpeed rejects a different `param_dtype`.",
        "参数的类型由 `fp16.enabled` 和 `bf16.enabled` 决定；`param_dtype` 与此不同时，DeepSpeed 会报错。",
    ),
    help: Text::new(
        "remove `param_dtype`, or enable the matching precision section",
        "删掉 `param_dtype`，或启用对应的精度配置段",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["data_types", "param_dtype"];
    let (Some(node), Some(value)) = (subject.node(path), subject.text_at(path)) else { return };
    let model = match (subject.enabled("fp16"), subject.bf16()) {
        (Some(true), _) => "fp16",
        (Some(false), Some(true)) => "bf16",
        (Some(false), Some(false)) if subject.front_end == FrontEnd::DeepSpeed => "fp32",
        _ => return,
    };
    // Engines that do not read the key have another rule for it.
    let is_read = subject.reads("data_types", "param_dtype");
    if is_read && kind(value).is_some_and(|wanted| wanted != model) {
        found
            .push(at_value(&RULE, &WORDING, &path, node).with("value", value).with("model", model));
    }
}
