use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

use super::{STAGE_2, STAGE_3, llamafactory, stage, switched_on};

pub(crate) static RULE: Rule = Rule {
    code: "I04",
    name: "llamafactory-stage-3",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "LLaMA-Factory rejects an argument with ZeRO stage 3",
        "LLaMA-Factory 在 ZeRO stage 3 下不支持某个参数",
    ),
    wordings: &[&WORDING],
    sources: &["hiyouga/LlamaFactory#199", "hiyouga/LlamaFactory#3949"],
    examples: &[
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nbf16: true\ndeepspeed: ds.json\npredict_with_generate: true\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml pure_bf16=true").files(&[
            ("x.yaml", "stage: sft\nbf16: true\ndeepspeed: ds.json\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    good: &[
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nbf16: true\ndeepspeed: ds.json\npredict_with_generate: true\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml predict_with_generate=false")
            .files(&[
                (
                    "x.yaml",
                    "stage: sft\nbf16: true\ndeepspeed: ds.json\npredict_with_generate: true\n",
                ),
                ("ds.json", STAGE_3),
            ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "LLaMA-Factory rejects `{argument}` with ZeRO stage 3",
        "LLaMA-Factory 在 ZeRO stage 3 下不允许使用 `{argument}`",
    ),
    why: Text::new(
        "{reason}. LLaMA-Factory exits before it loads anything.",
        "{reason}。LLaMA-Factory 在加载任何内容之前就会退出。",
    ),
    help: Text::new(
        "turn `{argument}` off, or use a stage-2 config",
        "关掉 `{argument}`，或换成 stage 2 的配置",
    ),
};

/// What is refused, and why.
const REFUSED: [(&str, Text); 5] = [
    (
        "predict_with_generate",
        Text::new(
            "Ranks that generate texts of different lengths would wait for each other forever",
            "各 rank 生成的文本长度不同，会一直互相等待",
        ),
    ),
    (
        "pissa_init",
        Text::new(
            "PiSSA decomposes whole matrices, which no rank holds under stage 3; run `scripts/pissa_init.py` before training",
            "PiSSA 要对完整的矩阵做分解，而 stage 3 下没有哪个 rank 有完整的矩阵；应事先用 `scripts/pissa_init.py` 处理",
        ),
    ),
    (
        "pure_bf16",
        Text::new(
            "Training without fp32 master weights does not work with partitioned parameters",
            "不保留 fp32 主权重的训练方式与参数切分不兼容",
        ),
    ),
    (
        "use_unsloth",
        Text::new(
            "Unsloth has its own code to load and run models, which does not support partitioned parameters",
            "Unsloth 用自己的代码加载和运行模型，不支持切分后的参数",
        ),
    ),
    (
        "use_kt",
        Text::new(
            "KTransformers places the weights itself, so DeepSpeed cannot partition them",
            "KTransformers 自行决定权重放在哪里，DeepSpeed 无法再切分",
        ),
    ),
];

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (launch, _) in llamafactory(job).filter(|(_, report)| stage(*report) == Some(3)) {
        for (argument, reason) in REFUSED {
            if let Some(said) = switched_on(launch, argument) {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", said.place.span)
                    .with("argument", argument)
                    .with("reason", reason);
                found.at(&said.place, diagnostic);
            }
        }
    }
}
