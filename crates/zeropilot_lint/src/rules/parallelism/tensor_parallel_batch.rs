use num_traits::ToPrimitive as _;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B16",
    name: "tensor-parallel-batch",
    group: Group::Batch,
    severity: Severity::Warning,
    summary: Text::new(
        "with tensor parallelism, `train_batch_size` counts every sample several times",
        "使用张量并行时，`train_batch_size` 会把每个样本重复计数",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/config.py, DeepSpeedConfig.__init__"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "tensor_parallel": {"autotp_size": 2}}"#,
    )
    .ranks(4)],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 2, "tensor_parallel": {"autotp_size": 2}}"#,
        )
        .ranks(4),
        Example::new(r#"{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 1}}"#).ranks(4),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "a step has {samples} different samples, not {batch}: groups of {ranks} ranks share samples",
        "每步只用 {samples} 个不同的样本，而不是 {batch} 个：每 {ranks} 个 rank 计算的是同一批样本",
    ),
    why: Text::new(
        "DeepSpeed multiplies the micro-batch size and the gradient accumulation steps by the number of ranks and does not divide by `autotp_size`. It averages gradients over the groups only, so the learning rate applies to the smaller batch.",
        "DeepSpeed 把 micro batch、梯度累积步数和总卡数相乘，没有除以 `autotp_size`；梯度只在各组之间求平均，所以学习率对应的是更小的 batch。",
    ),
    help: Text::new(
        "choose the learning rate for {samples} samples, or multiply `train_batch_size` and the gradient accumulation steps by {ranks}",
        "按 {samples} 个样本设定学习率，或把 `train_batch_size` 和梯度累积步数都乘以 {ranks}",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let whole = |path: &[&str]| {
        let node = subject.node(path.iter().copied())?;
        match &node.value {
            Value::Int(number) => number.to_usize().map(|number| (number, node)),
            _ => None,
        }
    };
    let Some((ranks, _)) = whole(&["tensor_parallel", "autotp_size"]) else { return };
    let path = ["train_batch_size"];
    let Some((batch, node)) = whole(&path) else { return };
    let is_shared = ranks > 1 && batch.is_multiple_of(ranks);
    if is_shared && subject.version >= EngineVersion::V0_16 {
        let told = at_value(&RULE, &WORDING, &path, node).with("samples", batch / ranks);
        found.push(told.with("batch", batch).with("ranks", ranks));
    }
}
