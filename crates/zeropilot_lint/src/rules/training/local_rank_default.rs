use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launcher, Value};
use zeropilot_text::Text;

use super::STAGE_2;

pub(crate) static RULE: Rule = Rule {
    code: "L11",
    name: "local-rank-default",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new(
        "every rank uses the default of `--local_rank`",
        "所有 rank 都用了 `--local_rank` 的默认值",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#3262", "yiqiao-yin/deepspeed-course#18"],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py --deepspeed_config ds.json").files(&[
        ("t.py", "parser = argparse.ArgumentParser()\nparser.add_argument('--local_rank', type=int, default=0)\nparser = deepspeed.add_config_arguments(parser)\nargs = parser.parse_args()\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\n"),
        ("ds.json", STAGE_2),
    ])],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "parser = argparse.ArgumentParser()\nparser.add_argument('--local_rank', type=int, default=-1)\nparser = deepspeed.add_config_arguments(parser)\nargs = parser.parse_args()\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "parser = argparse.ArgumentParser()\nparser.add_argument('--local_rank', type=int, default=0)\nparser = deepspeed.add_config_arguments(parser)\nargs = parser.parse_args()\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py --deepspeed_config ds.json").files(&[
            ("t.py", "parser = argparse.ArgumentParser()\nparser.add_argument('--local_rank', type=int, default=0)\nparser = deepspeed.add_config_arguments(parser)\nargs = parser.parse_args()\nargs.local_rank = int(os.environ['LOCAL_RANK'])\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{launcher}` does not pass `--local_rank`, so every rank uses the default {default}",
        "`{launcher}` 不会传 `--local_rank`，所有 rank 都会用默认值 {default}",
    ),
    why: Text::new(
        "The launcher sets the local rank in the environment variable `LOCAL_RANK`. DeepSpeed compares this variable with `--local_rank` and exits with `Mismatch in local rank setting` on all ranks except one.",
        "启动器通过环境变量 `LOCAL_RANK` 设置节点内的 rank。DeepSpeed 会把它与 `--local_rank` 的值比较，除一个 rank 外，其余 rank 都会报错退出：`Mismatch in local rank setting`。",
    ),
    help: Text::new(
        "change the default to -1, or to `int(os.environ[\"LOCAL_RANK\"])`",
        "把默认值改成 -1，或 `int(os.environ[\"LOCAL_RANK\"])`",
    ),
};

/// Whether only the variable tells ranks apart. `torch.distributed.launch` still passes the option.
fn only_sets_a_variable(training: &Training<'_>) -> bool {
    let launch = training.launch;
    let says = |part: &str| {
        launch.words.iter().any(|word| word.text.as_deref().is_none_or(|text| text.contains(part)))
    };
    matches!(launch.launcher, Launcher::Torchrun | Launcher::Accelerate)
        && !says("torch.distributed.launch")
        && !says("local_rank")
        && !says("local-rank")
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(only_sets_a_variable) {
        let script = training.script;
        let Some((initialize, _)) = script.engine() else { continue };
        let is_handed_on = match initialize.argument(0, "args") {
            Some((Value::Call(callee), _)) => callee.contains("arg"),
            _ => false,
        };
        let is_changed = script.sets("args", "local_rank") || script.calls("set_defaults");
        let Some((Value::Literal(default), span)) = script.option_default("local_rank") else {
            continue;
        };
        let is_a_rank = default.parse::<u32>().is_ok();
        if is_handed_on && !is_changed && is_a_rank && training.launch.world != Some(1) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", span)
                .with("launcher", training.launch.launcher.name())
                .with("default", default.as_str());
            found.at(&training.place(span), diagnostic);
        }
    }
}
