use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Launch;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F04",
    name: "nvme-path-dropped",
    group: Group::Offload,
    severity: Severity::Warning,
    summary: Text::new("accelerate drops the NVMe path", "accelerate 会丢掉 NVMe 路径"),
    wordings: &[&WORDING],
    sources: &["huggingface/accelerate#1463", "huggingface/accelerate#1484"],
    examples: &[
        Example::job("accelerate launch --config_file acc.yaml t.py").files(&[(
            "acc.yaml",
            "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: nvme\n  offload_optimizer_nvme_path: /local_nvme\n",
        )]),
        Example::job("accelerate launch --use_deepspeed --zero_stage 3 --offload_param_device nvme --offload_param_nvme_path /local_nvme t.py"),
    ],
    good: &[
        Example::job("accelerate launch --config_file acc.yaml t.py").files(&[(
            "acc.yaml",
            "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n",
        )]),
        Example::job("export ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_NVME_PATH=/local_nvme\naccelerate launch --use_deepspeed --zero_stage 3 --offload_param_device nvme t.py"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "accelerate does not pass on `offload_{part}_nvme_path`: DeepSpeed writes swap files to `./none`",
        "accelerate 不会传递 `offload_{part}_nvme_path`，DeepSpeed 会把卸载的文件写到 `./none`",
    ),
    why: Text::new(
        "The launcher passes the offload device to the ranks in an environment variable, but not the path, whose default is the string `none`. DeepSpeed uses `none` as a directory on the disk that the run was started from.",
        "启动器用环境变量把卸载位置传给各 rank，却没有为路径设置变量，路径的默认值是字符串 `none`。DeepSpeed 把 `none` 当作目录名，写到启动目录所在的磁盘上。",
    ),
    help: Text::new(
        "name a DeepSpeed config in `deepspeed_config_file` and write `nvme_path` there, or set `{variable}`",
        "用 `deepspeed_config_file` 指定 DeepSpeed 配置，在里面写 `nvme_path`；或设置环境变量 `{variable}`",
    ),
};

/// Whether accelerate makes the config itself, for stage 3, which alone swaps to a disk.
fn is_of_accelerate(launch: &Launch) -> bool {
    let in_code = launch.script.as_ref().is_some_and(|script| script.calls("DeepSpeedPlugin"));
    let stage = launch.accelerate_field("zero_stage");
    launch.by_accelerate
        && launch.given.config.is_none()
        && launch.given.dictionary.is_none()
        && !in_code
        && stage.is_some_and(|stage| stage.value == "3")
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in job.job.launches.iter().filter(|launch| is_of_accelerate(launch)) {
        for part in ["optimizer", "param"] {
            let device = launch.accelerate_field(&format!("offload_{part}_device"));
            let Some(device) = device.filter(|device| device.value == "nvme") else { continue };
            let upper = part.to_uppercase();
            let variable = format!("ACCELERATE_DEEPSPEED_OFFLOAD_{upper}_NVME_PATH");
            if job.job.variable(launch, &variable).is_some() {
                continue;
            }
            let path = launch.accelerate_field(&format!("offload_{part}_nvme_path"));
            let place = path.unwrap_or(device).place;
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", place.span)
                .with("part", part)
                .with("variable", variable);
            found.at(&place, diagnostic);
        }
    }
}
