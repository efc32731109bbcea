use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K25",
    name: "quoted-clipping",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new(
        "a `gradient_clipping` that is not a number",
        "`gradient_clipping` 不是数字",
    ),
    wordings: &[&WORDING, &NULL],
    sources: &[],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "gradient_clipping": "1.0"}"#),
        Example::new(
            r#"{"train_batch_size": 8, "gradient_clipping": null, "zero_optimization": {"stage": 2}}"#,
        ),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8, "gradient_clipping": 1.0}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`gradient_clipping` is the string {value}, and the first step compares it with a number",
        "`gradient_clipping` 写成了字符串 {value}，第一步会把它与数字比较",
    ),
    why: Text::new(
        "DeepSpeed does not convert top-level keys. The config loads without an error; the first step fails with a `TypeError`.",
        "DeepSpeed 不转换顶层的键。加载配置时不报错，第一步才报 `TypeError`。",
    ),
    help: Text::new(
        "write `gradient_clipping` as a number, without quotes",
        "把 `gradient_clipping` 写成数字，不加引号",
    ),
};

static NULL: Wording = Wording {
    message: Text::new(
        "`gradient_clipping` is null, which DeepSpeed compares with a number",
        "`gradient_clipping` 是 null，DeepSpeed 会把它与数字比较",
    ),
    why: Text::new(
        "null does not mean the default. The run exits with `TypeError: '>' not supported between instances of 'NoneType' and 'float'`.",
        "null 并不表示默认值。训练会报错退出：`TypeError: '>' not supported between instances of 'NoneType' and 'float'`。",
    ),
    help: Text::new(
        "set `gradient_clipping` to 0 to turn clipping off, or remove the key",
        "不裁剪就把 `gradient_clipping` 设为 0，或删掉这个键",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    // The HF Trainer compares it with its own argument first and refuses it as a mismatch.
    let is_compared = subject.front_end == FrontEnd::HfTrainer
        && subject.arguments.trainer.max_grad_norm.is_some();
    let Some(node) = subject.root.get("gradient_clipping").filter(|_| !is_compared) else { return };
    if node.value == Value::Null && matches!(subject.stage(), Some(1..=3)) {
        found.push(at_value(&RULE, &NULL, &["gradient_clipping"], node));
    }
    let Value::Str(text) = &node.value else { return };
    if text != "auto" {
        let title = Text::new("write {number}", "写成 {number}");
        let fix = text
            .parse::<f64>()
            .ok()
            .filter(|clipping| clipping.is_finite())
            .map(|_| Fix::safe(title, vec![Edit::new(node.span, text.trim())]));
        found.push(
            at_value(&RULE, &WORDING, &["gradient_clipping"], node)
                .with("value", subject.text_of(node.span))
                .with("number", text.trim())
                .fix(fix),
        );
    }
}
