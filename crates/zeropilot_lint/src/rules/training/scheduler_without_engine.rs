use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

use super::unused_optimizer::unused;

pub(crate) static RULE: Rule = Rule {
    code: "T03",
    name: "scheduler-of-unused-optimizer",
    group: Group::TrainingCode,
    severity: Severity::Warning,
    summary: Text::new(
        "the scheduler changes the learning rate of an optimizer that DeepSpeed does not use",
        "调度器作用于 DeepSpeed 没有使用的优化器",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/engine.py, _configure_optimizer"],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
        ("t.py", "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)\nscheduler = get_cosine_schedule_with_warmup(optimizer, 100, 1000)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n    scheduler.step()\n"),
        ("ds.json", WITH_OPTIMIZER),
    ])],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)\nscheduler = get_cosine_schedule_with_warmup(optimizer, 100, 1000)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model, optimizer=optimizer)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n    scheduler.step()\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_allow_untested_optimizer": true, "zero_optimization": {"stage": 2}}"#),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model)\nscheduler = get_cosine_schedule_with_warmup(optimizer, 100, 1000)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n    scheduler.step()\n"),
            ("ds.json", WITH_OPTIMIZER),
        ]),
        // Another model, which DeepSpeed does not train.
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "optimizer = torch.optim.AdamW(judge.parameters(), lr=1e-4)\nscheduler = StepLR(optimizer, 100)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n    optimizer.step()\n    scheduler.step()\n"),
            ("ds.json", WITH_OPTIMIZER),
        ]),
    ],
    is_no_op: false,
};

const WITH_OPTIMIZER: &str = r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "`{scheduler}` sets the learning rate of `{optimizer}`, which DeepSpeed does not use",
        "`{scheduler}` 改的是 `{optimizer}` 的学习率，而 DeepSpeed 没有使用这个优化器",
    ),
    why: Text::new(
        "`deepspeed.initialize` does not get `{optimizer}` and creates another optimizer from the config. Its learning rate never changes: there is no warmup and no decay, although `{scheduler}` reports both.",
        "脚本没有把 `{optimizer}` 传给 `deepspeed.initialize`，DeepSpeed 会按配置另建一个优化器。它的学习率一直不变：没有 warmup，也不衰减，而 `{scheduler}` 显示的学习率却在变化。",
    ),
    help: Text::new(
        "add a `scheduler` section to the config, or pass `optimizer={optimizer}, lr_scheduler={scheduler}` to `deepspeed.initialize` and remove the `optimizer` section and `{scheduler}.step()`",
        "在配置里加上 `scheduler` 配置段；或者给 `deepspeed.initialize` 传入 `optimizer={optimizer}, lr_scheduler={scheduler}`，并去掉配置里的 `optimizer` 和脚本里的 `{scheduler}.step()`",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let script = training.script;
        let Some((made, _)) = script.engine() else { continue };
        let Some(optimizer) = unused(&training) else { continue };
        let Some(name) = optimizer.bound_to.as_deref() else { continue };
        let scheduler = script.calls.iter().find(|call| {
            call.follows(optimizer)
                && made.follows(call)
                && call.handed(0, "optimizer") == Some(name)
                && call.bound_to.is_some()
        });
        let Some(bound) = scheduler.and_then(|call| call.bound_to.as_deref()) else { continue };
        let is_handed = made.handed(usize::MAX, "lr_scheduler") == Some(bound)
            || made.bound_names.iter().any(|name| name == bound);
        let step = format!("{bound}.step");
        if let Some(call) = script.call(&step).filter(|_| !is_handed) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                .with("scheduler", bound)
                .with("optimizer", name);
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
