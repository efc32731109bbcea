use zeropilot_config::python::PyValue;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::report::Report;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{PythonScript, Value};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B15",
    name: "step-at-boundary",
    group: Group::Batch,
    severity: Severity::Warning,
    summary: Text::new(
        "`engine.step` is called only at the gradient accumulation boundary",
        "只在累积边界调用 `engine.step`",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nsteps = engine.gradient_accumulation_steps()\nfor i, batch in enumerate(loader):\n    engine.backward(engine(batch))\n    if (i + 1) % steps == 0:\n        engine.step()\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8}"#)])],
    good: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor i, batch in enumerate(loader):\n    engine.backward(engine(batch))\n    engine.step()\n    if (i + 1) % 8 == 0:\n        print(i)\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8}"#)]), Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor i, batch in enumerate(loader):\n    engine.backward(engine(batch))\n    if (i + 1) % args.accumulation == 0:\n        engine.step()\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "managed_gradient_accumulation": false, "gradient_accumulation_steps": 8}"#)])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` runs only if `{condition}`: the weights change every {product} micro-steps",
        "`{call}` 只在 `{condition}` 时调用：每 {product} 个 micro step 才更新一次",
    ),
    why: Text::new(
        "DeepSpeed counts calls to `step` and updates the weights once every {steps} calls (`gradient_accumulation_steps`). If the script calls `step` only at the boundary, gradients accumulate twice.",
        "DeepSpeed 自己统计 `step` 的调用次数，按 `gradient_accumulation_steps` 每 {steps} 次更新一次。只在边界调用，等于累积了两次。",
    ),
    help: Text::new("call `{call}` after every `backward`", "每次 `backward` 之后都调用 `{call}`"),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(resolved) = training.config.and_then(Report::values) else {
            continue;
        };
        let Some(steps) = resolved.accumulation().filter(|steps| *steps > 1) else { continue };
        let table = resolved.keys.table();
        let is_managed = table.get("managed_gradient_accumulation") != Some(&PyValue::Bool(false));
        let Some((_, engine)) = training.script.engine().filter(|_| is_managed) else { continue };
        // A script that sets the boundary itself means it.
        let sets = format!("{engine}.set_gradient_accumulation_boundary");
        if training.script.call(&sets).is_some() {
            continue;
        }
        let name = format!("{engine}.step");
        for call in training.script.calls.iter().filter(|call| call.callee == name) {
            let condition = call.condition.as_deref().unwrap_or_default();
            if training.script.is_on_engine(call) && is_boundary(condition, training.script, steps)
            {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                    .with("call", name.as_str())
                    .with("condition", condition)
                    .with("steps", i128::from(steps))
                    .with("product", i128::from(steps.saturating_mul(steps)));
                found.at(&training.place(call.span), diagnostic);
            }
        }
    }
}

/// Whether a condition counts micro-steps: `(i + 1) % accumulation == 0`.
fn is_boundary(condition: &str, script: &PythonScript, steps: i64) -> bool {
    let plain: String = condition.split_whitespace().collect();
    let Some((_, rest)) = plain.split_once('%') else { return false };
    let Some(divisor) = rest.strip_suffix("==0") else { return false };
    let by_value = || match script.bound(divisor) {
        Some(Value::Call(name) | Value::Argument(name)) => name.contains("accum"),
        Some(Value::Literal(number)) => number.parse() == Ok(steps),
        _ => false,
    };
    divisor.contains("accum") || divisor.parse() == Ok(steps) || by_value()
}
