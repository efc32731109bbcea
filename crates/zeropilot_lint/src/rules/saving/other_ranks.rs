use crate::checkpoint::Checkpoint;
use crate::diagnostic::Diagnostic;
use crate::reading::{ZERO, at_member};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use crate::world::WorldSource;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "S03",
    name: "checkpoint-of-other-ranks",
    group: Group::Saving,
    severity: Severity::Error,
    summary: Text::new(
        "a checkpoint saved by a different number of ranks",
        "checkpoint 是用不同的总卡数保存的",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed#2898",
        "deepspeedai/DeepSpeed#3810",
        "deepspeedai/DeepSpeed#2921",
        "THUDM/GLM#136",
    ],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}}"#,
    )
    .ranks(4)
    .script(two_ranks)],
    good: &[
        Example::new(r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}}"#)
            .script(two_ranks),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "checkpoint": {"load_universal": true}}"#,
        )
        .ranks(4)
        .script(universal),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "{shards} ranks saved the checkpoint, but the run has {ranks}",
        "checkpoint 由 {shards} 个 rank 保存，而现在有 {ranks} 个 rank",
    ),
    why: Text::new(
        "The checkpoint has one shard of the optimizer states per rank. DeepSpeed does not partition them again, and loading fails.",
        "优化器状态按 rank 分片保存，DeepSpeed 不会重新切分，加载时会报错退出。",
    ),
    help: Text::new(
        "run with {shards} ranks, or start a new run from the weights. To keep the optimizer states, convert the checkpoint with `ds_to_universal.py` (stages 1 and 2 need `--inject_missing_state`) and set `\"checkpoint\": {{\"load_universal\": true}}`",
        "用 {shards} 个 rank 运行；或用 `ds_to_universal.py` 转换（stage 1、2 要加 `--inject_missing_state`），并写上 `\"checkpoint\": {{\"load_universal\": true}}`；或只用权重重新开始训练",
    ),
};

pub(super) fn two_ranks() -> Script {
    let checkpoint = Checkpoint { shards: 2, is_bf16: Some(false), ..Checkpoint::default() };
    Script { checkpoint: Some(checkpoint), ..Script::default() }
}

pub(super) fn universal() -> Script {
    let checkpoint = Checkpoint { shards: 2, is_universal: true, ..Checkpoint::default() };
    Script { checkpoint: Some(checkpoint), ..Script::default() }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(checkpoint) = &subject.script.checkpoint else { return };
    let ranks = subject.world.size;
    let is_known = subject.world.source == WorldSource::Given;
    if let Some((_, member)) = subject.member(&[ZERO])
        && checkpoint.shards > 0
        && checkpoint.shards != ranks
        && is_known
        && matches!(subject.stage(), Some(1..=3))
        && !subject.is_on(["checkpoint", "load_universal"])
    {
        found.push(
            at_member(&RULE, &WORDING, &[ZERO], member)
                .with("shards", checkpoint.shards)
                .with("ranks", ranks),
        );
    }
}
