use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_config::syntax::Span;
use zeropilot_job::{Call, Leaving, Loop, PythonScript};
use zeropilot_text::Text;

use super::STAGE_2;
use super::local_values::{is_within, names};

pub(crate) static RULE: Rule = Rule {
    code: "T01",
    name: "graph-kept",
    group: Group::TrainingCode,
    severity: Severity::Warning,
    summary: Text::new(
        "the script keeps losses with their autograd graphs",
        "脚本把 loss 连同计算图一起保留",
    ),
    wordings: &[&TRAINING, &EVALUATION],
    sources: &["pytorch/pytorch docs/source/notes/faq.rst"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nlosses = []\nfor batch in loader:\n    loss = engine(batch)\n    engine.backward(loss)\n    engine.step()\n    losses.append(loss)\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\ntotal = 0\nfor batch in loader:\n    loss = engine(**batch).loss\n    engine.backward(loss)\n    engine.step()\n    total += loss\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\ntotal = 0\nfor batch in test_loader:\n    loss = engine(batch)\n    total += loss\nprint(total / len(test_loader))\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\ntotal = 0\nwith torch.no_grad():\n    for batch in test_loader:\n        loss = engine(batch)\n        total += loss\nprint(total / len(test_loader))\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nlosses = []\ntotal = 0\nfor batch in loader:\n    loss = engine(batch)\n    engine.backward(loss)\n    engine.step()\n    losses.append(loss.item())\n    total += loss.detach()\n"),
            ("ds.json", STAGE_2),
        ]),
        // The sum is what is trained on.
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    total = 0\n    for part in batch:\n        loss = engine(part)\n        total += loss\n    engine.backward(total)\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\ntotal = 0\nfor step, batch in enumerate(loader):\n    loss = engine(batch)\n    engine.backward(loss)\n    engine.step()\n    total += loss\n    if step % 10 == 0:\n        print(total.item() / 10)\n        total = 0\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static EVALUATION: Wording = Wording {
    message: Text::new(
        "`{keeper}` keeps `{loss}` of every batch with all its activations: `no_grad` is missing",
        "`{keeper}` 保留了每个 batch 的 `{loss}` 和全部激活值：没有用 `no_grad`",
    ),
    why: Text::new(
        "Without a `backward` call, PyTorch keeps the autograd graph of every stored loss. The activations of every batch stay allocated until the job runs out of GPU memory (CUDA OOM).",
        "没有 `backward` 来释放计算图，每个 batch 的激活值都会留在显存里，直到显存不足（CUDA OOM）。",
    ),
    help: Text::new(
        "evaluate under `with torch.no_grad():`, and keep `{loss}.item()`",
        "把评估放在 `with torch.no_grad():` 里，并保留 `{loss}.item()`",
    ),
};

static TRAINING: Wording = Wording {
    message: Text::new(
        "`{keeper}` keeps `{loss}` of every step with its autograd graph",
        "`{keeper}` 保留了每一步的 `{loss}` 和它的计算图",
    ),
    why: Text::new(
        "A stored loss keeps the graph that computed it, so host memory grows with every step until the process is killed. For a Llama with 8 layers, it grows by 350 KiB per step on each rank, and faster with more layers.",
        "保留 loss 就会保留算出它的计算图，主机内存占用每一步都增长，直到进程被终止。8 层的 Llama 每个 rank 每步增长 350 KiB，层数越多越快。",
    ),
    help: Text::new(
        "keep `{loss}.item()`, or `{loss}.detach()` to avoid waiting for the GPU",
        "保留 `{loss}.item()`；不想等待 GPU 就用 `{loss}.detach()`",
    ),
};

/// What a statement keeps, by its keeper: `losses.append(loss)`, `total += loss`.
fn kept(script: &PythonScript) -> impl Iterator<Item = (&str, &str, Span, usize)> {
    let appended = script.calls.iter().filter(|call| call.name() == "append");
    let appended = appended
        .filter_map(|call| Some((call.object(), call.argument_name()?, call.span, call.scope)));
    let added = script.assignments.iter().filter(|it| it.adds);
    appended.chain(added.map(|it| (it.target.as_str(), it.value.as_str(), it.span, it.scope)))
}

/// Whether something is emptied or begun anew in a loop, or what is kept is cut off its graph there.
fn is_let_go(script: &PythonScript, keeper: &str, loss: &str, within: Span) -> bool {
    let inside = |span: Span| is_within(span, within);
    let clears =
        |call: &Call| call.object() == keeper && matches!(call.name(), "clear" | "pop" | "popleft");
    let cuts =
        |value: &str| ["item(", "detach(", "float(", ".data"].iter().any(|cut| value.contains(cut));
    script.calls.iter().any(|call| inside(call.span) && clears(call))
        || script.assignments.iter().any(|it| {
            let is_new = it.target == keeper && !it.adds;
            let is_cut = it.target == loss && cuts(&it.value);
            inside(it.span) && (is_new || is_cut)
        })
}

/// Whether a loop runs the model and never goes back through it.
fn is_evaluated(script: &PythonScript, engine: &str, loss: &str, within: &Loop) -> bool {
    let runs = format!("{engine}(");
    let is_output = script.assignments.iter().any(|it| {
        it.target == loss && is_within(it.span, within.span) && it.value.starts_with(&runs)
    });
    let goes_back = script
        .calls
        .iter()
        .any(|call| call.name() == "backward" && is_within(call.span, within.span));
    // What a function returns may be trained on by its caller.
    let returns =
        script.exits.iter().any(|exit| exit.how == Leaving::Return && exit.scope == within.scope);
    is_output && !goes_back && !returns
}

/// Whether nothing in a script switches gradients off.
fn has_no_guard(text: &str) -> bool {
    !["no_grad", "inference_mode", "grad_enabled"].iter().any(|word| text.contains(word))
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let script = training.script;
        let Some((_, engine)) = script.engine() else { continue };
        let text = (job.files)(training.name);
        let text = text.as_deref();
        let backward = format!("{engine}.backward");
        let trained: Vec<&Call> = script
            .calls
            .iter()
            .filter(|call| call.callee == backward && script.is_on_engine(call))
            .collect();
        for (keeper, loss, span, scope) in kept(script) {
            let Some(within) = script.loop_around(span) else { continue };
            let of_loss = |call: &&Call| {
                is_within(call.span, within.span)
                    && call.scope == scope
                    && call.argument_name() == Some(loss)
            };
            let is_trained_on = trained.iter().any(|call| {
                let loss = call.positional.first().map(|(_, span)| *span);
                let loss = loss.zip(text).and_then(|(span, text)| text.get(span.start..span.end));
                loss.is_none_or(|loss| names(loss).any(|name| name == keeper))
            });
            let is_summed = script.assignments.iter().any(|it| {
                trained.iter().any(|call| call.argument_name() == Some(it.target.as_str()))
                    && names(&it.value).any(|name| name == keeper)
            });
            let has_maxlen = script
                .assignments
                .iter()
                .any(|it| it.target == keeper && it.value.contains("maxlen"));
            let wording = if trained.iter().copied().any(|call| of_loss(&call)) {
                &TRAINING
            } else if is_evaluated(script, engine, loss, within) && text.is_some_and(has_no_guard) {
                &EVALUATION
            } else {
                continue;
            };
            if !is_trained_on
                && !is_summed
                && !has_maxlen
                && !is_let_go(script, keeper, loss, within.span)
            {
                let diagnostic = Diagnostic::new(&RULE, wording, "", span)
                    .with("keeper", keeper)
                    .with("loss", loss);
                found.at(&training.place(span), diagnostic);
            }
        }
    }
}
