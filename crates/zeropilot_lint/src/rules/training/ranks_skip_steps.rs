use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::one_rank::shown;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_config::syntax::Span;
use zeropilot_job::{Call, Guard, Leaving, Loop};
use zeropilot_text::Text;

use super::clipping_call::accelerates;
use super::local_values::{agree, asked, local_names};
use super::{STAGE_2, STAGE_3};

pub(crate) static RULE: Rule = Rule {
    code: "H13",
    name: "ranks-skip-steps",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new(
        "ranks skip training steps depending on their own data",
        "各 rank 根据自己的数据跳过训练步",
    ),
    wordings: &[&LEAVES, &ONLY_IF],
    sources: &[],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    loss = engine(batch)\n    if torch.isnan(loss):\n        continue\n    engine.backward(loss)\n    engine.step()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor step, batch in enumerate(loader):\n    if batch is None:\n        continue\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    out = engine(**batch)\n    loss = out.loss\n    if torch.isfinite(loss):\n        engine.backward(loss)\n        engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    loss = engine(batch)\n    engine.backward(loss)\n    engine.step()\n    if loss.item() < 0.01:\n        break\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        // All ranks learn what one of them saw.
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    loss = engine(batch)\n    bad = torch.isnan(loss).float()\n    dist.all_reduce(bad)\n    if bad.item() > 0:\n        continue\n    engine.backward(loss)\n    engine.step()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor step, batch in enumerate(loader):\n    if step < resumed:\n        continue\n    if step >= args.max_steps:\n        break\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor step, batch in enumerate(loader):\n    loss = engine(batch)\n    engine.backward(loss)\n    engine.step()\n    if torch.isnan(loss):\n        continue\n    print(loss.item())\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    if len(batch) < args.batch:\n        continue\n    loss = engine(batch)\n    if torch.isnan(loss):\n        raise ValueError('nan')\n    engine.backward(loss)\n    engine.step()\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

static LEAVES: Wording = Wording {
    message: Text::new(
        "`{call}` is skipped if `{condition}`, which can differ between ranks: the run hangs or fails",
        "`{condition}` 时会跳过 `{call}`，而各 rank 的判断结果可能不同，训练会卡住或报错",
    ),
    why: Text::new(
        "All ranks must make the same calls: `backward` and `step` reduce gradients over all ranks, and stage 3 also gathers every layer. If a rank skips a step, its later collectives pair with the wrong ones on other ranks, or its last one is missing.",
        "所有 rank 的调用必须一致：`backward` 和 `step` 会在全部 rank 之间规约梯度，stage 3 还要聚合每一层的权重。某个 rank 跳过一步后，它后面的集合通信会与其他 rank 的错配，或者到最后少参与一次。",
    ),
    help: Text::new(
        "decide on all ranks together: all-reduce the flag (`dist.all_reduce(flag, op=ReduceOp.MAX)`) before you test it, or continue with `torch.nan_to_num(loss) * 0` as the loss",
        "让所有 rank 一起决定：先对标志做 all-reduce（`dist.all_reduce(flag, op=ReduceOp.MAX)`）再判断；或者用 `torch.nan_to_num(loss) * 0` 代替 loss，照常继续",
    ),
};

static ONLY_IF: Wording = Wording {
    message: Text::new(
        "`{call}` runs only if `{condition}`, which can differ between ranks: the run hangs or fails",
        "`{call}` 只在 `{condition}` 时执行，而各 rank 的判断结果可能不同，训练会卡住或报错",
    ),
    why: LEAVES.why,
    help: LEAVES.help,
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.launch.world != Some(1)) {
        if training.stage().is_none() {
            continue;
        }
        let Some(together) = Together::of(&training) else { continue };
        for backward in &together.backward {
            let Some(within) = training.script.loop_around(backward.span) else { continue };
            if within.scope == backward.scope {
                together.look(&training, within, backward, found);
            }
        }
    }
}

/// What all ranks must call in a training loop.
struct Together<'a> {
    backward: Vec<&'a Call>,
    steps: Vec<&'a Call>,
    /// What runs the model.
    model: String,
}

impl<'a> Together<'a> {
    fn of(training: &Training<'a>) -> Option<Self> {
        let script = training.script;
        let called = |name: String| -> Vec<&'a Call> {
            script.calls.iter().filter(|call| call.callee == name).collect()
        };
        if let Some((_, engine)) = script.engine() {
            let mut backward = called(format!("{engine}.backward"));
            backward.retain(|call| script.is_on_engine(call));
            let steps = called(format!("{engine}.step"));
            return Some(Self { backward, steps, model: engine.to_owned() });
        }
        let accelerator = script.accelerator().filter(|_| accelerates(training))?;
        let backward = called(format!("{accelerator}.backward"));
        Some(Self { backward, steps: Vec::new(), model: "model".to_owned() })
    }

    fn look(&self, training: &Training<'_>, within: &Loop, backward: &Call, found: &mut Findings) {
        let script = training.script;
        let local = local_names(script, within, &self.model);
        let mut tell = |wording, span: Span, guard: &Guard| {
            let diagnostic = Diagnostic::new(&RULE, wording, "", span)
                .with("call", backward.callee.as_str())
                .with("condition", shown(guard));
            found.at(&training.place(span), diagnostic);
        };
        let is_inside = |span: Span| within.span.start < span.start && span.end <= within.span.end;
        let last = self.steps.iter().filter(|call| is_inside(call.span));
        let last = last.map(|call| call.span.end).chain([backward.span.end]).max();
        let last = last.unwrap_or(backward.span.end);
        let exits = script.exits.iter().filter(|exit| {
            let is_own = script.loop_around(exit.span).is_some_and(|it| it.span == within.span);
            exit.scope == within.scope
                && is_own
                && (exit.how == Leaving::Break || exit.span.start < last)
        });
        for exit in exits {
            // What is asked outside of the loop, or before another exit, is told there.
            let guards =
                exit.guards.iter().filter(|guard| guard.holds).cloned().collect::<Vec<_>>();
            if let Some(guard) =
                asked(&local, &guards).filter(|_| !agree(script, within, exit.span))
            {
                tell(&LEAVES, exit.span, guard);
            }
        }
        let own: Vec<Guard> = backward.guards.iter().filter(|guard| guard.holds).cloned().collect();
        let is_alone =
            !self.backward.iter().any(|other| other.span != backward.span && is_inside(other.span));
        if let Some(guard) = asked(&local, &own)
            && is_alone
            && !agree(script, within, backward.span)
        {
            tell(&ONLY_IF, backward.span, guard);
        }
    }
}
