use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Call;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O33",
    name: "scheduler-stepped-twice",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new(
        "both DeepSpeed and the script step the scheduler",
        "DeepSpeed 和脚本各推进一次调度器",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model, optimizer=optimizer, lr_scheduler=scheduler)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n    scheduler.step()\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1}"#)]), Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "engine, _, _, scheduler = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n    scheduler.step()\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_type": "linear"}}}"#)])],
    good: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model, optimizer=optimizer, lr_scheduler=scheduler)\nfor batch in loader:\n    if args.deepspeed:\n        engine.backward(engine(batch))\n        engine.step()\n    else:\n        model(batch).backward()\n        optimizer.step()\n        scheduler.step()\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1}"#)]), Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model, optimizer=optimizer)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n    scheduler.step()\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1}"#)])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` steps a scheduler that DeepSpeed also steps",
        "DeepSpeed 已经推进了调度器，`{call}` 又推进一次",
    ),
    why: Text::new(
        "After every update, `engine.step` steps the scheduler that was passed to DeepSpeed. With the extra call in the script, the learning rate changes twice as fast.",
        "`engine.step` 每次更新后都会推进交给它的调度器。脚本再调用一次，学习率就变化得快一倍。",
    ),
    help: Text::new(
        "remove `{call}`, or do not pass the scheduler to `deepspeed.initialize`",
        "删掉 `{call}`，或不要把调度器交给 `deepspeed.initialize`",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some((made, engine)) = training.script.engine() else { continue };
        let steps = format!("{engine}.step");
        let script = training.script;
        let updates = || script.calls.iter().filter(|call| call.callee == steps);
        let handed = made.keyword("lr_scheduler").and(made.handed(usize::MAX, "lr_scheduler"));
        let returned = made.bound_names.get(3).map(String::as_str).filter(|name| *name != "_");
        for scheduler in handed.into_iter().chain(returned) {
            let name = format!("{scheduler}.step");
            let calls = script.calls.iter().filter(|call| call.callee == name);
            let is_twice = |call: &&Call| {
                updates().any(|it| it.scope == call.scope && !script.are_exclusive(it, call))
            };
            for call in calls.filter(is_twice) {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span);
                found.at(&training.place(call.span), diagnostic.with("call", name.as_str()));
            }
        }
    }
}
