use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::report::{Report, ResolvedValues};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_config::python::PyValue;
use zeropilot_job::{Call, Place, Value};
use zeropilot_text::Text;

use super::STAGE_3;

const MEAN: &str = "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\ntotal = TiledFusedLogitsLoss.apply(loss_fn, model, hidden, labels, None, 4, [head], \"mean\")\n";

pub(crate) static RULE: Rule = Rule {
    code: "G22",
    name: "tiled-loss-sum",
    group: Group::Gradients,
    severity: Severity::Warning,
    summary: Text::new(
        "`TiledFusedLogitsLoss` does not scale the gradient of the output layer",
        "`TiledFusedLogitsLoss` 没有缩放输出层的梯度",
    ),
    wordings: &[&WORDING, &ACCUMULATED, &LOSS_SCALE],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/sequence_parallel/ulysses_sp.py, TiledFusedLogitsLoss",
    ],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\ntotal = TiledFusedLogitsLoss.apply(loss_fn, model, hidden, labels, None, 4, [head], \"sum\")\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", MEAN),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}"#),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", MEAN),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": true}, "zero_optimization": {"stage": 3}}"#),
        ]),
    ],
    good: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", MEAN),
        ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}"#),
    ])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the output layer's gradient is that of the summed loss, even if you divide the loss later",
        "无论之后把 loss 除以多少，输出层的梯度仍是求和 loss 的梯度",
    ),
    why: Text::new(
        "DeepSpeed computes the output layer's gradient in the forward pass; later divisions, gradient accumulation steps and the fp16 loss scale do not affect it. For a loss divided by 32 tokens, the gradient norm was 31.4 instead of 1.52, so gradient clipping nearly removes the other gradients.",
        "DeepSpeed 在前向时就算好了输出层的梯度，之后的除法、梯度累积步数和 fp16 的 loss scale 都不会作用到它。32 个 token 的 loss 除以 token 数之后，梯度范数是 31.4，而不是 1.52；梯度裁剪会因此把其他层的梯度裁到几乎为零。",
    ),
    help: Text::new(
        "use `sequence_tiled_compute`, which recomputes the loss in the backward pass, or a fused loss such as Liger Kernel's",
        "改用 `sequence_tiled_compute`（反向时会重新计算 loss），或使用融合 loss，例如 Liger Kernel 的实现",
    ),
};

static ACCUMULATED: Wording = Wording {
    message: Text::new(
        "the output layer gradient is {steps} times too large: it is not divided by the gradient accumulation steps",
        "输出层的梯度会是应有大小的 {steps} 倍：它没有除以梯度累积步数",
    ),
    why: Text::new(
        "DeepSpeed computes the output layer's gradient in the forward pass, and only `backward` divides by `gradient_accumulation_steps`. Over 4 micro-batches, a gradient norm of 1.34 became 3.78, so gradient clipping shrinks the gradients of the other layers.",
        "DeepSpeed 在前向时就算好了输出层的梯度，到 `backward` 才把 loss 除以 `gradient_accumulation_steps`，这个除法不会作用到输出层的梯度。累积 4 个 micro batch 时，梯度范数是 3.78，而不是 1.34；梯度裁剪会因此压低其他层的梯度。",
    ),
    help: WORDING.help,
};

static LOSS_SCALE: Wording = Wording {
    message: Text::new(
        "the gradient of the output layer nearly vanishes: the fp16 loss scale is not applied to it",
        "输出层的梯度几乎为零：fp16 的 loss scale 没有作用到它",
    ),
    why: Text::new(
        "DeepSpeed computes the output layer's gradient in the forward pass, before it scales the loss, but later divides it by the loss scale. With a scale of 65536, the output layer kept 1/65536 of its gradient.",
        "DeepSpeed 在前向时就算好了输出层的梯度，此时 loss 还没有放大，之后却和其他层一样除以 loss scale。loss scale 为 65536 时，输出层只剩 1/65536 的梯度。",
    ),
    help: WORDING.help,
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        for call in training.script.calls.iter().filter(|call| is_tiled_loss(call)) {
            let place = Place::in_file(training.name, call.span);
            if is_reduced_by(call, "sum") {
                found.at(&place, Diagnostic::new(&RULE, &WORDING, "", place.span));
                continue;
            }
            let Some(resolved) = training.config.and_then(Report::values) else {
                continue;
            };
            if is_in_fp16(resolved) {
                found.at(&place, Diagnostic::new(&RULE, &LOSS_SCALE, "", place.span));
            } else if let Some(steps) = accumulated(resolved) {
                let told = Diagnostic::new(&RULE, &ACCUMULATED, "", place.span);
                found.at(&place, told.with("steps", steps));
            }
        }
    }
}

fn is_tiled_loss(call: &Call) -> bool {
    call.callee.ends_with("TiledFusedLogitsLoss.apply")
}

fn is_reduced_by(call: &Call, reduction: &str) -> bool {
    let last = call.positional.last().map(|(value, _)| value);
    matches!(last, Some(Value::Literal(text)) if text == reduction)
}

fn is_in_fp16(resolved: &ResolvedValues) -> bool {
    resolved.keys.table().get("fp16.enabled") == Some(&PyValue::Bool(true))
}

/// Over how many micro batches gradients are accumulated, if over several.
fn accumulated(resolved: &ResolvedValues) -> Option<usize> {
    usize::try_from(resolved.accumulation()?).ok().filter(|steps| *steps > 1)
}
