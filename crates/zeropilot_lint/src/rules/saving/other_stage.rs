use crate::checkpoint::Checkpoint;
use crate::diagnostic::Diagnostic;
use crate::reading::{ZERO, at_member};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "S04",
    name: "checkpoint-of-another-stage",
    group: Group::Saving,
    severity: Severity::Error,
    summary: Text::new("a checkpoint saved in another stage", "checkpoint 是用不同的 stage 保存的"),
    wordings: &[&WORDING],
    sources: &["ymcui/Chinese-LLaMA-Alpaca#711"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#,
        )
        .script(super::other_ranks::two_ranks),
        Example::new(r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}}"#)
            .script(without_zero),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}, "checkpoint": {"load_universal": true}}"#,
        )
        .script(super::other_ranks::universal),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}, "checkpoint": {"load_universal": true}}"#,
        )
        .script(only_universal),
        Example::new(r#"{"train_batch_size": 8, "zero_optimization": {"stage": 1}}"#)
            .script(super::other_ranks::two_ranks),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the checkpoint is from {wrote}, but the run uses stage {stage}",
        "checkpoint 来自{wrote}，而现在是 stage {stage}",
    ),
    why: Text::new(
        "In another stage, DeepSpeed does not find the checkpoint files, or exits with an error that omits the stage, such as an empty `AssertionError`. A universal checkpoint does not help: it allows a different number of ranks, but not another stage.",
        "换了 stage，DeepSpeed 会找不到文件，或者报错退出，错误信息里不提 stage，例如没有说明文字的 `AssertionError`。universal checkpoint 也解决不了：它只能换总卡数，不能换 stage。",
    ),
    help: Text::new(
        "resume in the checkpoint's stage, or start a new run from its weights",
        "用保存时的 stage 续训，或只用权重重新开始训练",
    ),
};

fn without_zero() -> Script {
    Script { checkpoint: Some(Checkpoint::default()), ..Script::default() }
}

/// Converted, with the files it was made of gone.
fn only_universal() -> Script {
    let checkpoint = Checkpoint { is_universal: true, ..Checkpoint::default() };
    Script { checkpoint: Some(checkpoint), ..Script::default() }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(checkpoint) = &subject.script.checkpoint else { return };
    let Some(stage) = subject.stage() else { return };
    let wrote = match (checkpoint.is_stage_3, checkpoint.shards) {
        (true, _) => Text::new("stage 3", " stage 3"),
        (false, 0) => Text::new("a run without ZeRO", "没有用 ZeRO 的训练"),
        (false, _) => Text::new("stage 1 or 2", " stage 1 或 2"),
    };
    let is_same = match (checkpoint.is_stage_3, checkpoint.shards) {
        (true, _) => stage == 3,
        (false, 0) => stage == 0,
        (false, _) => matches!(stage, 1 | 2),
    };
    // Where only the converted files are left, their names do not tell the stage.
    let is_known = !checkpoint.is_universal || checkpoint.is_stage_3 || checkpoint.shards > 0;
    if let Some((_, member)) = subject.member(&[ZERO])
        && !is_same
        && is_known
    {
        found.push(
            at_member(&RULE, &WORDING, &[ZERO], member)
                .with("wrote", wrote)
                .with("stage", usize::from(stage)),
        );
    }
}
