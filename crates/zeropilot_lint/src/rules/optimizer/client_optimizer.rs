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
    summary: Text::new("the optimizer of the config is not used", "配置里的优化器没有用上"),
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
        "the `optimizer` section is not used: the script hands `{class}` to `deepspeed.initialize`",
        "`optimizer` 段没有用上：脚本把 `{class}` 传给了 `deepspeed.initialize`",
    ),
    why: Text::new(
        "an optimizer object in the code wins over the config, and the engine does not say so.",
        "代码里传入的优化器对象优先于配置，引擎不会提示。",
    ),
    help: Text::new(
        "remove the section, or do not pass an `{argument}` in the code",
        "删掉这一段，或在代码里不要传 `{argument}`",
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
