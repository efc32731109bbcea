use num_traits::ToPrimitive;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::ZERO;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use crate::world::WorldSource;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "X01",
    name: "hpz-does-not-divide",
    group: Group::ZeroPlusPlus,
    severity: Severity::Error,
    summary: Text::new(
        "`zero_hpz_partition_size` does not divide the number of ranks",
        "`zero_hpz_partition_size` 不能整除总卡数",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#6659", "deepspeedai/DeepSpeed#4386"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 4}}"#,
        )
        .ranks(6),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 4}}"#,
        )
        .ranks(16),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`zero_hpz_partition_size` is {size}, which does not divide the {world} ranks evenly",
        "`zero_hpz_partition_size` 是 {size}，不能整除总卡数 {world}",
    ),
    why: Text::new(
        "Each group of {size} ranks holds a secondary copy of the parameters. {world} ranks cannot be divided into such groups, and DeepSpeed exits with an error.",
        "每 {size} 个 rank 为一组，每组保留一份参数副本；{world} 个 rank 分不成整组，DeepSpeed 会报错退出。",
    ),
    help: Text::new(
        "set `zero_hpz_partition_size` to the number of GPUs per node",
        "把 `zero_hpz_partition_size` 设为每个节点的卡数",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(size) = size(subject) else { return };
    let world = subject.world.size;
    let is_given = subject.world.source == WorldSource::Given;
    if !is_given || subject.stage() != Some(3) || size > world || world.is_multiple_of(size) {
        return;
    }
    let path = [ZERO, "zero_hpz_partition_size"];
    if let Some(node) = subject.node(path) {
        found.push(at_value(&RULE, &WORDING, &path, node).with("size", size).with("world", world));
    }
}

/// The size of a group with a copy of its own, if it is more than one rank.
pub(crate) fn size(subject: &Subject<'_>) -> Option<usize> {
    match &subject.node([ZERO, "zero_hpz_partition_size"])?.value {
        Value::Int(size) => size.to_usize().filter(|size| *size > 1),
        _ => None,
    }
}
