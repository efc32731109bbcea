use zeropilot_config::constructors::Constructors;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::at_value;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O24",
    name: "lamb-needs-dynamic-scale",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new("`Lamb` with a fixed loss scale", "`Lamb` 搭配固定的 loss scale"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "optimizer": {"type": "Lamb", "params": {"lr": 1e-3}}, "fp16": {"enabled": true, "loss_scale": 128}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "optimizer": {"type": "Lamb", "params": {"lr": 1e-3}}, "fp16": {"enabled": true, "loss_scale": 0}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{name}` needs a dynamic loss scale, but `loss_scale` is fixed at {scale}",
        "`{name}` 需要动态 loss scale，而 `loss_scale` 固定为 {scale}",
    ),
    why: Text::new(
        "DeepSpeed checks the loss scale when it creates the engine and exits with an error if the scale is fixed.",
        "DeepSpeed 创建 engine 时会检查 loss scale，不是动态的就报错退出。",
    ),
    help: Text::new(
        "write `\"loss_scale\": 0` for a dynamic loss scale",
        "写成 `\"loss_scale\": 0`，即动态 loss scale",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, _)) = subject.optimizer_type() else { return };
    let is_lamb = ["lamb", "onebitlamb"].iter().any(|lamb| name.eq_ignore_ascii_case(lamb))
        && Constructors::of(subject.version).knows_optimizer(name);
    let path = ["fp16", "loss_scale"];
    let Some(node) = subject.node(path) else { return };
    let is_fixed = number(node).is_some_and(|scale| scale > 0.0);
    if is_lamb && is_fixed && subject.enabled("fp16") == Some(true) {
        let title = Text::new("write 0", "改为 0");
        let fix = Fix::guess(title, vec![Edit::new(node.span, "0")]);
        found.push(
            at_value(&RULE, &WORDING, &path, node)
                .with("name", name)
                .with("scale", subject.text_of(node.span))
                .fix(Some(fix)),
        );
    }
}
