use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O14",
    name: "prescaled-gradients",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new(
        "gradient scaling that conflicts with reduce-scatter",
        "梯度缩放与 reduce-scatter 冲突",
    ),
    wordings: &[&WORDING, &IGNORED],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "prescale_gradients": true}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "gradient_predivide_factor": 2.0}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "gradient_predivide_factor": 2.0}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_scatter": false}, "prescale_gradients": true}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 1, "reduce_scatter": false}, "gradient_predivide_factor": 2.0}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "prescale_gradients": false, "gradient_predivide_factor": 1.0}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` does not work with ZeRO stage {stage} while `reduce_scatter` is on",
        "ZeRO stage {stage} 且 `reduce_scatter` 开启时不能用 `{path}`",
    ),
    why: Text::new(
        "In stages 2 and 3, DeepSpeed always divides gradients by the number of ranks before the reduce-scatter. Any other scaling raises an error at startup.",
        "stage 2、3 下，DeepSpeed 总是在 reduce-scatter 之前把梯度除以总卡数；写了别的缩放方式，启动时会报错。",
    ),
    help: Text::new(
        "remove `{path}`, or set `reduce_scatter` to false in `zero_optimization`",
        "删掉 `{path}`，或在 `zero_optimization` 里把 `reduce_scatter` 设为 false",
    ),
};

static IGNORED: Wording = Wording {
    message: Text::new(
        "`{path}` has no effect in ZeRO stage {stage} while `reduce_scatter` is on",
        "ZeRO stage {stage} 且 `reduce_scatter` 开启时，`{path}` 不生效",
    ),
    why: Text::new(
        "In stage 1, DeepSpeed uses this key only when it reduces without a reduce-scatter. With `reduce_scatter`, the default, DeepSpeed divides gradients by the number of ranks before it reduces them.",
        "在 stage 1 下，DeepSpeed 只有在规约不用 reduce-scatter 时才使用这个键。`reduce_scatter` 默认开启，此时 DeepSpeed 在规约前就把梯度除以了总卡数。",
    ),
    help: WORDING.help,
};

/// Whether the BF16 optimizer runs, which reduces in a way of its own.
fn is_bf16_optimizer(subject: &Subject<'_>) -> bool {
    subject.bf16() != Some(false) && subject.node(["data_types", "grad_accum_dtype"]).is_some()
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(stage @ 1..=3) = subject.stage() else { return };
    if stage == 1 && is_bf16_optimizer(subject) {
        return;
    }
    let scatters = match subject.zero_member("reduce_scatter") {
        None => true,
        Some(member) => member.value.value == Value::Bool(true),
    };
    // Summed gradients take another way below stage 3.
    if !scatters || (stage < 3 && subject.root.get("gradient_allreduce_op").is_some()) {
        return;
    }
    let prescaled =
        subject.root.get("prescale_gradients").filter(|node| node.value == Value::Bool(true));
    let divided = subject.root.get("gradient_predivide_factor");
    let divided = divided.filter(|node| number(node).is_some_and(|factor| factor != 1.0));
    for (key, node) in [("prescale_gradients", prescaled), ("gradient_predivide_factor", divided)] {
        if let Some(node) = node {
            let (wording, severity) = match stage {
                1 => (&IGNORED, Severity::Warning),
                _ => (&WORDING, Severity::Error),
            };
            let told = at_value(&RULE, wording, &[key], node).severity(severity);
            found.push(told.with("stage", usize::from(stage)));
        }
    }
}
