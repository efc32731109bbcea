use zeropilot_config::problem::{BatchNumbers, Problem};

use super::{TRAIN, Whole, ranks, set_train};
use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B01",
    name: "batch-product-mismatch",
    group: Group::Batch,
    severity: Severity::Error,
    summary: Text::new(
        "micro-batch size × gradient accumulation steps × ranks is not `train_batch_size`",
        "micro batch × 梯度累积步数 × 总卡数不等于 `train_batch_size`",
    ),
    wordings: &[&THREE, &REMAINDER, &OTHER],
    sources: &[
        "OpenRLHF/OpenRLHF#346",
        "deepspeedai/DeepSpeed#6914",
        "bigcode-project/starcoder#77",
        "CASIA-LMC-Lab/AnomalyGPT#19",
    ],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 256, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 18}"#,
        )
        .ranks(7),
        Example::new(r#"{"train_batch_size": 256, "gradient_accumulation_steps": 6}"#).ranks(8),
        Example::new(
            r#"{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2}"#,
        )
        .unknown_ranks(),
        Example::new(r#"{"train_batch_size": 8.5, "gradient_accumulation_steps": 1}"#),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 18}"#,
        )
        .ranks(7),
        Example::new(
            r#"{"train_batch_size": 252, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 18}"#,
        )
        .ranks(7),
    ],
    is_no_op: false,
};

static THREE: Wording = Wording {
    message: Text::new(
        "`train_batch_size` is {train}, but {micro} per GPU × {accumulation} gradient accumulation steps × {ranks} = {product}",
        "`train_batch_size` 写的是 {train}，但每卡 {micro} × 梯度累积 {accumulation} 步 × {ranks} = {product}",
    ),
    why: Text::new(
        "`train_batch_size` is the global batch size. Unless it is exactly micro-batch size × gradient accumulation steps × ranks, DeepSpeed raises an error at startup.",
        "`train_batch_size` 是全局 batch，必须等于 micro batch × 梯度累积步数 × 总卡数；只要不相等，DeepSpeed 启动时就报错。",
    ),
    help: Text::new(
        "set `train_batch_size` to {product}, or omit the key: DeepSpeed then computes it for any number of ranks",
        "把 `train_batch_size` 设为 {product}；或者不写，由 DeepSpeed 计算，这样换卡数也不用改文件",
    ),
};

static REMAINDER: Wording = Wording {
    message: Text::new(
        "`train_batch_size` {train} is not divisible by {factors} = {unit}",
        "`train_batch_size` {train} 不能被 {factors} = {unit} 整除",
    ),
    why: Text::new(
        "DeepSpeed derives the missing number by integer division. {remainder} of the {train} samples would be left over, so DeepSpeed raises an error at startup.",
        "DeepSpeed 用整除算出缺少的数；{train} 个样本会剩下 {remainder} 个，因此启动时报错。",
    ),
    help: Text::new(
        "set `train_batch_size` to a multiple of {unit}: {choices}",
        "把 `train_batch_size` 设为 {unit} 的倍数：{choices}",
    ),
};

static OTHER: Wording = Wording {
    message: Text::new(
        "the product of the batch sizes is wrong for {ranks}: {given}",
        "{ranks} 时，batch 相关各数的乘积不正确：{given}",
    ),
    why: Text::new(
        "DeepSpeed requires exactly `train_batch_size` = `train_micro_batch_size_per_gpu` × `gradient_accumulation_steps` × ranks.",
        "DeepSpeed 要求 `train_batch_size` = `train_micro_batch_size_per_gpu` × `gradient_accumulation_steps` × 总卡数，必须严格相等。",
    ),
    help: Text::new(
        "write `train_micro_batch_size_per_gpu` and `gradient_accumulation_steps` as integers, and omit `train_batch_size`: DeepSpeed then computes it",
        "把 `train_micro_batch_size_per_gpu` 和 `gradient_accumulation_steps` 写成整数，并去掉 `train_batch_size`，由 DeepSpeed 计算",
    ),
};

/// Words the refusal.
pub(crate) fn explain(
    problem: &Problem,
    numbers: &BatchNumbers,
    subject: &Subject<'_>,
) -> Diagnostic {
    let Some(whole) = Whole::of(numbers) else {
        return other(problem, subject, super::whole(&numbers.world).unwrap_or(1));
    };
    match (whole.train, whole.micro, whole.accumulation) {
        (Some(train), Some(micro), Some(accumulation)) => {
            let product = micro * accumulation * whole.world;
            Diagnostic::new(&RULE, &THREE, problem.path.clone(), problem.span)
                .with("train", train)
                .with("micro", micro)
                .with("accumulation", accumulation)
                .with("product", product)
                .with("suggested", product)
                .with("ranks", ranks(whole.world, subject))
                .fix(set_train(subject, product))
        }
        (Some(train), _, _) => remainder(problem, whole, train, subject),
        _ => other(problem, subject, whole.world),
    }
}

fn remainder(problem: &Problem, whole: Whole, train: i128, subject: &Subject<'_>) -> Diagnostic {
    let ranks = ranks(whole.world, subject);
    let (unit, factors) = match (whole.micro, whole.accumulation) {
        (Some(micro), _) => (
            micro * whole.world,
            Argument::Nested(
                Text::new("{micro} per GPU × {ranks}", "每卡 {micro} × {ranks}"),
                vec![("micro", micro.into()), ("ranks", ranks)],
            ),
        ),
        (_, Some(accumulation)) => (
            accumulation * whole.world,
            Argument::Nested(
                Text::new(
                    "{steps} gradient accumulation steps × {ranks}",
                    "梯度累积 {steps} 步 × {ranks}",
                ),
                vec![("steps", accumulation.into()), ("ranks", ranks)],
            ),
        ),
        _ => (whole.world, ranks),
    };
    if unit <= 0 {
        return other(problem, subject, whole.world);
    }
    let lower = train / unit * unit;
    let choices: Vec<u64> = [lower, lower + unit]
        .into_iter()
        .filter(|&choice| choice > 0)
        .filter_map(|choice| choice.try_into().ok())
        .collect();
    let suggested = match lower {
        lower if lower <= 0 => unit,
        lower if train - lower <= lower + unit - train => lower,
        lower => lower + unit,
    };
    Diagnostic::new(&RULE, &REMAINDER, problem.path.clone(), problem.span)
        .with("train", train)
        .with("unit", unit)
        .with("factors", factors)
        .with("remainder", train % unit)
        .with("choices", Argument::Numbers(choices))
        .with("suggested", suggested)
        .fix(set_train(subject, suggested))
}

fn other(problem: &Problem, subject: &Subject<'_>, world: i128) -> Diagnostic {
    let given = [TRAIN, super::MICRO, super::ACCUMULATION]
        .into_iter()
        .filter(|key| subject.root.get(key).is_some())
        .map(|key| format!("`{key}` {}", subject.written(&[key])));
    Diagnostic::new(&RULE, &OTHER, problem.path.clone(), problem.span)
        .with("ranks", ranks(world, subject))
        .with("given", given.collect::<Vec<_>>().join(", "))
}
