use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::one_rank;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, PythonScript, Value};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "H11",
    name: "collective-on-one-rank",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new(
        "only one rank calls a collective",
        "只在一个 rank 上调用集合通信",
    ),
    wordings: &[&WORDING],
    sources: &["pytorch/pytorch torch/distributed/distributed_c10d.py"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif torch.distributed.get_rank() == 0:\n    prepare('cache')\n    torch.distributed.barrier()\n",
        )]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nfor batch in loader:\n    loss = engine(batch)\n    engine.backward(loss)\n    engine.step()\n    if rank == 0:\n        dist.all_reduce(loss)\n        print(loss.item())\n",
        )]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif torch.distributed.get_rank() == 0:\n    prepare('cache')\ntorch.distributed.barrier()\n",
        )]),
        // The others wait first, the one rank meets them when it is done.
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif args.local_rank not in (-1, 0):\n    torch.distributed.barrier()\nprepare('cache')\nif args.local_rank == 0:\n    torch.distributed.barrier()\n",
        )]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif rank == 0:\n    dist.broadcast(flag, src=0)\nelse:\n    dist.broadcast(flag, src=0)\n",
        )]),
        Example::job("deepspeed --num_gpus 4 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif local_rank == 0:\n    dist.all_reduce(flag, group=one_of_each_node)\n",
        )]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` runs only if `{condition}`: the run hangs",
        "`{call}` 只在 `{condition}` 时调用，训练会卡住",
    ),
    why: Text::new(
        "A collective returns only after all ranks of its group have called it. A single rank waits until the others call their next collective, which does not match, or until the timeout.",
        "集合通信要等组内所有 rank 都调用才会返回。只有一个 rank 调用时，它会一直等待，直到其他 rank 发起下一次集合通信（与它并不匹配），或者超时。",
    ),
    help: Text::new(
        "move `{call}` out of the condition, so that all ranks call it",
        "把 `{call}` 移到条件之外，让所有 rank 都调用",
    ),
};

/// Collectives of `torch.distributed` and of `deepspeed.comm`.
const COLLECTIVES: [&str; 14] = [
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather_object",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
];

/// The same of accelerate.
const OF_ACCELERATORS: [&str; 4] = ["wait_for_everyone", "gather", "gather_for_metrics", "reduce"];

/// Modules by the names that scripts import them under.
const MODULES: [&str; 6] =
    ["dist", "torch.distributed", "deepspeed.comm", "deepspeed.dist", "torch_dist", "distributed"];

fn is_collective(script: &PythonScript, call: &Call) -> bool {
    let object = call.object();
    let of_module = MODULES.contains(&object) && COLLECTIVES.contains(&call.name());
    let of_accelerator =
        script.accelerator() == Some(object) && OF_ACCELERATORS.contains(&call.name());
    of_module || of_accelerator
}

/// Whether it is for the ranks of the whole job.
fn is_for_all(call: &Call) -> bool {
    let in_group = call.keyword("group").is_some_and(|(value, _)| *value != Value::None);
    // Only some of these take their group by place, and then it comes after what is sent.
    let by_place =
        call.positional.len() > 2 || (call.name() == "barrier" && !call.positional.is_empty());
    !in_group && !by_place && !call.has_more
}

/// Whether ranks may meet from different places: another collective depends on the rank as well.
fn is_met_elsewhere(script: &PythonScript, call: &Call) -> bool {
    let depends = |other: &Call| {
        other.span != call.span
            && is_collective(script, other)
            && other.guards.iter().any(|guard| {
                let asked = guard.condition.to_lowercase();
                let is_own = call.guards.contains(guard);
                !is_own && (asked.contains("rank") || asked.contains("main"))
            })
    };
    script.calls.iter().any(depends)
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.launch.world != Some(1)) {
        let script = training.script;
        if script.engine().is_none() && script.accelerator().is_none() {
            continue;
        }
        for call in script.calls.iter().filter(|call| is_collective(script, call)) {
            let condition = one_rank::condition(script, &call.guards);
            let Some(condition) = condition.filter(|_| is_for_all(call)) else { continue };
            if !is_met_elsewhere(script, call) {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                    .with("call", call.callee.as_str())
                    .with("condition", condition.as_str());
                found.at(&training.place(call.span), diagnostic);
            }
        }
    }
}
