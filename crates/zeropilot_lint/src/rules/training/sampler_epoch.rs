use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, Value};
use zeropilot_text::Text;

use super::STAGE_2;
use super::same_samples::trained_loader;

pub(crate) static RULE: Rule = Rule {
    code: "T08",
    name: "sampler-without-epoch",
    group: Group::TrainingCode,
    severity: Severity::Note,
    summary: Text::new(
        "`DistributedSampler` without `set_epoch`",
        "`DistributedSampler` 没有调用 `set_epoch`",
    ),
    wordings: &[&WORDING],
    sources: &["pytorch/pytorch torch/utils/data/distributed.py, DistributedSampler.set_epoch"],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
        ("t.py", "sampler = DistributedSampler(data)\nloader = DataLoader(data, batch_size=args.batch, sampler=sampler)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor epoch in range(3):\n    for batch in loader:\n        engine.backward(engine(batch))\n        engine.step()\n"),
        ("ds.json", STAGE_2),
    ])],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "sampler = DistributedSampler(data)\nloader = DataLoader(data, batch_size=args.batch, sampler=sampler)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor epoch in range(3):\n    sampler.set_epoch(epoch)\n    for batch in loader:\n        engine.backward(engine(batch))\n        engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "sampler = DistributedSampler(data, shuffle=False)\nloader = DataLoader(data, batch_size=args.batch, sampler=sampler)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor epoch in range(3):\n    for batch in loader:\n        engine.backward(engine(batch))\n        engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the script never calls `{sampler}.set_epoch`: every epoch has the same order",
        "脚本没有调用 `{sampler}.set_epoch`：每个 epoch 的顺序都一样",
    ),
    why: Text::new(
        "`DistributedSampler` shuffles by its seed and the epoch number, which stays 0. In every epoch, each rank gets the same samples in the same order.",
        "`DistributedSampler` 按种子和 epoch 编号打乱顺序，而这个编号一直是 0。每个 rank 在每个 epoch 都按同样的顺序得到同样的样本。",
    ),
    help: Text::new(
        "call `{sampler}.set_epoch(epoch)` at the start of each epoch",
        "每个 epoch 开始时调用 `{sampler}.set_epoch(epoch)`",
    ),
};

fn shuffles(call: &Call) -> bool {
    let is_off = matches!(call.keyword("shuffle"), Some((value, _)) if *value != Value::Literal("True".to_owned()));
    !is_off && !call.has_more && call.positional.len() == 1
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.launch.world != Some(1)) {
        let script = training.script;
        let text = (job.files)(training.name);
        if text.is_none_or(|text| text.contains("set_epoch")) {
            continue;
        }
        let Some(loader) = trained_loader(&training) else { continue };
        let named = loader.handed(usize::MAX, "sampler");
        let sampler = script.calls.iter().find(|call| {
            call.name() == "DistributedSampler"
                && shuffles(call)
                && call.bound_to.as_deref() == named
        });
        let Some((sampler, name)) = sampler.zip(named) else { continue };
        // The loop over batches is passed more than once.
        let over_batches = script.loops.iter().find(|it| {
            super::local_values::names(&it.over)
                .any(|name| Some(name) == loader.bound_to.as_deref())
        });
        let epochs = over_batches.and_then(|inner| script.loop_around(inner.span));
        if epochs.is_some_and(|it| it.over.starts_with("range(") && it.over != "range(1)") {
            let diagnostic =
                Diagnostic::new(&RULE, &WORDING, "", sampler.span).with("sampler", name);
            found.at(&training.place(sampler.span), diagnostic);
        }
    }
}
