use crate::diagnostic::Diagnostic;
use crate::reading::{ZERO, at_member, remove_idle};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "X07",
    name: "quantized-gradients-one-node",
    group: Group::ZeroPlusPlus,
    severity: Severity::Note,
    summary: Text::new("quantized gradients on one node", "单节点上使用量化梯度"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/zero/stage3.py, __avg_scatter_grads"],
    examples: &[Example::new(QUANTIZED).script(one_node)],
    good: &[Example::new(QUANTIZED), Example::new(QUANTIZED).script(two_nodes)],
    is_no_op: true,
};

const QUANTIZED: &str = r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "zero_quantized_gradients": true}}"#;

fn one_node() -> Script {
    Script { nodes: Some(1), ..Script::default() }
}

fn two_nodes() -> Script {
    Script { nodes: Some(2), ..Script::default() }
}

static WORDING: Wording = Wording {
    message: Text::new(
        "`zero_quantized_gradients` has no effect on one node",
        "单节点上 `zero_quantized_gradients` 不生效",
    ),
    why: Text::new(
        "DeepSpeed uses the quantized all-to-all only with more ranks than one node has GPUs. On one node, it reduces gradients with the ordinary reduce-scatter.",
        "只有总卡数多于一个节点的卡数时，DeepSpeed 才使用量化的 all-to-all；单节点上仍用普通的 reduce-scatter 规约梯度。",
    ),
    help: Text::new(
        "remove `zero_quantized_gradients`, or train on several nodes",
        "删掉 `zero_quantized_gradients`，或使用多个节点训练",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = [ZERO, "zero_quantized_gradients"];
    if subject.script.nodes == Some(1)
        && subject.stage() == Some(3)
        && subject.zero_switch("zero_quantized_gradients") == Some(true)
        && let Some((object, member)) = subject.member(&path)
    {
        let fix = remove_idle(subject, object, member);
        found.push(at_member(&RULE, &WORDING, &path, member).fix(fix));
    }
}
