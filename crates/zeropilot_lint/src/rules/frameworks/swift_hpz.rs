use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::report::Report;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launch, Launcher};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "I05",
    name: "swift-hpz",
    group: Group::Integrations,
    severity: Severity::Warning,
    summary: Text::new(
        "ms-swift's `--zero_hpz_partition_size` does not match the job",
        "ms-swift 的 `--zero_hpz_partition_size` 与训练不匹配",
    ),
    wordings: &[&STAGE, &RANKS],
    sources: &["modelscope/ms-swift#3697"],
    examples: &[
        Example::job(
            "NPROC_PER_NODE=8 swift sft --model m --deepspeed zero2 --zero_hpz_partition_size 8",
        ),
        Example::job(
            "NPROC_PER_NODE=8 swift sft --model m --deepspeed zero3 --zero_hpz_partition_size 3",
        ),
    ],
    good: &[
        Example::job(
            "NPROC_PER_NODE=8 swift sft --model m --deepspeed zero3 --zero_hpz_partition_size 8",
        ),
        Example::job(
            "NPROC_PER_NODE=$N swift sft --model m --deepspeed zero3 --zero_hpz_partition_size 3",
        ),
    ],
    is_no_op: false,
};

static STAGE: Wording = Wording {
    message: Text::new(
        "`--zero_hpz_partition_size` has no effect in ZeRO stage {stage}",
        "ZeRO stage {stage} 下 `--zero_hpz_partition_size` 不生效",
    ),
    why: Text::new(
        "This argument sets how many ranks share a second copy of the parameters, and only stage 3 partitions parameters. ms-swift writes it into the config without checking the stage.",
        "这个参数设置几个 rank 共用第二份模型参数，而只有 stage 3 才切分模型参数。ms-swift 不检查 stage，直接把它写进配置。",
    ),
    help: Text::new(
        "use `--deepspeed zero3`, or omit `--zero_hpz_partition_size`",
        "改用 `--deepspeed zero3`，或去掉 `--zero_hpz_partition_size`",
    ),
};

static RANKS: Wording = Wording {
    message: Text::new(
        "`--zero_hpz_partition_size {size}` does not divide {ranks} ranks",
        "`--zero_hpz_partition_size {size}` 不能整除 {ranks} 个 rank",
    ),
    why: Text::new(
        "DeepSpeed divides all ranks into groups of {size} and exits with an `AssertionError` if some ranks are left over.",
        "DeepSpeed 把所有 rank 按每组 {size} 个分组，分不尽就以 `AssertionError` 退出。",
    ),
    help: Text::new(
        "set `--zero_hpz_partition_size` to the number of GPUs per node",
        "把 `--zero_hpz_partition_size` 设为每个节点的卡数",
    ),
};

/// The stage of ms-swift's own configs, or of the one that is named.
fn stage(launch: &Launch, report: Option<&Report>) -> Option<u8> {
    if let Some(values) = report.and_then(Report::values) {
        return values.known_stage();
    }
    match launch.given.value("deepspeed")? {
        "zero0" => Some(0),
        "zero1" => Some(1),
        "zero2" | "zero2_offload" => Some(2),
        "zero3" | "zero3_offload" => Some(3),
        _ => None,
    }
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (launch, report) in job.launches().filter(|(one, _)| one.launcher == Launcher::Swift) {
        let Some(said) = launch.given.said("zero_hpz_partition_size") else { continue };
        let Some(size) = said.value.parse::<usize>().ok().filter(|size| *size > 1) else {
            continue;
        };
        let diagnostic = match (stage(launch, report), launch.world) {
            (Some(3), Some(ranks)) if size < ranks && !ranks.is_multiple_of(size) => {
                Diagnostic::new(&RULE, &RANKS, "", said.place.span)
                    .severity(Severity::Error)
                    .with("size", size)
                    .with("ranks", ranks)
            }
            (Some(stage), _) if stage != 3 => Diagnostic::new(&RULE, &STAGE, "", said.place.span)
                .with("stage", usize::from(stage)),
            _ => continue,
        };
        found.at(&said.place, diagnostic);
    }
}
