use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Launcher;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L02",
    name: "visible-devices-ignored",
    group: Group::Launch,
    severity: Severity::Warning,
    summary: Text::new(
        "`CUDA_VISIBLE_DEVICES` is ignored by the `deepspeed` launcher",
        "`deepspeed` 启动器会忽略 `CUDA_VISIBLE_DEVICES`",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed#662",
        "deepspeedai/DeepSpeed#5818",
        "deepspeedai/DeepSpeed#4248",
    ],
    examples: &[Example::job("CUDA_VISIBLE_DEVICES=2,3 deepspeed --num_gpus 2 train.py")],
    good: &[
        Example::job("CUDA_VISIBLE_DEVICES=2,3 deepspeed train.py"),
        Example::job(
            "CUDA_VISIBLE_DEVICES=2,3 torchrun --nproc_per_node 2 train.py --deepspeed $CONFIG",
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`CUDA_VISIBLE_DEVICES` is ignored, because an option of `deepspeed` names the GPUs",
        "`CUDA_VISIBLE_DEVICES` 会被忽略，因为已经用参数告诉 `deepspeed` 用哪些 GPU",
    ),
    why: Text::new(
        "the launcher turns the variable into `--include` only if no option such as `--num_gpus` is given; otherwise it prints one line and takes the first GPUs.",
        "只有没给 `--num_gpus` 之类的参数时，启动器才会把这个变量转成 `--include`；否则只打印一行提示，然后从第一张卡开始用。",
    ),
    help: Text::new(
        "write `--include localhost:2,3` instead of both",
        "两者都不要，改写成 `--include localhost:2,3`",
    ),
};

/// The launcher's filters.
const FILTERS: [&str; 5] = ["num_gpus", "include", "i", "exclude", "e"];

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in job.job.launches.iter().filter(|launch| launch.launcher == Launcher::DeepSpeed) {
        let mut variables = launch.variables.iter().chain(&job.job.exported);
        let visible = variables.find(|set| set.name == "CUDA_VISIBLE_DEVICES");
        if let Some(visible) = visible.filter(|_| launch.has_option(&FILTERS)) {
            found.here(Diagnostic::new(&RULE, &WORDING, "", visible.value.span));
        }
    }
}
