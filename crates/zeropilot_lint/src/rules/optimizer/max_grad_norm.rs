use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::insert_members;
use crate::edit::remove_member;
use crate::reading::at_member;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O08",
    name: "max-grad-norm-in-optimizer",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new(
        "`max_grad_norm` among the optimizer's parameters",
        "`max_grad_norm` 写在了优化器参数里",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#756", "deepspeedai/DeepSpeed#656"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "max_grad_norm": 1.0}}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "gradient_clipping": 1.0, "optimizer": {"type": "Adam", "params": {"lr": 1e-4}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`max_grad_norm` is not an optimizer parameter; use `gradient_clipping`",
        "`max_grad_norm` 不是优化器参数，梯度裁剪用 `gradient_clipping`",
    ),
    why: Text::new(
        "DeepSpeed checks for this parameter when it creates the optimizer and raises an error.",
        "创建优化器时，DeepSpeed 会检查这个参数并报错。",
    ),
    help: Text::new(
        "remove the parameter here and add `\"gradient_clipping\": {value}` at the top level",
        "从这里删掉这个参数，在顶层写 `\"gradient_clipping\": {value}`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["optimizer", "params", "max_grad_norm"];
    let Some((object, member)) = subject.member(&path) else { return };
    if subject.optimizer_type().is_none() {
        return;
    }
    let value = subject.text_of(member.value.span);
    let removal = remove_member(subject, object, member.key_span);
    let is_set = subject.root.get("gradient_clipping").is_some();
    let edits = match removal {
        Some(removal) if is_set => Some(vec![removal]),
        Some(removal) if number(&member.value).is_some() => {
            insert_members(subject, subject.root, &[("gradient_clipping", value)])
                .map(|insertion| vec![insertion, removal])
        }
        _ => None,
    };
    let title = if is_set {
        Text::new(
            "remove `max_grad_norm`; `gradient_clipping` is already set",
            "删掉 `max_grad_norm`；`gradient_clipping` 已经设置",
        )
    } else {
        Text::new("move the value to `gradient_clipping`", "移到顶层的 `gradient_clipping`")
    };
    found.push(
        at_member(&RULE, &WORDING, &path, member)
            .with("value", value)
            .fix(edits.map(|edits| Fix::guess(title, edits))),
    );
}
