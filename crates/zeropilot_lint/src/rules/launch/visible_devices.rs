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
        "the `deepspeed` launcher ignores `CUDA_VISIBLE_DEVICES`",
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
        "`deepspeed` ignores `CUDA_VISIBLE_DEVICES`, because one of its options selects the GPUs",
        "`deepspeed` 会忽略 `CUDA_VISIBLE_DEVICES`，因为它的选项已经指定了 GPU",
    ),
    why: Text::new(
        "The launcher converts the variable to `--include` only if no option such as `--num_gpus` is set. Otherwise, it prints one line and uses the first GPUs.",
        "只有没加 `--num_gpus` 之类的选项时，启动器才会把这个变量转成 `--include`；否则只打印一行提示，然后从第一张卡开始用。",
    ),
    help: Text::new(
        "replace the variable and the option with, for example, `--include localhost:2,3`",
        "去掉这个变量和选项，例如改用 `--include localhost:2,3`",
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
