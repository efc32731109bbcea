use zeropilot_config::front_end::FrontEnd;

use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O27",
    name: "optimizer-in-code-wins",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new(
        "DeepSpeed does not use the optimizer in the config",
        "DeepSpeed 没有使用配置里的优化器",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#5726", "deepspeedai/DeepSpeed#2361"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#,
    )
    .script(torch_adam)],
    good: &[
        Example::new(r#"{"train_batch_size": 8}"#).script(torch_adam),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the `optimizer` section has no effect: the script passes `{class}` to `deepspeed.initialize`",
        "`optimizer` 配置段不生效：脚本把 `{class}` 传给了 `deepspeed.initialize`",
    ),
    why: Text::new(
        "An optimizer object in the code takes precedence over the config, and DeepSpeed does not log this.",
        "代码里传入的优化器对象优先于配置，DeepSpeed 不会提示。",
    ),
    help: Text::new(
        "remove the `optimizer` section, or do not pass `{argument}` in the code",
        "删掉 `optimizer` 配置段，或在代码里不要传 `{argument}`",
    ),
};

pub(super) fn torch_adam() -> Script {
    Script { client_optimizer: Some("torch.optim.AdamW".to_owned()), ..Script::default() }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(class) = &subject.script.client_optimizer else { return };
    if let Some((_, member)) = subject.member(&["optimizer"])
        && subject.optimizer_type().is_some()
        && subject.front_end == FrontEnd::DeepSpeed
    {
        found.push(
            at_member(&RULE, &WORDING, &["optimizer"], member)
                .with("class", class.as_str())
                .with("argument", "optimizer"),
        );
    }
}
