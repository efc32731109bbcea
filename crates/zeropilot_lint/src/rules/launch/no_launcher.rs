use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Launcher;
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
    good: &[Example::job("torchrun --nproc_per_node 4 train.py --deepspeed $CONFIG")],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`python` starts one process without telling it its rank",
        "直接用 `python` 启动：进程不知道自己的 rank",
    ),
    why: Text::new(
        "DeepSpeed looks for `RANK` and `WORLD_SIZE`, finds none and asks MPI. That fails without mpi4py; with it the run has one rank, however many GPUs there are.",
        "DeepSpeed 找不到 `RANK` 和 `WORLD_SIZE`，就去问 MPI：没装 mpi4py 会报错，装了则不管有几张卡都只有 1 个进程。",
    ),
    help: Text::new(
        "start it with `deepspeed`, `torchrun --nproc_per_node N` or `accelerate launch`",
        "改用 `deepspeed`、`torchrun --nproc_per_node N` 或 `accelerate launch` 启动",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in job.job.launches.iter().filter(|launch| launch.launcher == Launcher::Python) {
        // Something around the script may have set the ranks already.
        let sets_ranks =
            launch.variables.iter().chain(&job.job.exported).any(|set| set.name == "RANK");
        if !sets_ranks && !launch.is_repeated {
            found.here(Diagnostic::new(&RULE, &WORDING, "", launch.span()));
        }
    }
}
