use crate::diagnostic::Diagnostic;
use crate::reading::Device;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use crate::world::WorldSource;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "G07",
    name: "zero-on-one-rank",
    group: Group::Gradients,
    severity: Severity::Note,
    summary: Text::new("ZeRO on one rank without offload", "单卡使用 ZeRO，又没有卸载"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#1302", "deepspeedai/DeepSpeed#3823"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 2}}"#,
        )
        .ranks(1),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 2}}"#,
        )
        .ranks(2),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}"#,
        )
        .ranks(1),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 2}}"#,
        )
        .unknown_ranks(),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "on one rank, ZeRO stage {stage} saves no GPU memory without offload",
        "只有 1 个 rank 时，不配合卸载的 ZeRO stage {stage} 省不了显存",
    ),
    why: Text::new(
        "ZeRO partitions model states over the ranks. A single rank keeps all of them, and the buckets use extra GPU memory.",
        "ZeRO 把模型状态切分到各个 rank；只有一个 rank 时，这个 rank 要保存全部模型状态，通信桶还要额外占用显存。",
    ),
    help: Text::new(
        "use `offload_optimizer`, or stage 0",
        "配上 `offload_optimizer`，或改用 stage 0",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(stage @ 1..=3) = subject.stage() else { return };
    let is_one = subject.world.size == 1 && subject.world.source == WorldSource::Given;
    let stays = |section| subject.device(section) == Some(Device::None);
    if !is_one || !stays("offload_optimizer") || !stays("offload_param") {
        return;
    }
    if let Some((_, member)) = subject.member(&[ZERO]) {
        found.push(at_member(&RULE, &WORDING, &[ZERO], member).with("stage", usize::from(stage)));
    }
}
