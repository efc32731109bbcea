use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::report::ResolvedValues;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::parallelism::optimizer_of_bf16::accumulates_in_fp32;
use crate::ulysses;
use zeropilot_config::python::PyValue;
use zeropilot_text::Text;

use super::{STAGE_2, STAGE_3};

/// A script that hands the engine groups of ranks that share a sequence.
pub(crate) const SCRIPT: &str = "mpu = UlyssesSPAttentionHF.register_with_transformers(model_name_or_path=model, core_attn_implementation='sdpa', sequence_parallel_size=2, micro_batch_size=1)\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json', mpu=mpu)\n";

/// accelerate's file with ranks that share a sequence.
pub(crate) const ACCELERATE: &str = "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  deepspeed_config_file: ds.json\nparallelism_config:\n  parallelism_config_sp_size: 2\n";

pub(crate) static RULE: Rule = Rule {
    code: "G21",
    name: "sequence-parallel-gradients",
    group: Group::Gradients,
    severity: Severity::Warning,
    summary: Text::new(
        "with Ulysses, ZeRO stages 1 and 2 multiply gradients by the sequence-parallel size",
        "使用 Ulysses 时，ZeRO stage 1、2 会把梯度乘以序列并行度",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/zero/stage_1_and_2.py, allreduce_bucket",
        "deepspeedai/DeepSpeed deepspeed/runtime/zero/stage3.py, __avg_scatter_contiguous_grads and reduce_scatter",
    ],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[("t.py", SCRIPT), ("ds.json", STAGE_2)]),
        Example::job("accelerate launch --config_file acc.yaml t.py").files(&[
            ("t.py", "from accelerate import Accelerator\n"),
            ("acc.yaml", ACCELERATE),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[("t.py", SCRIPT), ("ds.json", STAGE_3)]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job(
            "accelerate launch --config_file acc.yaml --parallelism_config_sp_size 1 t.py",
        )
        .files(&[
            ("t.py", "from accelerate import Accelerator\n"),
            ("acc.yaml", ACCELERATE),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "gradients and their norm are {size} times as large as they should be: Ulysses is used with {config}",
        "梯度及其范数会放大到 {size} 倍：Ulysses 与 {config} 一起使用",
    ),
    why: Text::new(
        "DeepSpeed averages over sequences, not over ranks: the measured norm was 4.28 on two ranks, but 2.14 on one rank and in stage 3. The loss and Adam updates do not show the error, but gradient clipping is {size} times too strong, and SGD steps are larger.",
        "DeepSpeed 求平均时只除以序列数，没有除以总卡数：实测的梯度范数在两个 rank 上是 4.28，在单个 rank 上和 stage 3 下都是 2.14。从 loss 和 Adam 的结果看不出问题，但梯度裁剪的强度是应有的 {size} 倍，SGD 的步长也会变大。",
    ),
    help: Text::new(
        "use ZeRO stage 3 and keep `reduce_scatter` on",
        "改用 ZeRO stage 3，并保持 `reduce_scatter` 开启",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (launch, report) in job.launches() {
        let resolved = report.and_then(|report| report.resolved.as_ref());
        if let Some(config) = resolved.and_then(averages_over_sequences)
            && let Some(ulysses) = ulysses::of_launch(launch).filter(|found| found.reaches_engine)
        {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", ulysses.place.span)
                .with("size", ulysses.ranks)
                .with("config", config);
            found.at(&ulysses.place, diagnostic);
        }
    }
}

/// What of the config makes DeepSpeed divide by the number of sequences.
fn averages_over_sequences(resolved: &ResolvedValues) -> Option<String> {
    let is_off = |key: &str| resolved.zero_optimization.get(key) == Some(&PyValue::Bool(false));
    if accumulates_in_fp32(resolved) {
        // The run ends before.
        return None;
    }
    match resolved.stage {
        stage @ (1 | 2) => Some(format!("stage {stage}")),
        3 if is_off("reduce_scatter") => Some("`reduce_scatter: false`".to_owned()),
        _ => None,
    }
}
