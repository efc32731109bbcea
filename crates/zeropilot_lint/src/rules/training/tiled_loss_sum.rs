use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, Place, Value};
use zeropilot_text::Text;

use super::STAGE_3;

pub(crate) static RULE: Rule = Rule {
    code: "G22",
    name: "tiled-loss-sum",
    group: Group::Gradients,
    severity: Severity::Warning,
    summary: Text::new(
        "`TiledFusedLogitsLoss` with \"sum\" leaves the gradient of the output layer unscaled",
        "`TiledFusedLogitsLoss` 用 \"sum\" 时，输出层的梯度没有按比例缩小",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/sequence_parallel/ulysses_sp.py, TiledFusedLogitsLoss",
    ],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\ntotal = TiledFusedLogitsLoss.apply(loss_fn, model, hidden, labels, None, 4, [head], \"sum\")\n"),
        ("ds.json", STAGE_3),
    ])],
    good: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\ntotal = TiledFusedLogitsLoss.apply(loss_fn, model, hidden, labels, None, 4, [head], \"mean\")\n"),
        ("ds.json", STAGE_3),
    ])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the gradient of the output layer stays that of the sum, whatever the loss is divided by afterwards",
        "之后无论把 loss 除以什么，输出层的梯度都还是求和的梯度",
    ),
    why: Text::new(
        "DeepSpeed computes it in the forward pass, and backward scales only the gradient of the hidden states. Divided by the number of tokens, the loss of 32 tokens gave a gradient norm of 31.4 instead of 1.52. Clipping then takes nearly everything from the other layers. The division by accumulation steps and the fp16 loss scale are missing as well.",
        "DeepSpeed 在前向时就算好了它，反向只缩放隐藏状态的梯度。32 个 token 的 loss 除以 token 数之后，梯度范数是 31.4，而不是 1.52；梯度裁剪会因此把其他层的梯度几乎裁光。除以梯度累积步数、fp16 的 loss scale 也同样没有作用到它。",
    ),
    help: Text::new(
        "use `sequence_tiled_compute`, which computes the loss again in backward (norm 1.52), or a fused loss such as Liger Kernel's",
        "改用 `sequence_tiled_compute`（反向时会重新计算 loss，范数为 1.52），或 Liger Kernel 的融合 loss",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        for call in training.script.calls.iter().filter(|call| sums(call)) {
            let place = Place::in_file(training.name, call.span);
            found.at(&place, Diagnostic::new(&RULE, &WORDING, "", place.span));
        }
    }
}

fn sums(call: &Call) -> bool {
    let is_sum = |value: &Value| matches!(value, Value::Literal(text) if text == "sum");
    call.callee.ends_with("TiledFusedLogitsLoss.apply")
        && call.positional.last().is_some_and(|(value, _)| is_sum(value))
}
