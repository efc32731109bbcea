use super::hpz_divides::size;
use crate::diagnostic::Diagnostic;
use crate::reading::ZERO;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use crate::world::WorldSource;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "X06",
    name: "hpz-spans-all-ranks",
    group: Group::ZeroPlusPlus,
    severity: Severity::Note,
    summary: Text::new(
        "`zero_hpz_partition_size` spans all ranks",
        "`zero_hpz_partition_size` 覆盖了所有 rank",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeedExamples#717"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}"#,
        )
        .ranks(8),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}"#,
        )
        .ranks(16),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`zero_hpz_partition_size` {size} spans all {world} ranks: the second parameter copy has no benefit",
        "`zero_hpz_partition_size` {size} 覆盖了全部 {world} 个 rank：第二份参数没有任何好处",
    ),
    why: Text::new(
        "The second copy of the parameters keeps all-gathers within a node. Spread over all ranks, it needs the same communication as the parameters themselves.",
        "第二份参数是为了让 all-gather 只在节点内进行；如果分布在所有 rank 上，通信量就和聚合原来的参数一样。",
    ),
    help: Text::new(
        "set `zero_hpz_partition_size` to the number of GPUs per node, or remove it on a single node",
        "把 `zero_hpz_partition_size` 设为每个节点的卡数；只有一个节点时删掉它",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(size) = size(subject) else { return };
    let world = subject.world.size;
    let is_given = subject.world.source == WorldSource::Given && world > 1;
    let path = [ZERO, "zero_hpz_partition_size"];
    if let Some(node) = subject.node(path)
        && is_given
        && subject.stage() == Some(3)
        && size >= world
    {
        found.push(at_value(&RULE, &WORDING, &path, node).with("size", size).with("world", world));
    }
}
