use zeropilot_config::syntax::Value;

use super::scheduler_parameters::parameters;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::insert_members;
use crate::reading::at_member;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O11",
    name: "logarithmic-warmup",
    group: Group::Optimizer,
    severity: Severity::Note,
    summary: Text::new("the warmup is logarithmic by default", "warmup 默认是对数曲线"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#1298"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1000}}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1000, "warmup_type": "linear"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1}}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{name}` warms up logarithmically unless `warmup_type` is `linear`",
        "`warmup_type` 不是 `linear` 时，`{name}` 的 warmup 按对数曲线上升",
    ),
    why: Text::new(
        "A logarithmic warmup of N steps reaches half of the peak after √N steps: 32 of 1000.",
        "N 步的对数 warmup 在第 √N 步就达到峰值的一半：1000 步里只要 32 步。",
    ),
    help: Text::new(
        "add `\"warmup_type\": \"linear\"` for a linear warmup, or `\"log\"` if you want a logarithmic one",
        "想要线性就加上 `\"warmup_type\": \"linear\"`；确实要对数就写明 `\"log\"`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, _)) = parameters(subject).filter(|(name, _)| name.starts_with("Warmup")) else {
        return;
    };
    let Some((_, section)) = subject.member(&["scheduler", "params"]) else { return };
    let steps = section.value.get("warmup_num_steps");
    let is_short = steps.and_then(number).is_some_and(|steps| steps <= 2.0);
    if section.value.get("warmup_type").is_some()
        || is_short
        || !matches!(section.value.value, Value::Object(_))
    {
        return;
    }
    let title =
        Text::new("add `\"warmup_type\": \"linear\"`", "加上 `\"warmup_type\": \"linear\"`");
    let fix = insert_members(subject, &section.value, &[("warmup_type", "\"linear\"")])
        .map(|edit| Fix::guess(title, vec![edit]));
    found.push(
        at_member(&RULE, &WORDING, &["scheduler", "params"], section).with("name", name).fix(fix),
    );
}
