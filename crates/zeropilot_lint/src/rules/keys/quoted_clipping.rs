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
    summary: Text::new("a quoted `gradient_clipping`", "`gradient_clipping` 加了引号"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(r#"{"train_batch_size": 8, "gradient_clipping": "1.0"}"#)],
    good: &[Example::new(r#"{"train_batch_size": 8, "gradient_clipping": 1.0}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`gradient_clipping` is the text {value}, and the first step compares it with a number",
        "`gradient_clipping` 写成了字符串 {value}，第一步就要拿它和数字比较",
    ),
    why: Text::new(
        "top-level keys are not converted. Loading the config says nothing; the first step fails with a `TypeError`.",
        "顶层的键不做类型转换。加载配置时没有提示，第一步就会报 `TypeError`。",
    ),
    help: Text::new("write the number without quotes", "去掉引号，写成数字"),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    // The HF Trainer compares it with its own argument first and refuses it as a mismatch.
    let is_compared = subject.front_end == FrontEnd::HfTrainer
        && subject.arguments.trainer.max_grad_norm.is_some();
    let Some(node) = subject.root.get("gradient_clipping").filter(|_| !is_compared) else { return };
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
