use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, PythonScript, Value};
use zeropilot_text::Text;

use super::STAGE_2;

pub(crate) static RULE: Rule = Rule {
    code: "T06",
    name: "loss-scaled-by-script",
    group: Group::TrainingCode,
    severity: Severity::Warning,
    summary: Text::new(
        "a `GradScaler` scales the loss that is passed to DeepSpeed",
        "用 `GradScaler` 缩放了交给 DeepSpeed 的 loss",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/engine.py, backward"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "scaler = torch.amp.GradScaler('cuda')\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(scaler.scale(engine(batch)))\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "scaler = torch.amp.GradScaler('cuda', enabled=not args.deepspeed)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(scaler.scale(engine(batch)))\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{scaler}.scale` multiplies the loss passed to `{call}`, and no later step reverses this",
        "`{scaler}.scale` 把交给 `{call}` 的 loss 放大了，之后没有再缩小",
    ),
    why: Text::new(
        "A `GradScaler` starts at 65536 and unscales gradients in its own `step`, which does not reach DeepSpeed's gradients. These gradients stay too large by that factor: every step is clipped, fp16 overflows, and SGD diverges.",
        "`GradScaler` 的缩放系数从 65536 开始，它只在自己的 `step` 里缩小梯度，而 DeepSpeed 的梯度不在其中。于是梯度一直停留在放大后的大小：每一步都触发裁剪，fp16 会溢出，SGD 会发散。",
    ),
    help: Text::new(
        "remove the `GradScaler`: with `fp16` in the config, DeepSpeed scales the loss itself, and bf16 needs no scaling",
        "去掉 `GradScaler`：配置里写 `fp16` 时 DeepSpeed 会自己缩放 loss，bf16 不需要缩放",
    ),
};

/// The scaler that a script makes and does not switch off.
fn scaler(script: &PythonScript) -> Option<&str> {
    let mut made = script.calls.iter().filter(|call| call.name() == "GradScaler");
    let made = made.next().filter(|_| made.next().is_none())?;
    let is_on = made.keyword("enabled").is_none() && !made.has_more;
    made.bound_to.as_deref().filter(|_| is_on)
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let script = training.script;
        let (Some((_, engine)), Some(scaler)) = (script.engine(), scaler(script)) else { continue };
        let backward = format!("{engine}.backward");
        let scale = format!("{scaler}.scale");
        let takes_scaled = |call: &&Call| {
            let inside = matches!(call.argument(0, "loss"), Some((Value::Call(callee), _)) if *callee == scale);
            let name = call.handed(0, "loss");
            let before = name.is_some_and(|name| {
                script.calls.iter().any(|it| {
                    it.callee == scale && it.bound_to.as_deref() == Some(name) && call.follows(it)
                })
            });
            call.callee == backward && script.is_on_engine(call) && (inside || before)
        };
        for call in script.calls.iter().filter(takes_scaled) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                .with("scaler", scaler)
                .with("call", backward.as_str());
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
