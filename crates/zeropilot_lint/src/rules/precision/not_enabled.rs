use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::insert_members;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P02",
    name: "precision-not-enabled",
    group: Group::Precision,
    severity: Severity::Warning,
    summary: Text::new(
        "an `fp16` or `bf16` section that is not enabled",
        "`fp16` 或 `bf16` 配置段没有启用",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "fp16": {"loss_scale": 0, "initial_scale_power": 16}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"immediate_grad_update": true}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "fp16": {"enabled": false, "loss_scale": 0}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` is not enabled: without `enabled`, the section has no effect",
        "`{path}` 没有启用：不写 `enabled`，整个配置段都不生效",
    ),
    why: Text::new(
        "The default of `enabled` is false, so parameters keep their type, usually fp32, and use twice the GPU memory.",
        "`enabled` 默认是 false，参数保持原来的类型（通常是 fp32），占用的显存翻倍。",
    ),
    help: Text::new(
        "add `\"enabled\": true` to `{path}`, or remove the section",
        "在 `{path}` 里加上 `\"enabled\": true`，或删掉这个配置段",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for section in ["fp16", "bf16", "bfloat16"] {
        let Some((_, member)) = subject.member(&[section]) else { continue };
        let is_open = matches!(&member.value.value, Value::Object(members) if !members.is_empty());
        if !is_open || member.value.get("enabled").is_some() {
            continue;
        }
        let other = if section == "fp16" { subject.bf16() } else { subject.enabled("fp16") };
        if other != Some(false) {
            continue;
        }
        let title = Text::new("add `\"enabled\": true`", "加上 `\"enabled\": true`");
        let fix = insert_members(subject, &member.value, &[("enabled", "true")])
            .map(|edit| Fix::guess(title, vec![edit]));
        found.push(at_member(&RULE, &WORDING, &[section], member).fix(fix));
    }
}
