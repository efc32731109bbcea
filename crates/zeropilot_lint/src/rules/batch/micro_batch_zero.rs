//! The fix keeps what the file would mean on one GPU; it changes the global batch.

use zeropilot_config::problem::{BatchNumbers, Problem};

use super::{Whole, not_positive, ranks, set_train};
use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B03",
    name: "micro-batch-zero",
    group: Group::Batch,
    severity: Severity::Error,
    summary: Text::new(
        "`train_batch_size` is too small for the number of ranks",
        "`train_batch_size` 太小，不够分给所有 rank",
    ),
    wordings: &[&MICRO_IS_ZERO, &STEPS_ARE_ZERO, &SMALLER_THAN_WORLD],
    sources: &["LIN-SHANG/InstructERC#16"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 64, "gradient_accumulation_steps": 32, "zero_optimization": {"stage": 3}}"#,
        )
        .ranks(4),
        Example::new(r#"{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4}"#).ranks(4),
        Example::new(r#"{"train_batch_size": 4}"#).ranks(8),
        Example::new(
            r#"{"train_batch_size": 5, "gradient_accumulation_steps": 8}"#,
        )
        .unknown_ranks(),
    ],
    good: &[
        Example::new(r#"{"train_batch_size": 128, "gradient_accumulation_steps": 32}"#).ranks(4),
    ],
    is_no_op: false,
};

static MICRO_IS_ZERO: Wording = Wording {
    message: Text::new(
        "`train_batch_size` {train} is below {ranks} × {accumulation} gradient accumulation steps = {unit}: micro-batch size is 0",
        "`train_batch_size` {train} 小于 {ranks} × 梯度累积 {accumulation} 步 = {unit}：每张卡的 micro batch 变成 0",
    ),
    why: Text::new(
        "`train_batch_size` is the global batch size: micro-batch size × gradient accumulation steps × ranks. From {train}, DeepSpeed derives a micro-batch size of {train} // {world} // {accumulation} = 0 and raises an error at startup.",
        "`train_batch_size` 是全局 batch，即所有 rank 在一次参数更新中用到的样本总数：micro batch × 梯度累积步数 × 总卡数。DeepSpeed 由 {train} 算出 micro batch = {train} // {world} // {accumulation} = 0，启动时报错。",
    ),
    help: Text::new(
        "for {micro} samples per GPU, set `train_batch_size` to {micro} × {accumulation} × {world} = {suggested}{lower}",
        "若想每卡 {micro} 条，应把 `train_batch_size` 设为 {micro} × {accumulation} × {world} = {suggested}{lower}",
    ),
};

static STEPS_ARE_ZERO: Wording = Wording {
    message: Text::new(
        "`train_batch_size` {train} is below {micro} per GPU × {ranks} = {unit}: gradient accumulation steps become 0",
        "`train_batch_size` {train} 小于每卡 {micro} × {ranks} = {unit}：梯度累积步数变成 0",
    ),
    why: Text::new(
        "`train_batch_size` is the global batch size and must hold at least one micro-batch per rank. Here, DeepSpeed derives 0 gradient accumulation steps and raises an error at startup.",
        "`train_batch_size` 是全局 batch，即所有 rank 在一次参数更新中用到的样本总数，至少要够每个 rank 一个 micro batch。DeepSpeed 算出梯度累积步数为 0，启动时报错。",
    ),
    help: Text::new(
        "set `train_batch_size` to {unit} or a multiple of it, or omit the key",
        "把 `train_batch_size` 设为 {unit} 或它的倍数，或者不写",
    ),
};

static SMALLER_THAN_WORLD: Wording = Wording {
    message: Text::new(
        "`train_batch_size` {train} is less than {ranks}: the micro-batch size becomes 0",
        "`train_batch_size` {train} 小于 {ranks}：每张卡的 micro batch 变成 0",
    ),
    why: Text::new(
        "`train_batch_size` is the global batch size, so each rank would get {train} // {world} = 0 samples. DeepSpeed raises an error at startup.",
        "`train_batch_size` 是全局 batch，即所有 rank 在一次参数更新中用到的样本总数，分到每个 rank 是 {train} // {world} = 0，DeepSpeed 启动时报错。",
    ),
    help: Text::new(
        "for {train} samples per GPU, set `train_batch_size` to {train} × {world} = {suggested}, or use `train_micro_batch_size_per_gpu`, which works for any number of ranks",
        "要让每张卡处理 {train} 个样本，把 `train_batch_size` 设为 {train} × {world} = {suggested}；或改用与总卡数无关的 `train_micro_batch_size_per_gpu`",
    ),
};

/// Words the refusal, or hands it on if a written number is zero or below.
pub(crate) fn explain(
    problem: &Problem,
    numbers: &BatchNumbers,
    subject: &Subject<'_>,
) -> Diagnostic {
    let Some(whole) = Whole::of(numbers) else { return not_positive::explain(problem, subject) };
    let written = [whole.train, whole.micro, whole.accumulation];
    if written.into_iter().flatten().any(|number| number <= 0) || whole.world <= 0 {
        return not_positive::explain(problem, subject);
    }
    match (whole.train, whole.micro, whole.accumulation) {
        (Some(train), None, Some(accumulation)) => {
            micro_is_zero(problem, whole, train, accumulation, subject)
        }
        (Some(train), Some(micro), None) => {
            let unit = micro * whole.world;
            found(&STEPS_ARE_ZERO, problem, whole, train, subject)
                .with("micro", micro)
                .with("unit", unit)
                .with("suggested", unit)
                .fix(set_train(subject, unit))
        }
        (Some(train), None, None) => {
            let suggested = train * whole.world;
            found(&SMALLER_THAN_WORLD, problem, whole, train, subject)
                .with("suggested", suggested)
                .fix(set_train(subject, suggested))
        }
        _ => not_positive::explain(problem, subject),
    }
}

fn found(
    wording: &'static Wording,
    problem: &Problem,
    whole: Whole,
    train: i128,
    subject: &Subject<'_>,
) -> Diagnostic {
    Diagnostic::new(&RULE, wording, problem.path.clone(), problem.span)
        .with("train", train)
        .with("world", whole.world)
        .with("ranks", ranks(whole.world, subject))
}

/// The author most likely counted the batch of one GPU: train = micro × accumulation.
fn micro_is_zero(
    problem: &Problem,
    whole: Whole,
    train: i128,
    accumulation: i128,
    subject: &Subject<'_>,
) -> Diagnostic {
    let micro = (train / accumulation).max(1);
    let suggested = micro * accumulation * whole.world;
    let most = train / whole.world;
    let lower = if most > 0 {
        Argument::Nested(
            Text::new(
                "; if {train} is meant for all ranks together, lower `gradient_accumulation_steps` to a divisor of {most}",
                "；如果 {train} 确实是所有卡合计，就把 `gradient_accumulation_steps` 降为 {most} 的约数",
            ),
            vec![("train", train.into()), ("most", most.into())],
        )
    } else {
        Argument::from("")
    };
    found(&MICRO_IS_ZERO, problem, whole, train, subject)
        .with("accumulation", accumulation)
        .with("unit", accumulation * whole.world)
        .with("micro", micro)
        .with("suggested", suggested)
        .with("lower", lower)
        .fix(set_train(subject, suggested))
}
