use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, PythonScript, Value};
use zeropilot_text::Text;

use super::STAGE_2;

pub(crate) static RULE: Rule = Rule {
    code: "T05",
    name: "softmax-twice",
    group: Group::TrainingCode,
    severity: Severity::Warning,
    summary: Text::new(
        "`softmax` before a cross entropy that already includes it",
        "交叉熵之前多做了一次 `softmax`",
    ),
    wordings: &[&WORDING],
    sources: &["pytorch/pytorch torch/nn/functional.py, cross_entropy"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor x, y in loader:\n    loss = F.cross_entropy(F.softmax(engine(x), dim=-1), y)\n    engine.backward(loss)\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "criterion = nn.CrossEntropyLoss()\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor x, y in loader:\n    probabilities = engine(x).softmax(dim=-1)\n    loss = criterion(probabilities, y)\n    engine.backward(loss)\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor x, y in loader:\n    logits = engine(x)\n    loss = F.cross_entropy(logits, F.softmax(teacher(x), dim=-1))\n    engine.backward(loss)\n    engine.step()\n    print(F.softmax(logits, dim=-1).max())\n"),
            ("ds.json", STAGE_2),
        ]),
        // The logarithm of a softmax is left as it is by another one.
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor x, y in loader:\n    loss = F.nll_loss(F.log_softmax(engine(x), dim=-1), y)\n    engine.backward(loss)\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` gets probabilities, but it applies softmax itself",
        "传给 `{call}` 的是概率，而它自己会再做一次 softmax",
    ),
    why: Text::new(
        "The second softmax gets values between 0 and 1, so no class gets more than e times the probability of another. With n classes, the loss cannot fall below ln(1 + (n − 1)/e) (0.31 for 2 classes, 10.5 for 100,000), and gradients are tiny.",
        "第二次 softmax 的输入都在 0 和 1 之间，任何类别的概率最多是另一类的 e 倍。n 个类别时 loss 不会低于 ln(1 + (n − 1)/e)（2 类是 0.31，100,000 类是 10.5），梯度也很小。",
    ),
    help: Text::new("pass the logits directly to `{call}`", "直接把 logits 传给 `{call}`"),
};

/// Whether a call computes a cross entropy from logits.
fn is_cross_entropy(script: &PythonScript, call: &Call) -> bool {
    let is_class = |name: &str| name == "CrossEntropyLoss" || name.ends_with(".CrossEntropyLoss");
    let made = || {
        let mut made = script.assignments.iter().filter(|it| it.target == call.callee);
        let value = made.next().filter(|_| made.next().is_none()).map(|it| it.value.as_str());
        value.and_then(|value| value.split_once('(')).is_some_and(|(class, _)| is_class(class))
    };
    call.name() == "cross_entropy" || call.callee.strip_suffix("()").is_some_and(is_class) || made()
}

fn is_softmax(callee: &str) -> bool {
    callee == "softmax" || callee.ends_with(".softmax")
}

/// Whether the first argument is what a softmax gives.
fn takes_probabilities(script: &PythonScript, call: &Call) -> bool {
    match call.argument(0, "input") {
        Some((Value::Call(callee), _)) if is_softmax(callee) => return true,
        Some(_) => {}
        None => return false,
    }
    let Some(name) = call.handed(0, "input") else { return false };
    let before = script.calls.iter().filter(|it| {
        it.scope == call.scope && it.span.end <= call.span.start && it.bound_names == [name]
    });
    let last = script
        .assignments
        .iter()
        .filter(|it| it.scope == call.scope && it.span.end <= call.span.start && it.target == name);
    // The last assignment must be that of the softmax.
    let last = last.map(|it| it.span.end).max();
    before.filter(|it| is_softmax(&it.callee)).any(|it| Some(it.span.end) == last)
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let script = training.script;
        if script.engine().is_none() && script.accelerator().is_none() {
            continue;
        }
        for call in script.calls.iter().filter(|call| is_cross_entropy(script, call)) {
            if takes_probabilities(script, call) {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                    .with("call", call.callee.as_str());
                found.at(&training.place(call.span), diagnostic);
            }
        }
    }
}
