use zeropilot_config::front_end::FrontEnd;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::at_value;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O05",
    name: "adam-means-adamw",
    group: Group::Optimizer,
    severity: Severity::Note,
    summary: Text::new(
        "`Adam` trains with AdamW's weight decay",
        "`Adam` 的权重衰减其实按 AdamW 处理",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "weight_decay": 0.01}}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "weight_decay": 0.01, "adam_w_mode": false}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.01}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4}}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`Adam` with `weight_decay` {decay} trains as AdamW: the decay is decoupled",
        "`Adam` 与 `weight_decay` {decay} 一起使用时，实际按 AdamW 训练：权重衰减是解耦的",
    ),
    why: Text::new(
        "Regardless of the type name, DeepSpeed turns `adam_w_mode` on unless the config sets it.",
        "不管类型写成什么，只要没写 `adam_w_mode`，DeepSpeed 就默认开启它。",
    ),
    help: Text::new(
        "write `AdamW` if you want decoupled weight decay, or `\"adam_w_mode\": false` for L2 regularization",
        "要解耦的权重衰减，类型写 `AdamW`；要 L2 正则化，写 `\"adam_w_mode\": false`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, node)) = subject.optimizer_type() else { return };
    // The engine does not build the optimizer of the config where the script hands it one.
    if subject.front_end == FrontEnd::DeepSpeed && subject.script.client_optimizer.is_some() {
        return;
    }
    let decay = subject.node(["optimizer", "params", "weight_decay"]);
    let Some(decay) = decay.filter(|decay| number(decay).is_some_and(|decay| decay != 0.0)) else {
        return;
    };
    let is_said = subject.node(["optimizer", "params", "adam_w_mode"]).is_some();
    if name.eq_ignore_ascii_case("adam") && !is_said {
        let title = Text::new("write `AdamW`, the optimizer that runs", "写成 `AdamW`，与实际一致");
        let fix = Fix::safe(title, vec![Edit::new(node.span, "\"AdamW\"")]);
        found.push(
            at_value(&RULE, &WORDING, &["optimizer", "type"], node)
                .with("decay", subject.text_of(decay.span))
                .fix(Some(fix)),
        );
    }
}
