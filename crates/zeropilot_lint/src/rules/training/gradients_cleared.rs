use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_config::python::PyValue;
use zeropilot_config::schema::EngineVersion;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "T02",
    name: "gradients-cleared",
    group: Group::TrainingCode,
    severity: Severity::Warning,
    summary: Text::new(
        "`zero_grad` in every micro-step discards the accumulated gradients",
        "每个 micro step 都调用 `zero_grad`，丢掉了累积的梯度",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/zero/stage_1_and_2.py, zero_grad",
        "deepspeedai/DeepSpeed deepspeed/runtime/zero/stage3.py, zero_grad",
    ],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", CLEARS),
            ("ds.json", ACCUMULATING),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    optimizer.zero_grad()\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", CLEARS),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}"#),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", CLEARS),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    if engine.is_gradient_accumulation_boundary():\n        engine.zero_grad()\n    engine.step()\n"),
            ("ds.json", ACCUMULATING),
        ]),
    ],
    is_no_op: false,
};

const CLEARS: &str = "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.zero_grad()\n    engine.backward(engine(batch))\n    engine.step()\n";

const ACCUMULATING: &str = r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` runs in every micro-step: only the last of {steps} micro-batches counts",
        "每个 micro step 都调用 `{call}`：{steps} 个 micro batch 里只有最后一个起作用",
    ),
    why: Text::new(
        "`gradient_accumulation_steps` is {steps}, and in ZeRO stage {stage}, `{call}` discards the gradients accumulated so far. DeepSpeed still divides the loss of the last micro-batch by {steps}, so its gradient is also {steps} times too small, which Adam hides.",
        "`gradient_accumulation_steps` 是 {steps}，在 ZeRO stage {stage} 下，`{call}` 会丢掉已累积的梯度。DeepSpeed 仍会把最后一个 micro batch 的 loss 除以 {steps}，它的梯度也只有应有的 1/{steps}，用 Adam 时看不出来。",
    ),
    help: Text::new(
        "remove `{call}`: `{engine}.step()` clears the gradients after each update",
        "去掉 `{call}`：`{engine}.step()` 会在每次更新之后清空梯度",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(steps) = training.accumulation().filter(|steps| *steps > 1) else { continue };
        let (Some(stage), Some(report)) = (training.stage(), training.config) else { continue };
        let script = training.script;
        let Some((made, engine)) = script.engine() else { continue };
        let table = report.values().map(|resolved| resolved.keys.table());
        let managed = table.and_then(|table| table.get("managed_gradient_accumulation").cloned());
        if managed == Some(PyValue::Bool(false)) || report.version < EngineVersion::V0_19 {
            continue;
        }
        let handed = made.keyword("optimizer").and(made.handed(usize::MAX, "optimizer"));
        let returned = made.bound_names.get(1).map(String::as_str).filter(|name| *name != "_");
        let optimizer = returned.or(handed);
        // In stage 2 the accumulated gradients are kept elsewhere, in stage 3 by the optimizer.
        let owners: Vec<&str> = match stage {
            0 | 1 => {
                [Some(engine), optimizer, made.handed(1, "model")].into_iter().flatten().collect()
            }
            3 => optimizer.into_iter().collect(),
            _ => continue,
        };
        let backward = format!("{engine}.backward");
        let Some(backward) = script.call(&backward).filter(|call| script.is_on_engine(call)) else {
            continue;
        };
        let Some(within) = script.loop_around(backward.span) else { continue };
        let clears = script.calls.iter().filter(|call| {
            call.name() == "zero_grad"
                && owners.contains(&call.object())
                && call.guards == backward.guards
                && script.loop_around(call.span).is_some_and(|it| it.span == within.span)
        });
        for call in clears {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                .with("call", call.callee.as_str())
                .with("engine", engine)
                .with("stage", i128::from(stage))
                .with("steps", i128::from(steps));
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
