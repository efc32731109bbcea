use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launch, Launcher};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L17",
    name: "fewer-devices-than-ranks",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new("more ranks on a node than visible GPUs", "节点上的 rank 数多于可见的卡数"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::job(
            "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 4 t.py --deepspeed $CONFIG",
        ),
        Example::job(
            "export CUDA_VISIBLE_DEVICES=0,1\nNPROC_PER_NODE=4 swift sft --model m --deepspeed zero2",
        ),
    ],
    good: &[
        Example::job(
            "CUDA_VISIBLE_DEVICES=0,1,2,3 torchrun --nproc_per_node 4 t.py --deepspeed $CONFIG",
        ),
        Example::job(
            "CUDA_VISIBLE_DEVICES=$GPUS torchrun --nproc_per_node 4 t.py --deepspeed $CONFIG",
        ),
        Example::job(
            "if [ -n \"$FEW\" ]; then export CUDA_VISIBLE_DEVICES=0,1; fi\ntorchrun --nproc_per_node 4 t.py --deepspeed $CONFIG",
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the launcher starts {ranks} ranks on a node with {devices} visible GPUs",
        "启动器在节点上启动 {ranks} 个 rank，而节点上可见的卡只有 {devices} 张",
    ),
    why: Text::new(
        "Each rank uses the GPU at its own index in `CUDA_VISIBLE_DEVICES`. Ranks without a GPU exit with `invalid device ordinal`, and the others wait for them.",
        "每个 rank 按自己的编号取 `CUDA_VISIBLE_DEVICES` 里对应的 GPU；分不到 GPU 的 rank 报 `invalid device ordinal` 退出，其余 rank 则一直等它们。",
    ),
    help: Text::new(
        "start {devices} ranks, or make {ranks} GPUs visible",
        "只启动 {devices} 个 rank，或让 {ranks} 张卡可见",
    ),
};

/// How many ranks a node gets, where that is written.
fn ranks_of_a_node(job: &JobView<'_>, launch: &Launch) -> Option<usize> {
    match launch.launcher {
        Launcher::Torchrun => launch.option("nproc_per_node")?.text.as_deref()?.parse().ok(),
        Launcher::Swift | Launcher::LlamaFactory => {
            job.job.variable(launch, "NPROC_PER_NODE")?.text.as_deref()?.parse().ok()
        }
        _ => None,
    }
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in &job.job.launches {
        let Some(ranks) = ranks_of_a_node(job, launch) else { continue };
        let Some(visible) = job.job.variable(launch, "CUDA_VISIBLE_DEVICES") else { continue };
        let Some(text) = visible.text.as_deref().map(str::trim) else { continue };
        // Set several times, which one holds depends on the way there.
        let times = job.job.exported.iter().filter(|set| set.name == "CUDA_VISIBLE_DEVICES");
        let is_settled = launch.variables.iter().any(|set| set.name == "CUDA_VISIBLE_DEVICES")
            || times.count() == 1;
        let is_cpu = text.is_empty() || job.job.variable(launch, "DS_ACCELERATOR").is_some();
        let devices = text.split(',').filter(|device| !device.trim().is_empty()).count();
        if is_settled && !is_cpu && devices < ranks {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", visible.span)
                .with("ranks", ranks)
                .with("devices", devices);
            found.here(diagnostic);
        }
    }
}
