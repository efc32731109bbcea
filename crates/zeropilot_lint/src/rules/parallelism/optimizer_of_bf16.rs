use zeropilot_config::python::PyValue;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::report::ResolvedValues;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::precision::accumulation_type::kind;
use crate::rules::training::sequence_parallel_gradients::SCRIPT;
use crate::ulysses;
use zeropilot_text::Text;

const FP32: &str = r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 1}}"#;

pub(crate) static RULE: Rule = Rule {
    code: "P23",
    name: "sequence-parallel-fp32-accumulation",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new(
        "with Ulysses, ZeRO stage 1 cannot accumulate bf16 gradients in fp32",
        "使用 Ulysses 时，ZeRO stage 1 不能用 fp32 累积 bf16 梯度",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/bf16_optimizer.py, get_grads_for_norm"],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py")
        .files(&[("t.py", SCRIPT), ("ds.json", FP32)])],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", FP32),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[("t.py", SCRIPT), ("ds.json", super::STAGE_3)]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the first optimizer step crashes: Ulysses with ZeRO stage 1, bf16 and `grad_accum_dtype: fp32`",
        "第一次参数更新就会崩溃：Ulysses 与 ZeRO stage 1、bf16、`grad_accum_dtype: fp32` 一起使用",
    ),
    why: Text::new(
        "With ZeRO stage 1, bf16 and `grad_accum_dtype: fp32`, DeepSpeed uses its `BF16_Optimizer`, which treats ranks that share a sequence as tensor-parallel ranks. All ranks except the first find no gradients and fail (\"stack expects a non-empty TensorList\"; DeepSpeed 0.18: \"list index out of range\").",
        "使用 ZeRO stage 1、bf16 和 `grad_accum_dtype: fp32` 时，DeepSpeed 会用 `BF16_Optimizer`，把共同处理一条序列的 rank 当成张量并行的 rank。其中除第一个以外的 rank 都找不到梯度，于是报错（`stack expects a non-empty TensorList`；DeepSpeed 0.18 为 `list index out of range`）。",
    ),
    help: Text::new(
        "use ZeRO stage 3, which also scales the gradients of a shared sequence correctly",
        "改用 ZeRO stage 3，它在序列并行下对梯度的缩放也是正确的",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (launch, report) in job.launches() {
        let resolved = report.and_then(|report| report.resolved.as_ref());
        if resolved.is_some_and(accumulates_in_fp32)
            && let Some(ulysses) = ulysses::of_launch(launch).filter(|found| found.reaches_engine)
        {
            let told = Diagnostic::new(&RULE, &WORDING, "", ulysses.place.span);
            found.at(&ulysses.place, told);
        }
    }
}

/// Whether DeepSpeed uses its optimizer for bf16 weights and fp32 gradients.
pub(crate) fn accumulates_in_fp32(resolved: &ResolvedValues) -> bool {
    let table = resolved.keys.table();
    let text = |path: &str| match table.get(path) {
        Some(PyValue::Str(text)) => kind(text),
        _ => None,
    };
    let is_on = |path: &str| table.get(path) == Some(&PyValue::Bool(true));
    let offload = resolved.zero_optimization.get("offload_optimizer");
    let is_offloaded = offload.is_some_and(|section| *section != PyValue::None);
    resolved.stage == 1
        && is_on("bf16.enabled")
        && text("data_types.grad_accum_dtype") == Some("fp32")
        && !is_offloaded
}
