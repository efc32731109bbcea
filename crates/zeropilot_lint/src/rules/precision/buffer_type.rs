use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P21",
    name: "unknown-buffer-dtype",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new("an unknown `buffer_dtype`", "未知的 `buffer_dtype`"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "data_types": {"buffer_dtype": "fp33"}, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "data_types": {"buffer_dtype": "fp32"}, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`buffer_dtype` is {value}, which is not a data type",
        "`buffer_dtype` 写的 {value} 不是数据类型",
    ),
    why: Text::new(
        "DeepSpeed does not check `buffer_dtype` when it loads the config. `deepspeed.initialize` then exits with a `ValueError`.",
        "DeepSpeed 加载配置时不检查 `buffer_dtype`，之后 `deepspeed.initialize` 会以 `ValueError` 退出。",
    ),
    help: Text::new(
        "set `buffer_dtype` to `fp32`, `bf16` or `fp16`, or remove the key",
        "把 `buffer_dtype` 设为 `fp32`、`bf16` 或 `fp16`，或删掉这个键",
    ),
};

/// Names that DeepSpeed has for number formats.
const FORMATS: [&str; 13] = [
    "fp32",
    "float32",
    "float",
    "torch.float32",
    "fp16",
    "float16",
    "half",
    "torch.float16",
    "bf16",
    "bfloat16",
    "torch.bfloat16",
    "int8",
    "torch.int8",
];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["data_types", "buffer_dtype"];
    let Some(node) = subject.node(path).filter(|_| subject.reads(path[0], path[1])) else { return };
    if let Value::Str(name) = &node.value
        && !FORMATS.contains(&name.as_str())
        && name != "auto"
    {
        let told = at_value(&RULE, &WORDING, &path, node);
        found.push(told.with("value", subject.text_of(node.span)));
    }
}
