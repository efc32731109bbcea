use zeropilot_config::python::PyValue;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Call;
use zeropilot_text::Text;

use super::unused_optimizer::unused;

pub(crate) static RULE: Rule = Rule {
    code: "T09",
    name: "optimizer-beside-engine",
    group: Group::TrainingCode,
    severity: Severity::Warning,
    summary: Text::new(
        "the script steps an optimizer that DeepSpeed does not use",
        "脚本推进了 DeepSpeed 没有使用的优化器",
    ),
    wordings: &[&WITHOUT_GRADIENTS, &TWICE],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/engine.py, _configure_optimizer"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n    optimizer.step()\n"),
            ("ds.json", WITH_OPTIMIZER),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    optimizer.step()\n    engine.step()\n"),
            ("ds.json", WITHOUT_ZERO),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", WITH_OPTIMIZER),
        ]),
        // Another model, which DeepSpeed does not train.
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "optimizer = torch.optim.AdamW(judge.parameters(), lr=1e-4)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n    optimizer.step()\n"),
            ("ds.json", WITH_OPTIMIZER),
        ]),
    ],
    is_no_op: false,
};

const WITH_OPTIMIZER: &str = r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#;

const WITHOUT_ZERO: &str = r#"{"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#;

static WITHOUT_GRADIENTS: Wording = Wording {
    message: Text::new(
        "`{call}` updates nothing: DeepSpeed trains the model with another optimizer",
        "`{call}` 不会更新任何参数：DeepSpeed 用另一个优化器训练模型",
    ),
    why: Text::new(
        "`deepspeed.initialize` does not get `{optimizer}` and creates another optimizer from the config. With ZeRO, the gradients leave the parameters during `backward`, so `{call}` finds none. The learning rate and weight decay of `{optimizer}` have no effect.",
        "脚本没有把 `{optimizer}` 传给 `deepspeed.initialize`，DeepSpeed 会按配置另建一个优化器。开启 ZeRO 后，梯度在 `backward` 里就被取走，`{call}` 找不到梯度。`{optimizer}` 的学习率和权重衰减都不生效。",
    ),
    help: Text::new(
        "remove `{call}`; to train with `{optimizer}`, pass `optimizer={optimizer}` to `deepspeed.initialize` and remove the `optimizer` section",
        "删掉 `{call}`；要用 `{optimizer}` 训练，请把 `optimizer={optimizer}` 传给 `deepspeed.initialize`，并去掉配置里的 `optimizer`",
    ),
};

static TWICE: Wording = Wording {
    message: Text::new(
        "`{call}` and `{engine}.step` update the same weights",
        "`{call}` 和 `{engine}.step` 更新同一组权重",
    ),
    why: Text::new(
        "`deepspeed.initialize` does not get `{optimizer}` and creates another optimizer from the config. Without ZeRO, the gradients stay in the parameters until `{engine}.step`, so both optimizers apply them.",
        "脚本没有把 `{optimizer}` 传给 `deepspeed.initialize`，DeepSpeed 会按配置另建一个优化器。不用 ZeRO 时，梯度在 `{engine}.step` 之前一直留在参数上，两个优化器都会用它更新。",
    ),
    help: WITHOUT_GRADIENTS.help,
};

/// Whether one call is made where the other is not.
fn excludes(call: &Call, other: &Call) -> bool {
    call.guards.iter().any(|guard| {
        other.guards.iter().any(|it| it.condition == guard.condition && it.holds != guard.holds)
    })
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let script = training.script;
        let Some((made, engine)) = script.engine() else { continue };
        let Some(optimizer) = unused(&training) else { continue };
        let Some(name) = optimizer.bound_to.as_deref() else { continue };
        let Some(engine_step) = script.call(&format!("{engine}.step")) else { continue };
        let step = format!("{name}.step");
        let is_beside = |call: &&Call| {
            call.scope == engine_step.scope
                && made.guards.is_empty()
                && !excludes(call, engine_step)
        };
        let Some(call) = script.call(&step).filter(is_beside) else { continue };
        let is_in_fp32 =
            training.config.and_then(|report| report.resolved.as_ref()).is_some_and(|resolved| {
                let table = resolved.keys.table();
                let is_on = |key: &str| table.get(key) == Some(&PyValue::Bool(true));
                !is_on("bf16.enabled") && !is_on("fp16.enabled")
            });
        let wording = match training.stage() {
            // Before the boundary of accumulation, stage 1 leaves gradients where they are.
            Some(1) if training.accumulation() != Some(1) => continue,
            Some(1..) => &WITHOUT_GRADIENTS,
            Some(0) if is_in_fp32 && engine_step.follows(call) => &TWICE,
            _ => continue,
        };
        let diagnostic = Diagnostic::new(&RULE, wording, "", call.span)
            .with("call", step.as_str())
            .with("optimizer", name)
            .with("engine", engine);
        found.at(&training.place(call.span), diagnostic);
    }
}
