use zeropilot_config::python::PyValue;
use zeropilot_config::schema::EngineVersion;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P22",
    name: "unscaled-backward",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new("`loss.backward()` in fp16", "fp16 训练里直接调用 `loss.backward()`"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
        ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    loss = engine(batch)\n    loss.backward()\n    engine.step()\n"),
        ("ds.json", FP16),
    ])],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", FP16),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    loss = engine.scale(engine(batch))\n    loss.backward()\n    engine.step()\n"),
            ("ds.json", FP16),
        ]),
    ],
    is_no_op: false,
};

const FP16: &str =
    r#"{"train_batch_size": 8, "fp16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` does not scale the loss, but the model trains in fp16",
        "`{call}` 没有对 loss 做缩放，而模型用 fp16 训练",
    ),
    why: Text::new(
        "In fp16, the loss must be multiplied by the loss scale before the backward pass. DeepSpeed exits with a `RuntimeError` in the first backward pass.",
        "fp16 训练要先把 loss 乘以 loss scale 再求梯度。第一次反向时 DeepSpeed 就以 `RuntimeError` 退出。",
    ),
    help: Text::new(
        "call `{engine}.backward(loss)`, or `{engine}.scale(loss).backward()`",
        "改用 `{engine}.backward(loss)`，或 `{engine}.scale(loss).backward()`",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(report) = training.config.filter(|it| it.version >= EngineVersion::V0_19) else {
            continue;
        };
        let Some(resolved) = report.values() else { continue };
        let in_fp16 = resolved.keys.table().get("fp16.enabled") == Some(&PyValue::Bool(true));
        let Some((_, engine)) = training.script.engine().filter(|_| in_fp16) else { continue };
        let is_scaled = training.script.call(&format!("{engine}.backward")).is_some()
            || training.script.calls("scale");
        let mut calls = training.script.calls.iter().filter(|call| call.name() == "backward");
        if let Some(call) = calls.find(|call| call.callee == "loss.backward")
            && !is_scaled
            && training.script.call(&format!("{engine}.step")).is_some()
        {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                .with("call", call.callee.as_str())
                .with("engine", engine);
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
