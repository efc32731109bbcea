use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, Loop, PythonScript};
use zeropilot_text::Text;

use super::STAGE_2;
use super::local_values::is_within;

pub(crate) static RULE: Rule = Rule {
    code: "T04",
    name: "evaluation-mode-kept",
    group: Group::TrainingCode,
    severity: Severity::Warning,
    summary: Text::new(
        "training continues in evaluation mode",
        "切到评估模式后继续训练",
    ),
    wordings: &[&WORDING],
    sources: &["pytorch/pytorch torch/nn/modules/module.py, Module.eval"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor step, batch in enumerate(loader):\n    engine.backward(engine(batch))\n    engine.step()\n    if step % 100 == 0:\n        engine.eval()\n        with torch.no_grad():\n            print(engine(test))\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "def evaluate(model):\n    model.eval()\n    with torch.no_grad():\n        return model(test)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nengine.train()\nfor epoch in range(3):\n    for batch in loader:\n        engine.backward(engine(batch))\n        engine.step()\n    print(evaluate(engine))\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "def evaluate(model):\n    model.eval()\n    with torch.no_grad():\n        return model(test)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor epoch in range(3):\n    engine.train()\n    for batch in loader:\n        engine.backward(engine(batch))\n        engine.step()\n    print(evaluate(engine))\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nreference.eval()\nfor step, batch in enumerate(loader):\n    reference.eval()\n    engine.backward(engine(batch))\n    engine.step()\nengine.eval()\nprint(engine(test))\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "def evaluate(model):\n    mode = model.training\n    model.eval()\n    loss = model(test)\n    model.train(mode)\n    return loss\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor step, batch in enumerate(loader):\n    engine.backward(engine(batch))\n    engine.step()\n    print(evaluate(engine))\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "no `train()` follows `{call}` in the training loop: training continues in evaluation mode",
        "训练循环里调用了 `{call}`，之后没有 `train()`：后面的训练都在评估模式下进行",
    ),
    why: Text::new(
        "`eval()` stays in effect until `train()` is called. After the first evaluation, dropout (including LoRA's) is off and batch norm no longer updates its statistics, but the loss still looks normal.",
        "`eval()` 一直有效，直到调用 `train()`。从第一次评估起，dropout（包括 LoRA 的）不再生效，batch norm 也不再更新统计量，但从 loss 上看不出异常。",
    ),
    help: Text::new(
        "call `{engine}.train()` after each evaluation",
        "每次评估之后调用 `{engine}.train()`",
    ),
};

/// Calls in a loop that put the engine into evaluation mode, directly or through a function that is handed it.
fn evaluations<'s>(script: &'s PythonScript, engine: &str, within: &Loop) -> Vec<&'s Call> {
    let own = [format!("{engine}.eval"), format!("{engine}.module.eval")];
    let in_loop = script
        .calls
        .iter()
        .filter(|call| is_within(call.span, within.span) && call.scope == within.scope);
    in_loop
        .filter(|call| {
            let through = || {
                let function = script.function(&call.callee)?;
                let mut parameters = function.parameters.iter().enumerate();
                let handed =
                    parameters.find(|(index, name)| call.handed(*index, name) == Some(engine));
                let name = format!("{}.eval", handed?.1);
                let mut inside = script.calls.iter().filter(|it| it.scope == function.scope);
                inside.find(|it| it.callee == name)
            };
            own.contains(&call.callee) || through().is_some()
        })
        .collect()
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let script = training.script;
        let Some((_, engine)) = script.engine() else { continue };
        let backward = format!("{engine}.backward");
        let trained = script.calls.iter().find(|call| call.callee == backward);
        let Some(trained) = trained.filter(|call| script.is_on_engine(call)) else { continue };
        let loops = script
            .loops
            .iter()
            .filter(|it| it.scope == trained.scope && is_within(trained.span, it.span));
        let Some(outermost) = loops.min_by_key(|it| it.span.start) else { continue };
        let comes_back = script.calls.iter().any(|call| {
            call.name() == "train"
                && (is_within(call.span, outermost.span) || call.scope != trained.scope)
        });
        if comes_back {
            continue;
        }
        for call in evaluations(script, engine, outermost) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                .with("call", call.callee.as_str())
                .with("engine", engine);
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
