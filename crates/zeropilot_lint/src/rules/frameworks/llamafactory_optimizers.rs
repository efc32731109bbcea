use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launch, Said};
use zeropilot_text::Text;

use super::{STAGE_2, STAGE_3, llamafactory, stage, switched_on};

pub(crate) static RULE: Rule = Rule {
    code: "I11",
    name: "llamafactory-optimizer",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "LLaMA-Factory rejects an optimizer under DeepSpeed",
        "LLaMA-Factory 在 DeepSpeed 下不支持某个优化器",
    ),
    wordings: &[&LOW_RANK, &BY_RATIO, &BY_LAYER],
    sources: &[],
    examples: &[
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nfinetuning_type: full\nbf16: true\ndeepspeed: ds.json\nuse_galore: true\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nfinetuning_type: full\nbf16: true\ndeepspeed: ds.json\nuse_badam: true\nbadam_mode: ratio\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nfinetuning_type: full\nbf16: true\ndeepspeed: ds.json\nuse_badam: true\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nfinetuning_type: full\nbf16: true\ndeepspeed: ds.json\nuse_badam: true\nbadam_mode: layer\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nfinetuning_type: full\nbf16: true\ndeepspeed: ds.json\nuse_galore: false\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static LOW_RANK: Wording = Wording {
    message: Text::new(
        "LLaMA-Factory rejects `{argument}` together with `deepspeed`",
        "LLaMA-Factory 不允许同时使用 `{argument}` 和 `deepspeed`",
    ),
    why: Text::new(
        "GaLore and APOLLO project whole gradient matrices, but ZeRO passes flat shards to the optimizer. LLaMA-Factory exits with `GaLore and APOLLO are incompatible with DeepSpeed yet.`",
        "GaLore 和 APOLLO 要对完整的梯度矩阵做投影，而 ZeRO 交给优化器的是展平的分片。LLaMA-Factory 会报错退出：`GaLore and APOLLO are incompatible with DeepSpeed yet.`",
    ),
    help: Text::new(
        "remove `deepspeed`, or turn `{argument}` off",
        "去掉 `deepspeed`，或关掉 `{argument}`",
    ),
};

static BY_RATIO: Wording = Wording {
    message: Text::new(
        "LLaMA-Factory rejects `badam_mode: ratio` in distributed training",
        "LLaMA-Factory 在分布式训练中不允许使用 `badam_mode: ratio`",
    ),
    why: Text::new(
        "DeepSpeed training is distributed, and ratio-wise BAdam does not support distributed training.",
        "使用 DeepSpeed 就是分布式训练，而按比例（ratio）的 BAdam 不支持分布式训练。",
    ),
    help: Text::new(
        "set `badam_mode: layer` and use ZeRO stage 3",
        "改为 `badam_mode: layer`，并使用 ZeRO stage 3",
    ),
};

static BY_LAYER: Wording = Wording {
    message: Text::new(
        "LLaMA-Factory supports layer-wise BAdam only with ZeRO stage 3, but the config has stage {stage}",
        "LLaMA-Factory 的逐层 BAdam 只支持 ZeRO stage 3，而配置里是 stage {stage}",
    ),
    why: Text::new(
        "LLaMA-Factory exits with `Layer-wise BAdam only supports DeepSpeed ZeRO-3 training.`",
        "LLaMA-Factory 会报错退出：`Layer-wise BAdam only supports DeepSpeed ZeRO-3 training.`",
    ),
    help: Text::new("set `zero_optimization.stage` to 3", "把 `zero_optimization.stage` 设为 3"),
};

fn badam(launch: &Launch, stage: Option<u8>) -> Option<(&'static Wording, &Said)> {
    let said = switched_on(launch, "use_badam")?;
    if let Some(mode) = launch.given.said("badam_mode").filter(|mode| mode.value == "ratio") {
        return Some((&BY_RATIO, mode));
    }
    stage.filter(|stage| *stage != 3).map(|_| (&BY_LAYER, said))
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (launch, report) in llamafactory(job) {
        let stage = stage(report);
        let low_rank = ["use_galore", "use_apollo"]
            .into_iter()
            .filter_map(|argument| Some((&LOW_RANK, switched_on(launch, argument)?)));
        for (wording, said) in low_rank.chain(badam(launch, stage)) {
            let diagnostic = Diagnostic::new(&RULE, wording, "", said.place.span)
                .with("argument", said.name.as_str())
                .with("stage", usize::from(stage.unwrap_or(0)));
            found.at(&said.place, diagnostic);
        }
    }
}
