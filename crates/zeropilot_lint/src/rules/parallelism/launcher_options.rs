use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::ulysses;
use zeropilot_text::Text;

use super::STAGE_3;

pub(crate) static RULE: Rule = Rule {
    code: "L21",
    name: "parallelism-options-dropped",
    group: Group::Launch,
    severity: Severity::Warning,
    summary: Text::new(
        "accelerate does not pass `--parallelism_config_*` to DeepSpeed jobs",
        "accelerate 不会把 `--parallelism_config_*` 传给 DeepSpeed 作业",
    ),
    wordings: &[&DROPPED, &REFUSED],
    sources: &[
        "huggingface/accelerate src/accelerate/commands/launch.py, _validate_launch_command",
        "huggingface/accelerate src/accelerate/utils/launch.py, prepare_deepspeed_cmd_env",
    ],
    examples: &[
        Example::job("accelerate launch --use_deepspeed --deepspeed_config_file ds.json --parallelism_config_sp_size 2 --num_processes 2 t.py")
            .files(&[("t.py", "from accelerate import Accelerator\n"), ("ds.json", STAGE_3)]),
        Example::job("accelerate launch --use_deepspeed --deepspeed_config_file ds.json --use_parallelism_config --parallelism_config_sp_size 2 --num_processes 2 t.py")
            .files(&[("t.py", "from accelerate import Accelerator\n"), ("ds.json", STAGE_3)]),
    ],
    good: &[Example::job("accelerate launch --config_file acc.yaml --parallelism_config_sp_size 2 t.py").files(&[
        ("t.py", "from accelerate import Accelerator\n"),
        ("acc.yaml", super::super::training::sequence_parallel_gradients::ACCELERATE),
        ("ds.json", STAGE_3),
    ])],
    is_no_op: false,
};

static DROPPED: Wording = Wording {
    message: Text::new(
        "`--{option}` has no effect: accelerate does not pass it to the ranks",
        "`--{option}` 不生效：accelerate 不会把它传给各个 rank",
    ),
    why: Text::new(
        "accelerate passes these options on only if its YAML file has a `parallelism_config` section and `distributed_type: DEEPSPEED`, and the command omits `--use_deepspeed`. Otherwise, the run starts, but every rank processes its own full sequence.",
        "只有 accelerate 的 YAML 里有 `parallelism_config` 配置段并写着 `distributed_type: DEEPSPEED`，而且命令行没有 `--use_deepspeed` 时，accelerate 才会传递这些选项。否则训练照样启动，但每个 rank 仍然各自处理完整的序列。",
    ),
    help: Text::new(
        "add a `parallelism_config` section to accelerate's YAML file, or pass `ParallelismConfig(sp_size=…)` in the script",
        "把 `parallelism_config` 配置段写进 accelerate 的 YAML，或在脚本里传入 `ParallelismConfig(sp_size=…)`",
    ),
};

static REFUSED: Wording = Wording {
    message: Text::new(
        "accelerate rejects `--use_parallelism_config` without FSDP",
        "没有使用 FSDP 时，accelerate 会拒绝 `--use_parallelism_config`",
    ),
    why: Text::new(
        "The launcher exits with a `ValueError` before training starts.",
        "启动器在启动训练之前就以 `ValueError` 退出。",
    ),
    help: DROPPED.help,
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in &job.job.launches {
        let dropped = ulysses::dropped_options(launch);
        if let Some(word) = launch.option("use_parallelism_config").filter(|_| {
            launch.launcher == zeropilot_job::Launcher::Accelerate
                && !launch.has_option(&["use_fsdp"])
        }) {
            let told = Diagnostic::new(&RULE, &REFUSED, "", word.span);
            found.here(told.severity(Severity::Error));
            continue;
        }
        for name in dropped {
            if let Some(word) = launch.option(name).filter(|word| word.text.as_deref() != Some("1"))
            {
                let told = Diagnostic::new(&RULE, &DROPPED, "", word.span).with("option", name);
                found.here(told);
            }
        }
    }
}
