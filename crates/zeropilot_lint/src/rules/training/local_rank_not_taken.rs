use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, Launcher, PythonScript, Value};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L15",
    name: "local-rank-not-taken",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new(
        "the script does not accept `--local_rank`",
        "脚本不接受 `--local_rank` 参数",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --lr 1e-4").files(&[(
        "t.py",
        "parser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float)\nargs = parser.parse_args()\nengine, _, _, _ = deepspeed.initialize(model=model, config=config)\n",
    )])],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py --lr 1e-4").files(&[(
            "t.py",
            "parser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float)\nparser.add_argument('--local_rank', type=int, default=-1)\nargs = parser.parse_args()\nengine, _, _, _ = deepspeed.initialize(model=model, config=config)\n",
        )]),
        Example::job("deepspeed --num_gpus 2 --no_local_rank t.py --lr 1e-4").files(&[(
            "t.py",
            "parser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float)\nargs = parser.parse_args()\nengine, _, _, _ = deepspeed.initialize(model=model, config=config)\n",
        )]),
        Example::job("deepspeed --num_gpus 2 t.py --lr 1e-4").files(&[(
            "t.py",
            "parser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float)\nargs, _ = parser.parse_known_args()\nengine, _, _, _ = deepspeed.initialize(model=model, config=config)\n",
        )]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`deepspeed` passes `--local_rank`, which this script does not accept",
        "`deepspeed` 会传入 `--local_rank`，而这个脚本不接受",
    ),
    why: Text::new(
        "The launcher adds `--local_rank=N` to the arguments of every rank, and `argparse` exits with `unrecognized arguments`.",
        "启动器会给每个 rank 加上 `--local_rank=N`，`argparse` 无法识别，会报错退出：`unrecognized arguments`。",
    ),
    help: Text::new(
        "add `parser.add_argument(\"--local_rank\", type=int, default=-1)`, or start the script with `deepspeed --no_local_rank`",
        "加上 `parser.add_argument(\"--local_rank\", type=int, default=-1)`，或用 `deepspeed --no_local_rank` 启动",
    ),
};

/// Options that a call of `add_argument` takes, if they are written out.
fn flags(call: &Call) -> Option<Vec<&str>> {
    let written = call.positional.iter().map(|(value, _)| match value {
        Value::Literal(flag) => Some(flag.as_str()),
        _ => None,
    });
    written.collect::<Option<Vec<_>>>().filter(|flags| !flags.is_empty() && !call.has_more)
}

/// The one call of something, by what tells it from others.
fn only(script: &PythonScript, is_it: impl Fn(&Call) -> bool) -> Option<&Call> {
    let mut calls = script.calls.iter().filter(|call| is_it(call));
    calls.next().filter(|_| calls.next().is_none())
}

/// Where the options are read, if all of them are written in the script and `--local_rank` is not among them.
fn reading(script: &PythonScript) -> Option<&Call> {
    let parser = only(script, |call| call.name() == "ArgumentParser")?;
    let name = parser.bound_to.as_deref()?;
    let reading = only(script, |call| call.callee == format!("{name}.parse_args"))?;
    let is_plain = !parser.has_more
        && parser.keyword("parents").is_none()
        && reading.positional.is_empty()
        && reading.keywords.is_empty();
    let is_lent = |call: &Call| {
        call.argument_name() == Some(name) && call.callee != "deepspeed.add_config_arguments"
    };
    let mut added = script.calls.iter().filter(|call| call.name() == "add_argument");
    let is_without = added.all(|call| {
        flags(call).is_some_and(|flags| flags.iter().all(|flag| !flag.starts_with("--local")))
    });
    let others = ["parse_known_args", "HfArgumentParser", "add_subparsers"];
    let is_settled = is_plain
        && is_without
        && !others.iter().any(|name| script.calls(name))
        && !script.calls.iter().any(is_lent);
    is_settled.then_some(reading)
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let launch = training.launch;
        // Other ways to reach several nodes start the script without the option.
        let passes_it = launch.launcher == Launcher::DeepSpeed
            && !launch.has_option(&["no_local_rank", "launcher"]);
        if let Some(call) = reading(training.script).filter(|_| passes_it) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span);
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
