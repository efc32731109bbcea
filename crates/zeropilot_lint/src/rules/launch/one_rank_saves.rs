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
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif args.local_rank == 0:\n    engine.save_checkpoint('out')\n",
        )]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config $C").files(&[(
            "t.py",
            "engine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif torch.distributed.get_rank() == 0:\n    engine.save_checkpoint('out')\n",
        )]),
    ],
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

/// Whether a condition holds on one rank of each node or of all: `rank == 0`, `dist.get_rank() == 0`,
/// `int(os.environ["RANK"]) == 0`, `args.local_rank in (-1, 0)`, `accelerator.is_main_process`.
pub fn holds_on_one_rank(condition: &str) -> bool {
    let is_joined = condition.split_whitespace().any(|word| matches!(word, "and" | "or" | "not"));
    let plain: String = condition.split_whitespace().collect();
    let plain = plain.trim_start_matches('(').replace(['"', '\''], "");
    let rank = |side: &str| {
        let side = side.trim_end_matches([')', ']']);
        // `os.environ.get("RANK", 0)`
        let side = side.strip_suffix(",0").or(side.strip_suffix(",-1")).unwrap_or(side);
        let side = side.trim_end_matches("get_rank(").to_lowercase();
        side.is_empty() || side.ends_with('.') || side.ends_with("rank")
    };
    let is_one = match plain.split_once("==") {
        Some((left, zero)) if zero.trim_end_matches(')') == "0" => rank(left),
        Some(("0", right)) => rank(right),
        Some(_) => false,
        None => {
            let alone = plain.trim_end_matches([')', '(']);
            let one_of = ["in(-1,0)", "in[-1,0]", "in(0,-1)", "in[0,-1]"];
            let in_list = one_of.iter().find_map(|list| plain.strip_suffix(list));
            in_list.is_some_and(rank) || alone.ends_with("is_main_process")
        }
    };
    is_one && !is_joined
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_of_one_rank_are_known_in_the_ways_people_write_them() {
        for one in [
            "rank == 0",
            "args.local_rank == 0",
            "dist.get_rank() == 0",
            "torch.distributed.get_rank()==0",
            "deepspeed.comm.get_rank() == 0",
            "engine.global_rank == 0",
            "0 == rank",
            "(rank == 0)",
            "os.environ[\"RANK\"] == \"0\"",
            "int(os.environ['LOCAL_RANK']) == 0",
            "int(os.environ.get('RANK', 0)) == 0",
            "local_rank in (-1, 0)",
            "args.local_rank in [-1, 0]",
            "accelerator.is_main_process",
            "is_main_process()",
        ] {
            assert!(holds_on_one_rank(one), "{one}");
        }
        for more in [
            "step == 0",
            "rank == 0 or True",
            "rank != 0",
            "rank == 1",
            "not accelerator.is_main_process",
            "step % 100 == 0",
            "count() == 0",
            "world_size == 1",
        ] {
            assert!(!holds_on_one_rank(more), "{more}");
        }
    }
}
