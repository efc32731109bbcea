use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

use super::optimizer_reads_rate;

pub(crate) static RULE: Rule = Rule {
    code: "O26",
    name: "quoted-optimizer-parameter",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new(
        "a quoted number in optimizer or scheduler parameters",
        "优化器或调度器参数里的数字加了引号",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": "1e-4", "torch_adam": true}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "0.001", "warmup_num_steps": 10, "warmup_type": "linear"}}}"#,
        ),
    ],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": true}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` is the string {value}, not a number",
        "`{path}` 写成了字符串 {value}，不是数字",
    ),
    why: Text::new(
        "DeepSpeed passes optimizer and scheduler parameters unchanged, and comparing a string with a number fails.",
        "DeepSpeed 把优化器和调度器的参数原样传入，字符串与数字一比较就报错。",
    ),
    help: Text::new("write {number} without quotes", "去掉引号，写成 {number}"),
};

const NUMBERS: [&str; 7] = [
    "lr",
    "eps",
    "weight_decay",
    "warmup_min_lr",
    "warmup_max_lr",
    "warmup_num_steps",
    "total_num_steps",
];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for section in ["optimizer", "scheduler"] {
        if subject.text_at([section, "type"]).is_none() {
            continue;
        }
        for member in subject.members_at([section, "params"]) {
            let Value::Str(text) = &member.value.value else { continue };
            let is_number = text.trim().parse::<f64>().is_ok_and(f64::is_finite);
            // The HF Trainer compares these with its arguments first, and refuses them as a mismatch.
            if !is_number
                || !NUMBERS.contains(&member.key.as_str())
                || subject.front_end == FrontEnd::HfTrainer
                || (member.key.as_str() == "lr" && !optimizer_reads_rate(subject))
            {
                continue;
            }
            let title = Text::new("write {number}", "写成 {number}");
            let fix = Fix::safe(title, vec![Edit::new(member.value.span, text.trim())]);
            found.push(
                at_value(&RULE, &WORDING, &[section, "params", &member.key], &member.value)
                    .with("value", subject.text_of(member.value.span))
                    .with("number", text.trim())
                    .fix(Some(fix)),
            );
        }
    }
}
