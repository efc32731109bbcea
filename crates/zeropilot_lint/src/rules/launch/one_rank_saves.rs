use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Place;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "H08",
    name: "saved-by-one-rank",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new("saving on one rank only", "只在一个进程上保存"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#4247"],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
        "t.py",
        "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif args.local_rank == 0:\n    engine.save_checkpoint('out')\n",
    )])],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif step % 100 == 0:\n    engine.save_checkpoint('out')\n",
        )]),
        Example::job("deepspeed --num_gpus 1 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif rank == 0:\n    engine.save_checkpoint('out')\n",
        )]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` is called only where `{condition}`: the run hangs",
        "`{call}` 只在 `{condition}` 时调用，训练会卡住",
    ),
    why: Text::new(
        "all ranks must call it, since each has a part of the state; the one that does waits for the others until the collectives time out.",
        "每个进程都持有一部分状态，必须全部调用；只有一个进程调用时，它会一直等其他进程，直到通信超时。",
    ),
    help: Text::new("call it on all ranks", "让所有进程都调用它"),
};

/// What every rank must call.
const TOGETHER: [&str; 4] =
    ["save_checkpoint", "save_16bit_model", "load_checkpoint", "save_fp16_model"];

/// Whether a condition holds on one rank: `rank == 0`, `args.local_rank == 0`, `dist.get_rank() == 0`.
fn holds_on_one_rank(condition: &str) -> bool {
    let plain: String = condition.split_whitespace().collect();
    let one = |side: &str| side.ends_with("rank") || side.ends_with("rank()");
    match plain.split_once("==") {
        Some((left, "0")) => one(left) && !left.contains("and") && !left.contains("or"),
        _ => false,
    }
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in job.job.launches.iter().filter(|launch| launch.world != Some(1)) {
        let (Some(script), Some(name)) = (&launch.script, &launch.program) else { continue };
        let engine = script.call("deepspeed.initialize").and_then(|call| call.bound_to.as_deref());
        let Some(engine) = engine else { continue };
        for call in script.calls.iter().filter(|call| TOGETHER.contains(&call.name())) {
            let is_own = call.callee.strip_suffix(call.name()) == Some(&format!("{engine}."));
            let guard = call.condition.as_deref().filter(|text| holds_on_one_rank(text));
            if let (true, Some(condition)) = (is_own, guard) {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                    .with("call", call.callee.as_str())
                    .with("condition", condition);
                found.at(&Place::in_file(name, call.span), diagnostic);
            }
        }
    }
}
