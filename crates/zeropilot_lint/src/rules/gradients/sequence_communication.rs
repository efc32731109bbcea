use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::{at_member, remove_idle};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::parallelism::sequence_key_alone;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "G27",
    name: "sequence-communication-type",
    group: Group::Gradients,
    severity: Severity::Note,
    summary: Text::new(
        "a communication data type for sequence parallelism in stages 1 and 2",
        "stage 1/2 下设置了序列并行的通信数据类型",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/zero/stage_1_and_2.py, allreduce_bucket"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "seq_parallel_communication_data_type": "bf16"}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}, "seq_parallel_communication_data_type": "bf16"}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "seq_parallel_communication_data_type": "fp32"}"#,
        ),
    ],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` has no effect in ZeRO stage {stage}",
        "`{path}` 在 ZeRO stage {stage} 下不生效",
    ),
    why: Text::new(
        "DeepSpeed reads the key only if ranks share a sequence. Even then, stages 1 and 2 always reduce gradients in fp32.",
        "只有多个 rank 共同处理一条序列时，DeepSpeed 才读取这个键；而 stage 1 和 2 此时总以 fp32 规约梯度，与它的值无关。",
    ),
    help: Text::new(
        "remove `{path}`, or use stage 3, which reduces gradients in this data type",
        "删掉 `{path}`，或改用 stage 3，它会按这个类型规约梯度",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["seq_parallel_communication_data_type"];
    let Some((object, member)) = subject.member(&path) else { return };
    let Some(stage @ 1..=2) = subject.stage() else { return };
    // The BF16 optimizer of stage 1 reduces in a way of its own.
    let is_settled = stage == 2 || subject.bf16() == Some(false);
    let is_lower = matches!(&member.value.value, Value::Str(kind) if matches!(kind.as_str(), "bf16" | "bfp16" | "fp16"));
    // Where sequences stay whole, that is the one finding: the type concerns nothing.
    let is_idle_anyway = sequence_key_alone::size_alone(subject).is_some();
    if is_settled
        && is_lower
        && !is_idle_anyway
        && subject.zero_switch("reduce_scatter") != Some(false)
    {
        found.push(
            at_member(&RULE, &WORDING, &path, member)
                .with("stage", usize::from(stage))
                .fix(remove_idle(subject, object, member)),
        );
    }
}
