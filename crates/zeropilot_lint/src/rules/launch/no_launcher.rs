use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, Launcher, PythonScript, Value};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L01",
    name: "no-launcher",
    group: Group::Launch,
    severity: Severity::Warning,
    summary: Text::new("DeepSpeed without a launcher", "没有用启动器启动 DeepSpeed"),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed#8444",
        "axolotl-ai-cloud/axolotl#1211",
        "InternLM/xtuner#592",
    ],
    examples: &[Example::job("python train.py --deepspeed $CONFIG")],
    good: &[
        Example::job("torchrun --nproc_per_node 4 train.py --deepspeed $CONFIG"),
        Example::job("python train.py --deepspeed $CONFIG").files(&[(
            "train.py",
            "import os\nos.environ['RANK'] = '0'\nos.environ['WORLD_SIZE'] = '1'\nargs = TrainingArguments(output_dir='out')\n",
        )]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`python` starts a single process that has no rank",
        "直接用 `python` 启动：只有一个进程，而且没有 rank",
    ),
    why: Text::new(
        "DeepSpeed finds neither `RANK` nor `WORLD_SIZE` and falls back to MPI. Without mpi4py, the run fails; with mpi4py, it has only one rank, regardless of the number of GPUs.",
        "DeepSpeed 找不到 `RANK` 和 `WORLD_SIZE`，就改用 MPI：没装 mpi4py 会报错，装了则不管有几张卡都只有 1 个 rank。",
    ),
    help: Text::new(
        "start the script with `deepspeed`, `torchrun --nproc_per_node N` or `accelerate launch`",
        "改用 `deepspeed`、`torchrun --nproc_per_node N` 或 `accelerate launch` 启动",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in job.job.launches.iter().filter(|launch| launch.launcher == Launcher::Python) {
        // Something around the script may have set the ranks already.
        let sets_ranks =
            launch.variables.iter().chain(&job.job.exported).any(|set| set.name == "RANK");
        let is_set_inside = launch.script.as_ref().is_some_and(sets_its_rank);
        // A script that opens the config itself need not start DeepSpeed at all.
        let is_hidden = launch.given.is_reader_hidden;
        if !sets_ranks && !is_set_inside && !launch.is_repeated && !is_hidden {
            found.here(Diagnostic::new(&RULE, &WORDING, "", launch.span()));
        }
    }
}

/// Whether a training script says its rank itself, as notebooks do.
fn sets_its_rank(script: &PythonScript) -> bool {
    let is_rank = |value: &Value| *value == Value::Literal("RANK".to_owned());
    let is_told = |call: &Call| match call.name() {
        "setdefault" | "putenv" => call.positional.first().is_some_and(|(name, _)| is_rank(name)),
        "init_distributed" | "init_process_group" => {
            call.keyword("rank").is_some_and(|(value, _)| *value != Value::None)
        }
        _ => false,
    };
    script.members.iter().any(|member| member.name == "RANK") || script.calls.iter().any(is_told)
}
