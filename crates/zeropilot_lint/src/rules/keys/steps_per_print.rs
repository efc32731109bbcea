use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K24",
    name: "steps-per-print-unusable",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new(
        "a `steps_per_print` that DeepSpeed cannot divide by",
        "`steps_per_print` 不能用来做除数",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "steps_per_print": 0}"#),
        Example::new(r#"{"train_batch_size": 8, "steps_per_print": "100"}"#),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8, "steps_per_print": 100}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`steps_per_print` is {value}, and the first step divides by it",
        "`steps_per_print` 是 {value}，第一步就要除以它",
    ),
    why: Text::new(
        "After each step, DeepSpeed computes the step number modulo this value. The config loads without an error; the first step fails.",
        "每步结束时，DeepSpeed 用步数对这个值取余。加载配置时不报错，第一步才报错。",
    ),
    help: Text::new(
        "set `steps_per_print` to a positive integer; use a large one to print nothing",
        "把 `steps_per_print` 设为正整数；不想打印就写一个很大的数",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    // accelerate, and with it the HF Trainer, writes its own number here.
    if subject.front_end != FrontEnd::DeepSpeed {
        return;
    }
    let Some(node) = subject.root.get("steps_per_print") else { return };
    let is_unusable = match &node.value {
        Value::Str(text) => text.trim().parse::<f64>().is_ok_and(f64::is_finite),
        _ => number(node) == Some(0.0),
    };
    if is_unusable {
        found.push(
            at_value(&RULE, &WORDING, &["steps_per_print"], node)
                .with("value", subject.text_of(node.span)),
        );
    }
}
