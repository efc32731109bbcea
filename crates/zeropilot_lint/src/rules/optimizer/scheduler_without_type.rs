use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O21",
    name: "scheduler-without-type",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new("a `scheduler` section without a `type`", "`scheduler` 配置段没有写 `type`"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "scheduler": {"params": {"warmup_num_steps": 10}}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_type": "linear"}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`scheduler` has no `type`: DeepSpeed creates no scheduler, and the learning rate never changes",
        "`scheduler` 里没有 `type`：DeepSpeed 不会创建调度器，学习率一直不变",
    ),
    why: Text::new(
        "DeepSpeed creates a scheduler only if `scheduler` has a `type`. Otherwise, it silently ignores the parameters of `scheduler`.",
        "`scheduler` 里写了 `type`，DeepSpeed 才会创建调度器；否则 `scheduler` 的参数全都不生效，也没有提示。",
    ),
    help: Text::new(
        "add a `type`, such as `WarmupDecayLR`, or remove `scheduler`",
        "补上 `type`（例如 `WarmupDecayLR`），或删掉 `scheduler` 配置段",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((_, member)) = subject.member(&["scheduler"]) else { return };
    let Value::Object(members) = &member.value.value else { return };
    let has_type = member.value.get("type").is_some_and(|node| node.value != Value::Null);
    if !has_type && !members.is_empty() {
        found.push(at_member(&RULE, &WORDING, &["scheduler"], member));
    }
}
