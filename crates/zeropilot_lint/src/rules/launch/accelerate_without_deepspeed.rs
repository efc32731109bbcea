use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launch, Launcher, Place};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L18",
    name: "accelerate-without-deepspeed",
    group: Group::Launch,
    severity: Severity::Warning,
    summary: Text::new(
        "accelerate is set to DeepSpeed and to another training method",
        "accelerate 同时指定了 DeepSpeed 和别的训练方式",
    ),
    wordings: &[&UNREAD, &REFUSED],
    sources: &[],
    examples: &[
        Example::job("accelerate launch --config_file acc.yaml --deepspeed_config_file ds.json t.py")
            .files(&[("acc.yaml", "distributed_type: MULTI_GPU\nnum_processes: 2\n"), CONFIG]),
        Example::job("accelerate launch --multi_gpu --num_processes 2 --deepspeed_config_file ds.json t.py")
            .files(&[CONFIG]),
        Example::job("accelerate launch --use_deepspeed --multi_gpu --num_processes 2 --deepspeed_config_file ds.json t.py")
            .files(&[CONFIG]),
    ],
    good: &[
        Example::job("accelerate launch --config_file acc.yaml --deepspeed_config_file ds.json t.py")
            .files(&[("acc.yaml", "distributed_type: DEEPSPEED\nnum_processes: 2\n"), CONFIG]),
        Example::job("accelerate launch --use_deepspeed --num_processes 2 --deepspeed_config_file ds.json t.py")
            .files(&[CONFIG]),
    ],
    is_no_op: false,
};

const CONFIG: (&str, &str) = (
    "ds.json",
    r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#,
);

static UNREAD: Wording = Wording {
    message: Text::new(
        "accelerate does not read `{config}`: {cause} selects another training method",
        "accelerate 不会读取 `{config}`：{cause} 指定了别的训练方式",
    ),
    why: Text::new(
        "accelerate reads a DeepSpeed config only with `--use_deepspeed` or `distributed_type: DEEPSPEED`. Without either setting, the run starts, but each rank holds a full copy of the model and optimizer.",
        "只有加了 `--use_deepspeed` 或写了 `distributed_type: DEEPSPEED`，accelerate 才会读取 DeepSpeed 配置。否则训练照样启动，但每个 rank 上都有一份完整的模型和优化器。",
    ),
    help: Text::new(
        "add `--use_deepspeed`, or `distributed_type: DEEPSPEED` in accelerate's config",
        "加上 `--use_deepspeed`，或在 accelerate 的配置里写 `distributed_type: DEEPSPEED`",
    ),
};

static REFUSED: Wording = Wording {
    message: Text::new(
        "accelerate rejects `--use_deepspeed` together with `{option}`",
        "accelerate 不允许同时使用 `--use_deepspeed` 和 `{option}`",
    ),
    why: Text::new(
        "Each of these options selects a distributed training method, and accelerate exits with an error if more than one is set.",
        "这些选项各自指定一种分布式训练方式；同时给出多个时，accelerate 会报错退出。",
    ),
    help: Text::new("keep only `--use_deepspeed`", "只保留 `--use_deepspeed`"),
};

/// What asks for something other than DeepSpeed.
fn other_way(launch: &Launch) -> Option<String> {
    let options = ["multi_gpu", "use_fsdp", "use_megatron_lm", "tpu"];
    if let Some(option) = options.iter().find(|option| launch.has_option(&[option])) {
        return Some(format!("`--{option}`"));
    }
    let kind = &launch.distributed_type.as_ref()?.value;
    (kind != "DEEPSPEED").then(|| format!("`distributed_type: {kind}`"))
}

/// The config that accelerate is told, if nobody else brings one.
fn told(launch: &Launch) -> Option<(&str, &Place)> {
    let config = launch.given.config.as_ref()?;
    let own = launch.option("config_file").and_then(|word| word.text.as_deref());
    let is_option = launch
        .option("deepspeed_config_file")
        .is_some_and(|word| config.place == Place::here(word.span));
    let is_in_yaml = own.is_some() && config.place.file.as_deref() == own;
    Some((config.text.as_deref()?, &config.place)).filter(|_| is_option || is_in_yaml)
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in job.job.launches.iter().filter(|one| one.launcher == Launcher::Accelerate) {
        if launch.has_option(&["use_deepspeed"]) {
            let options = ["multi_gpu", "cpu", "tpu", "use_fsdp"];
            let other = options.iter().find_map(|name| Some((name, launch.option(name)?)));
            if let Some((name, word)) = other {
                let diagnostic = Diagnostic::new(&RULE, &REFUSED, "", word.span)
                    .severity(Severity::Error)
                    .with("option", format!("--{name}"));
                found.here(diagnostic);
            }
            continue;
        }
        if launch.script.as_ref().is_some_and(|script| script.calls("DeepSpeedPlugin")) {
            continue;
        }
        if let (Some(cause), Some((config, place))) = (other_way(launch), told(launch)) {
            let diagnostic = Diagnostic::new(&RULE, &UNREAD, "", place.span)
                .with("config", config)
                .with("cause", cause);
            found.at(place, diagnostic);
        }
    }
}
