use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O04",
    name: "optimizer-without-type",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new("an `optimizer` section without a `type`", "`optimizer` 配置段没有写 `type`"),
    wordings: &[&ALONE, &FILLED],
    sources: &["deepspeedai/DeepSpeed#2361"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"params": {"lr": 1e-4}}, "zero_optimization": {"stage": 2}}"#,
        ),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "optimizer": {"params": {"lr": 1e-4}}, "zero_optimization": {"stage": 2}, "gradient_accumulation_steps": 1}"#,
        )
        .read_by(FrontEnd::HfTrainer),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "zero_optimization": {"stage": 2}}"#,
        ),
    ],
    is_no_op: true,
};

static ALONE: Wording = Wording {
    message: Text::new(
        "`optimizer` has no `type`: DeepSpeed creates no optimizer from it",
        "`optimizer` 里没有 `type`：DeepSpeed 不会据此创建优化器",
    ),
    why: Text::new(
        "Without a `type`, `optimizer` has no effect. If the script passes no optimizer either, ZeRO stages 1 and 2 fail at startup, and the other stages fail in the first step.",
        "没有 `type`，`optimizer` 配置段就不生效。如果脚本也没有传优化器，stage 1/2 启动时报错，其余 stage 在第一步报错。",
    ),
    help: Text::new(
        "add `\"type\": \"AdamW\"`, or remove `optimizer` if the script passes its own optimizer",
        "加上 `\"type\": \"AdamW\"`；如果优化器由脚本传入，就删掉 `optimizer` 配置段",
    ),
};

static FILLED: Wording = Wording {
    message: Text::new(
        "`optimizer` has no `type`, so DeepSpeed creates no optimizer",
        "`optimizer` 里没有 `type`，DeepSpeed 不会创建优化器",
    ),
    why: Text::new(
        "With an `optimizer` section, the HF Trainer and accelerate leave the optimizer to DeepSpeed, which creates none without a `type`.",
        "只要有 `optimizer` 配置段，HF Trainer 和 accelerate 就把优化器交给 DeepSpeed；而没有 `type`，DeepSpeed 不会创建优化器。",
    ),
    help: Text::new(
        "add `\"type\": \"AdamW\"`, or remove `optimizer` so that the framework creates the optimizer",
        "加上 `\"type\": \"AdamW\"`；或删掉 `optimizer` 配置段，由训练框架创建优化器",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((_, member)) = subject.member(&["optimizer"]) else { return };
    let Value::Object(members) = &member.value.value else { return };
    let has_type = member.value.get("type").is_some_and(|node| node.value != Value::Null);
    if has_type || members.is_empty() {
        return;
    }
    let alone = subject.front_end == FrontEnd::DeepSpeed;
    let (wording, severity) =
        if alone { (&ALONE, Severity::Warning) } else { (&FILLED, Severity::Error) };
    found.push(at_member(&RULE, wording, &["optimizer"], member).severity(severity));
}
