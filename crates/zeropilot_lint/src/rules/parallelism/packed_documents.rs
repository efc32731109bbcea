use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::ulysses;
use zeropilot_job::{Call, Value};
use zeropilot_text::Text;

use super::STAGE_3;

pub(crate) static RULE: Rule = Rule {
    code: "G24",
    name: "sequence-parallel-packing",
    group: Group::Gradients,
    severity: Severity::Warning,
    summary: Text::new(
        "with Ulysses and sdpa, packed documents attend to each other",
        "使用 Ulysses 和 sdpa 时，打包在一起的文档会互相计算注意力",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/sequence_parallel/ulysses_sp.py, UlyssesSPAttentionHF.forward",
    ],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py")
        .files(&[("t.py", PACKED_SDPA), ("ds.json", STAGE_3)])],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[("t.py", PACKED_FLASH), ("ds.json", STAGE_3)]),
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[("t.py", UNPACKED), ("ds.json", STAGE_3)]),
    ],
    is_no_op: false,
};

const PACKED_SDPA: &str = "shared = ParallelismConfig(sp_size=2, sp_handler=DeepSpeedSequenceParallelConfig(sp_attn_implementation='sdpa'))\nargs = SFTConfig(deepspeed='ds.json', packing=True, parallelism_config=shared)\n";
const PACKED_FLASH: &str = "shared = ParallelismConfig(sp_size=2, sp_handler=DeepSpeedSequenceParallelConfig(sp_attn_implementation='flash_attention_2'))\nargs = SFTConfig(deepspeed='ds.json', packing=True, parallelism_config=shared)\n";
const UNPACKED: &str = "shared = ParallelismConfig(sp_size=2, sp_handler=DeepSpeedSequenceParallelConfig(sp_attn_implementation='sdpa'))\nargs = SFTConfig(deepspeed='ds.json', packing=False, parallelism_config=shared)\n";

static WORDING: Wording = Wording {
    message: Text::new(
        "packed documents attend across their boundaries: Ulysses with `sdpa` drops the mask",
        "打包在一起的文档会跨越边界互相计算注意力：Ulysses 与 `sdpa` 一起使用时会丢掉掩码",
    ),
    why: Text::new(
        "With Ulysses, DeepSpeed passes no mask to attention; only flash attention reads document boundaries from the position ids. With `sdpa`, training continues with a different loss: 4.8776 instead of 4.8745 on two ranks.",
        "使用 Ulysses 时，DeepSpeed 不会把掩码传给注意力，只有 flash attention 会从 position id 读出文档边界。用 `sdpa` 时训练照常进行，但 loss 不同：两个 rank 上是 4.8776，而不是 4.8745。",
    ),
    help: Text::new(
        "use `flash_attention_2` with a micro-batch size of 1, or turn packing off",
        "改用 `flash_attention_2` 且 micro batch 为 1，或关闭打包",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(ulysses) = ulysses::of_launch(training.launch) else { continue };
        let Some((attention, place)) = &ulysses.attention else { continue };
        let packs = |call: &Call| {
            let is = |name: &str, wanted: &str| {
                let value = call.keyword(name).map(|(value, _)| value);
                matches!(value, Some(Value::Literal(text)) if text.eq_ignore_ascii_case(wanted))
            };
            call.name() == "SFTConfig"
                && (is("packing", "true") || is("padding_free", "true"))
                && !is("packing_strategy", "wrapped")
        };
        if attention == "sdpa" && training.script.calls.iter().any(packs) {
            found.at(place, Diagnostic::new(&RULE, &WORDING, "", place.span));
        }
    }
}
