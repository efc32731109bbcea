use zeropilot_config::problem::{ElasticityProblem, Problem};

use super::ranks;
use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B14",
    name: "elastic-training",
    group: Group::Batch,
    severity: Severity::Error,
    summary: Text::new("settings that elastic training rejects", "弹性训练不接受的设置"),
    wordings: &[&BATCH_KEYS, &WORLD, &RANGE, &VERSION, &NO_SOLUTION],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "elasticity": {"enabled": true, "max_train_batch_size": 2000, "micro_batch_sizes": [2, 4, 6], "min_gpus": 1, "max_gpus": 10000, "min_time": 20, "version": 0.1}}"#,
        )
        .version("0.18.9"),
        Example::new(
            r#"{"elasticity": {"enabled": true, "max_train_batch_size": 4, "micro_batch_sizes": [2], "min_gpus": 1, "max_gpus": 2, "min_time": 20, "version": 0.1}}"#,
        )
        .ranks(64)
        .version("0.18.9"),
    ],
    good: &[
        Example::new(
            r#"{"elasticity": {"enabled": true, "max_train_batch_size": 2000, "micro_batch_sizes": [2, 4, 6], "min_gpus": 1, "max_gpus": 10000, "min_time": 20, "version": 0.1}}"#,
        )
        .version("0.18.9"),
    ],
    is_no_op: false,
};

static BATCH_KEYS: Wording = Wording {
    message: Text::new(
        "batch keys are set although `elasticity` is enabled",
        "启用了 `elasticity`，又写了 batch 相关的键",
    ),
    why: Text::new(
        "Elastic training computes the batch sizes itself, and DeepSpeed rejects a config that also sets them.",
        "弹性训练自己计算 batch 大小；配置里再写这些键，DeepSpeed 会报错。",
    ),
    help: Text::new(
        "remove the batch keys, or set `elasticity.ignore_non_elastic_batch_info` to true",
        "删掉 batch 相关的键，或把 `elasticity.ignore_non_elastic_batch_info` 设为 true",
    ),
};

static WORLD: Wording = Wording {
    message: Text::new(
        "elastic training cannot use {ranks}{possible}",
        "弹性训练不能用 {ranks}{possible}",
    ),
    why: Text::new(
        "The number of ranks must divide the batch size that DeepSpeed computes from `elasticity`.",
        "DeepSpeed 由 `elasticity` 算出 batch 大小，总卡数必须能整除它。",
    ),
    help: Text::new(
        "run with one of the allowed numbers of ranks, or change `micro_batch_sizes` and `max_train_batch_size`",
        "换成可用的总卡数，或调整 `micro_batch_sizes` 和 `max_train_batch_size`",
    ),
};

static RANGE: Wording = Wording {
    message: Text::new("a number in `{path}` is out of range", "`{path}` 中的数值超出范围"),
    why: Text::new(
        "Elastic training needs at least one GPU, at most `max_gpus` GPUs, and positive sizes.",
        "弹性训练要求卡数至少为 1、不超过 `max_gpus`，各个大小都为正数。",
    ),
    help: Text::new(
        "change the number in `{path}` to a value in range",
        "把 `{path}` 中的数值改到允许的范围内",
    ),
};

static VERSION: Wording = Wording {
    message: Text::new(
        "this `elasticity.version` is not supported",
        "不支持这个 `elasticity.version`",
    ),
    why: Text::new(
        "DeepSpeed supports versions 0.1 and 0.2 of elastic training; with model parallelism, only 0.2.",
        "DeepSpeed 只支持弹性训练 0.1 和 0.2 版；使用模型并行时只支持 0.2 版。",
    ),
    help: Text::new(
        "set `elasticity.version` to 0.2; without model parallelism, 0.1 also works",
        "把 `elasticity.version` 设为 0.2；不用模型并行时也可以设为 0.1",
    ),
};

static NO_SOLUTION: Wording = Wording {
    message: Text::new(
        "elastic training finds no batch size that satisfies `elasticity`",
        "弹性训练找不到满足配置段 `elasticity` 的 batch 大小",
    ),
    why: Text::new(
        "For the allowed numbers of GPUs, no batch size up to `max_train_batch_size` is a multiple of the `micro_batch_sizes`.",
        "在允许的卡数下，不超过 `max_train_batch_size` 的 batch 里没有 `micro_batch_sizes` 的倍数。",
    ),
    help: Text::new(
        "increase `max_train_batch_size`, or use smaller `micro_batch_sizes`",
        "增大 `max_train_batch_size`，或减小 `micro_batch_sizes`",
    ),
};

/// Words the refusal.
pub(crate) fn explain(
    problem: &Problem,
    elasticity: &ElasticityProblem,
    subject: &Subject<'_>,
) -> Diagnostic {
    let found = |wording| Diagnostic::new(&RULE, wording, problem.path.clone(), problem.span);
    match elasticity {
        ElasticityProblem::BatchKeysPresent => found(&BATCH_KEYS),
        ElasticityProblem::WorldSizeNotPossible { possible } => {
            let world = i128::try_from(subject.world.size).unwrap_or(i128::MAX);
            found(&WORLD).with("ranks", ranks(world, subject)).with("possible", listed(possible))
        }
        ElasticityProblem::OutOfRange => found(&RANGE),
        ElasticityProblem::Version => found(&VERSION),
        ElasticityProblem::NoSolution => found(&NO_SOLUTION),
    }
}

fn listed(possible: &[u64]) -> Argument {
    if possible.is_empty() {
        return Argument::from("");
    }
    let numbers = Argument::Numbers(possible.to_vec());
    Argument::Nested(
        Text::new(", only {possible}", "，可用的有 {possible}"),
        vec![("possible", numbers)],
    )
}
