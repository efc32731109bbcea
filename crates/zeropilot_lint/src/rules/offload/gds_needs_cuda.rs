use zeropilot_config::problem::Problem;

use crate::diagnostic::Diagnostic;
use crate::rule::{Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F14",
    name: "gds-needs-cuda",
    group: Group::Offload,
    severity: Severity::Error,
    summary: Text::new(
        "GPUDirect Storage without an NVIDIA GPU",
        "没有 NVIDIA GPU，却启用了 GPUDirect Storage（GDS）",
    ),
    wordings: &[&WORDING],
    sources: &[],
    // Files are judged for NVIDIA GPUs, where it does not occur.
    examples: &[],
    good: &[],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("`{path}` needs an NVIDIA GPU", "`{path}` 需要 NVIDIA GPU"),
    why: Text::new(
        "GPUDirect Storage moves data between NVMe and an NVIDIA GPU. On other accelerators, DeepSpeed raises an error.",
        "GPUDirect Storage 在 NVMe 与 NVIDIA GPU 之间直接传输数据；在其他加速卡上，DeepSpeed 会报错。",
    ),
    help: Text::new("remove `use_gds`", "删掉 `use_gds`"),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
}
