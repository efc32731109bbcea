use crate::diagnostic::Diagnostic;
use crate::reading::{ZERO, at_member};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "S05",
    name: "checkpoint-of-another-precision",
    group: Group::Saving,
    severity: Severity::Error,
    summary: Text::new(
        "a checkpoint saved in another precision",
        "checkpoint 是用不同的精度保存的",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#5405"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#,
    )
    .script(super::other_ranks::two_ranks)],
    good: &[Example::new(r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}}"#)
        .script(super::other_ranks::two_ranks)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the checkpoint was saved {wrote}, but the run is {now}",
        "checkpoint 保存时{wrote}，而现在{now}",
    ),
    why: Text::new(
        "Optimizer state files are named `bf16_zero_pp_rank_…` in bf16 and `zero_pp_rank_…` otherwise. DeepSpeed looks only for file names that match the current precision.",
        "优化器状态的文件在 bf16 下叫 `bf16_zero_pp_rank_…`，否则叫 `zero_pp_rank_…`；DeepSpeed 只按当前精度对应的文件名查找。",
    ),
    help: Text::new(
        "resume in the checkpoint's precision, or start a new run from its weights",
        "用保存时的精度续训，或只用权重重新开始训练",
    ),
};

fn in_words(bf16: bool) -> Text {
    if bf16 {
        Text::new("in bf16", "用的是 bf16")
    } else {
        Text::new("not in bf16", "没有用 bf16")
    }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(checkpoint) = &subject.script.checkpoint else { return };
    let (Some(wrote), Some(now)) = (checkpoint.is_bf16, subject.bf16()) else { return };
    if let Some((_, member)) = subject.member(&[ZERO])
        && wrote != now
        && matches!(subject.stage(), Some(1..=3))
        && !subject.is_on(["checkpoint", "load_universal"])
    {
        found.push(
            at_member(&RULE, &WORDING, &[ZERO], member)
                .with("wrote", in_words(wrote))
                .with("now", in_words(now)),
        );
    }
}
