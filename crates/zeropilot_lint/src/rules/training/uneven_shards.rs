use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Assigned, Leaving};
use zeropilot_text::Text;

use super::STAGE_2;

pub(crate) static RULE: Rule = Rule {
    code: "H16",
    name: "uneven-shards",
    group: Group::Hangs,
    severity: Severity::Note,
    summary: Text::new(
        "ranks may get different numbers of batches",
        "各 rank 的 batch 数可能不同",
    ),
    wordings: &[&WORDING],
    sources: &["pytorch/pytorch torch/utils/data/distributed.py, DistributedSampler"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "rows = read('train.json')[rank::world_size]\nloader = DataLoader(rows, batch_size=args.batch)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "rows = read('train.json')\nrows = rows[: len(rows) // world_size * world_size]\nrows = rows[rank::world_size]\nloader = DataLoader(rows, batch_size=args.batch)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "rows = read('train.json')[rank::world_size]\nloader = DataLoader(rows, batch_size=args.batch)\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor step, batch in enumerate(loader):\n    if step == args.steps:\n        break\n    engine.backward(engine(batch))\n    engine.step()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{shard}` gives ranks unequal numbers of samples unless the number of ranks divides the total",
        "样本数不能被总卡数整除时，`{shard}` 分给各 rank 的样本数不同",
    ),
    why: Text::new(
        "Every `backward` and `step` needs all ranks. A rank that runs out of batches leaves the loop, and the others wait for it until the collective times out.",
        "每次 `backward` 和 `step` 都需要所有 rank。batch 用完的 rank 会先退出循环，其他 rank 会一直等它，直到通信超时。",
    ),
    help: Text::new(
        "trim the data to a multiple of the number of ranks, use `DistributedSampler` (which pads), or stop all ranks at the same step",
        "先把数据裁成总卡数的整数倍；或用会补齐的 `DistributedSampler`；或让所有 rank 在同一步结束循环",
    ),
};

/// Words of scripts that see to equal numbers.
const SEEN_TO: [&str; 9] = [
    "//",
    "min(",
    "islice",
    "drop_last",
    "all_reduce",
    "% world_size",
    "Sampler",
    "broadcast",
    "cycle(",
];

/// The part of an expression that takes every so manyth item, from the rank on.
fn shard(assigned: &Assigned) -> Option<&str> {
    let value = assigned.value.as_str();
    let middle = value.find("::")?;
    let (start, end) = (value[..middle].rfind('[')?, value[middle..].find(']')? + middle + 1);
    let part = value.get(start..end)?;
    let (first, step) = part.trim_matches(['[', ']']).split_once("::")?;
    let is_rank = first.contains("rank");
    (is_rank && (step.contains("world") || step.contains("num_replicas"))).then_some(part)
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.launch.world != Some(1)) {
        let script = training.script;
        let Some((_, engine)) = script.engine() else { continue };
        let text = (job.files)(training.name).unwrap_or_default();
        let code: String =
            text.lines().map(|line| line.split(" #").next().unwrap_or(line)).collect();
        if SEEN_TO.iter().any(|word| code.contains(word)) {
            continue;
        }
        let backward = format!("{engine}.backward");
        let within = script.call(&backward).and_then(|call| script.loop_around(call.span));
        let Some(within) =
            within.filter(|it| !it.targets.is_empty() && !it.over.contains("range("))
        else {
            continue;
        };
        let is_left = script.exits.iter().any(|exit| {
            exit.how != Leaving::Continue
                && within.span.start < exit.span.start
                && exit.span.end <= within.span.end
        });
        let shards = script.assignments.iter().filter_map(|it| Some((it, shard(it)?)));
        for (assigned, shard) in shards.filter(|_| !is_left) {
            let diagnostic =
                Diagnostic::new(&RULE, &WORDING, "", assigned.span).with("shard", shard);
            found.at(&training.place(assigned.span), diagnostic);
        }
    }
}
