use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Files, Launch, Launcher, Word, hostfile_entries};
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
    wordings: &[&WORDING, &CHOSEN],
    sources: &[
        "deepspeedai/DeepSpeed#662",
        "deepspeedai/DeepSpeed#5818",
        "deepspeedai/DeepSpeed#4248",
    ],
    examples: &[
        Example::job("CUDA_VISIBLE_DEVICES=2,3 deepspeed --num_gpus 2 train.py"),
        Example::job("CUDA_VISIBLE_DEVICES=2,3 deepspeed --include localhost:0,1 train.py"),
    ],
    good: &[
        Example::job("CUDA_VISIBLE_DEVICES=2,3 deepspeed train.py"),
        Example::job("CUDA_VISIBLE_DEVICES=2,3 deepspeed --include localhost:3 train.py"),
        Example::job("CUDA_VISIBLE_DEVICES=2,3 deepspeed --hostfile hosts --num_gpus 2 train.py")
            .files(&[("hosts", "worker-1 slots=4\nworker-2 slots=4\n")]),
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

static CHOSEN: Wording = Wording {
    message: Text::new(
        "`deepspeed` ignores `CUDA_VISIBLE_DEVICES`, because `{option}` selects the GPUs",
        "`deepspeed` 会忽略 `CUDA_VISIBLE_DEVICES`，因为 `{option}` 已经指定了 GPU",
    ),
    why: Text::new(
        "The launcher deletes the variable, so the numbers in `{option}` count all GPUs of the machine.",
        "启动器会删掉这个变量，`{option}` 里的编号按机器上全部的 GPU 计算。",
    ),
    help: Text::new(
        "remove the variable, and check the numbers in `{option}`",
        "去掉这个变量，并核对 `{option}` 里的编号",
    ),
};

/// Options that name the GPUs.
const NAMED: [&str; 4] = ["include", "i", "exclude", "e"];

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in job.job.launches.iter().filter(|launch| launch.launcher == Launcher::DeepSpeed) {
        let mut variables = launch.variables.iter().chain(&job.job.exported);
        let visible = variables.find(|set| set.name == "CUDA_VISIBLE_DEVICES");
        let Some(visible) = visible.filter(|_| !has_hosts(launch, job.files)) else { continue };
        let named = NAMED.iter().find_map(|name| Some((*name, launch.option(name)?)));
        let diagnostic = |wording| Diagnostic::new(&RULE, wording, "", visible.value.span);
        if let Some((name, word)) = named {
            let is_same = !name.starts_with('e') && is_among(word, &visible.value);
            let dashes = if name.len() == 1 { "-" } else { "--" };
            if !is_same {
                found.here(diagnostic(&CHOSEN).with("option", format!("{dashes}{name}")));
            }
        } else if launch.has_option(&["num_gpus"]) {
            found.here(diagnostic(&WORDING));
        }
    }
}

/// Whether the launcher has hosts to start on: it then looks at the variable in no case.
fn has_hosts(launch: &Launch, files: Files<'_>) -> bool {
    let named = launch.option("hostfile").or_else(|| launch.option("H"));
    named.is_some_and(|word| match word.text.as_deref() {
        Some(name) => files(&launch.path(name))
            .is_some_and(|text| hostfile_entries(&text).iter().any(|entry| entry.host.is_some())),
        None => true,
    })
}

/// Whether all GPUs that `--include` names are among the visible ones: the launcher then uses what both say.
fn is_among(include: &Word, visible: &Word) -> bool {
    let (Some(include), Some(visible)) = (include.text.as_deref(), visible.text.as_deref()) else {
        return false;
    };
    let visible: Vec<&str> = visible.split(',').map(str::trim).collect();
    include.split('@').all(|host| match host.split_once(':') {
        Some((_, slots)) => slots.split(',').all(|slot| visible.contains(&slot.trim())),
        None => false,
    })
}
