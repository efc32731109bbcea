use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::training::sequence_parallel_gradients::SCRIPT;
use crate::ulysses;
use zeropilot_text::Text;

use super::{STAGE_3, TENSOR_PARALLEL, tensor_parallel};

pub(crate) static RULE: Rule = Rule {
    code: "L22",
    name: "sequence-parallel-rejected",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new(
        "a rank layout or attention implementation that Ulysses rejects",
        "Ulysses 不接受的 rank 分组或注意力实现",
    ),
    wordings: &[&ATTENTION, &RANKS, &TENSOR],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/sequence_parallel/ulysses_sp.py, register_with_transformers",
        "huggingface/accelerate src/accelerate/utils/dataclasses.py, DeepSpeedSequenceParallelConfig",
    ],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "mpu = UlyssesSPAttentionHF.register_with_transformers(model_name_or_path=model, core_attn_implementation='eager', sequence_parallel_size=2, micro_batch_size=1)\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json', mpu=mpu)\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 3 t.py").files(&[("t.py", SCRIPT), ("ds.json", STAGE_3)]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[("t.py", SCRIPT), ("ds.json", TENSOR_PARALLEL)]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 4 t.py").files(&[("t.py", SCRIPT), ("ds.json", STAGE_3)]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", TENSOR_PARALLEL),
        ]),
    ],
    is_no_op: false,
};

static ATTENTION: Wording = Wording {
    message: Text::new(
        "Ulysses does not support the attention implementation `{attention}`",
        "Ulysses 不支持注意力实现 `{attention}`",
    ),
    why: Text::new(
        "The run exits with a `ValueError` when it sets up sequence parallelism. `eager` needs a mask that Ulysses does not have, and accelerate also rejects `flex_attention`.",
        "训练在设置序列并行时以 `ValueError` 退出：`eager` 需要掩码，而 Ulysses 没有；accelerate 也不接受 `flex_attention`。",
    ),
    help: Text::new(
        "use `flash_attention_2`, `flash_attention_3` or `sdpa`, and load the model with the same implementation",
        "改用 `flash_attention_2`、`flash_attention_3` 或 `sdpa`，加载模型时也用同一种实现",
    ),
};

static RANKS: Wording = Wording {
    message: Text::new(
        "{ranks} ranks cannot be divided into groups of {shared} that share a sequence",
        "序列并行以每 {shared} 个 rank 为一组，{ranks} 个 rank 分不成整组",
    ),
    why: Text::new(
        "Every group needs the same number of ranks. DeepSpeed exits with a `RuntimeError` when it creates the groups.",
        "每组的 rank 数必须相同。DeepSpeed 建立分组时会以 `RuntimeError` 退出。",
    ),
    help: Text::new(
        "choose a sequence-parallel size that divides {ranks}",
        "选一个能整除 {ranks} 的序列并行度",
    ),
};

static TENSOR: Wording = Wording {
    message: Text::new(
        "`tensor_parallel.autotp_size` and Ulysses do not work together",
        "`tensor_parallel.autotp_size` 和 Ulysses 不能一起使用",
    ),
    why: Text::new(
        "Tensor parallelism needs the same tokens on neighboring ranks, but Ulysses gives these ranks different parts of a sequence. DeepSpeed exits with \"Data inconsistency within the TP group\".",
        "张量并行要求相邻的 rank 处理相同的 token，而 Ulysses 让这些 rank 处理一条序列的不同部分。DeepSpeed 会以 `Data inconsistency within the TP group` 退出。",
    ),
    help: Text::new(
        "remove `tensor_parallel` from the config, or do not use sequence parallelism",
        "从配置里删掉 `tensor_parallel`，或不使用序列并行",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (launch, report) in job.launches() {
        let Some(ulysses) = ulysses::of_launch(launch) else { continue };
        if let Some((attention, place)) = &ulysses.attention
            && (attention == "eager" || (ulysses.by_accelerate && attention == "flex_attention"))
        {
            let told = Diagnostic::new(&RULE, &ATTENTION, "", place.span);
            found.at(place, told.with("attention", attention.as_str()));
        }
        let place = &ulysses.place;
        if let Some(ranks) = launch.world.filter(|ranks| !ranks.is_multiple_of(ulysses.ranks)) {
            let told = Diagnostic::new(&RULE, &RANKS, "", place.span);
            found.at(place, told.with("ranks", ranks).with("shared", ulysses.ranks));
        }
        if ulysses.reaches_engine && tensor_parallel(report).is_some() {
            found.at(place, Diagnostic::new(&RULE, &TENSOR, "", place.span));
        }
    }
}
