use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O34",
    name: "optimizer-stepped-by-script",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new("the script calls the optimizer's `step` instead of DeepSpeed's", "脚本直接调用优化器的 `step`，绕过了 DeepSpeed"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
        ("t.py", "engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    optimizer.step()\n    optimizer.zero_grad()\n"),
        ("ds.json", super::STAGE_2),
    ])],
    good: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
        ("t.py", "engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
        ("ds.json", super::STAGE_2),
    ])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the script calls `{call}` instead of `{engine}.step`",
        "脚本调用了 `{call}`，而没有调用 `{engine}.step`",
    ),
    why: Text::new(
        "`{engine}.step` decides when to update, clips gradients, steps the scheduler and clears the gradients. With ZeRO, calling the optimizer directly fails at the first micro-step before the gradient accumulation boundary.",
        "`{engine}.step` 负责判断何时更新、裁剪梯度、推进调度器和清空梯度。用 ZeRO 时，在累积边界之前直接调用优化器会报错。",
    ),
    help: Text::new(
        "call `{engine}.step()` after every `backward`, and remove `{call}` and `zero_grad`",
        "每次 `backward` 之后调用 `{engine}.step()`，并去掉 `{call}` 和 `zero_grad`",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.stage() >= Some(1)) {
        let Some((made, engine)) = training.script.engine() else { continue };
        let calls = |name: String| training.script.calls.iter().any(|call| call.callee == name);
        // A loop somewhere else may step the engine under another name.
        let is_stepped = calls(format!("{engine}.step")) || calls("self.engine.step".to_owned());
        if is_stepped || !calls(format!("{engine}.backward")) {
            continue;
        }
        let handed = made.keyword("optimizer").and(made.handed(usize::MAX, "optimizer"));
        let returned = made.bound_names.get(1).map(String::as_str).filter(|name| *name != "_");
        let Some(optimizer) = returned.or(handed) else { continue };
        let name = format!("{optimizer}.step");
        if let Some(call) = training.script.call(&name) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                .with("call", name.as_str())
                .with("engine", engine);
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
