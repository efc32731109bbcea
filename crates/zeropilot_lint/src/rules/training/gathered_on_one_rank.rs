use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::one_rank;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

use super::{STAGE_2, STAGE_3};

pub(crate) static RULE: Rule = Rule {
    code: "H12",
    name: "gathered-on-one-rank",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new(
        "only one rank enters `GatheredParameters`",
        "只在一个 rank 上进入 `GatheredParameters`",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/zero/partition_parameters.py, GatheredParameters"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif rank == 0:\n    with deepspeed.zero.GatheredParameters(list(engine.parameters())):\n        torch.save(engine.module.state_dict(), 'out.pt')\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nwith deepspeed.zero.GatheredParameters(list(engine.parameters()), modifier_rank=0):\n    if rank == 0:\n        torch.save(engine.module.state_dict(), 'out.pt')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif rank == 0:\n    with deepspeed.zero.GatheredParameters(list(engine.parameters())):\n        torch.save(engine.module.state_dict(), 'out.pt')\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the script enters `GatheredParameters` only if `{condition}`: the run hangs in ZeRO stage 3",
        "脚本只在 `{condition}` 时进入 `GatheredParameters`，ZeRO stage 3 下训练会卡住",
    ),
    why: Text::new(
        "`GatheredParameters` gathers the shards of all ranks, so every rank must enter it. A single rank waits for the others until the collective times out.",
        "`GatheredParameters` 要聚合所有 rank 的分片，每个 rank 都必须进入。只有一个 rank 进入时，它会一直等其他 rank，直到通信超时。",
    ),
    help: Text::new(
        "enter `GatheredParameters` on all ranks, and check the rank inside the block",
        "让所有 rank 都进入 `GatheredParameters`，在里面再判断 rank",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.stage() == Some(3)) {
        if training.launch.world == Some(1) {
            continue;
        }
        let script = training.script;
        let calls = script.calls.iter().filter(|call| {
            call.name() == "GatheredParameters" && call.keyword("enabled").is_none()
        });
        for call in calls {
            if let Some(condition) = one_rank::condition(script, &call.guards) {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                    .with("condition", condition.as_str());
                found.at(&training.place(call.span), diagnostic);
            }
        }
    }
}
