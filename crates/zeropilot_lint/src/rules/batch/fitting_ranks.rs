use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::problem::BatchNumbers;
use zeropilot_config::python::PyValue;
use zeropilot_config::syntax::Value;

use super::{ACCUMULATION, MICRO, TRAIN, Whole};
use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use crate::world::WorldSource;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B12",
    name: "batch-fits-some-ranks",
    group: Group::Batch,
    severity: Severity::Note,
    summary: Text::new(
        "the batch sizes fit only certain numbers of ranks",
        "batch 大小只适合某些总卡数",
    ),
    wordings: &[&EXACTLY, &SOME],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}"#,
        )
        .unknown_ranks(),
        Example::new(
            r#"{"train_batch_size": 64, "gradient_accumulation_steps": 32}"#,
        )
        .unknown_ranks(),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}"#,
        )
        .ranks(32),
    ],
    is_no_op: false,
};

static EXACTLY: Wording = Wording {
    message: Text::new(
        "these batch sizes fit exactly {ranks} ranks: {train} = {micro} × {accumulation} × {ranks}",
        "这组 batch 大小只适合 {ranks} 个 rank：{train} = {micro} × {accumulation} × {ranks}",
    ),
    why: Text::new(
        "No number of ranks was given, so zeropilot assumed {ranks}. With any other number, DeepSpeed rejects the config.",
        "没有指定总卡数，因此 zeropilot 按 {ranks} 个 rank 判断。换成其他总卡数，DeepSpeed 会报错。",
    ),
    help: Text::new(
        "omit `train_batch_size`, and DeepSpeed derives it for any number of ranks",
        "去掉 `train_batch_size`，DeepSpeed 会按实际总卡数推算",
    ),
};

static SOME: Wording = Wording {
    message: Text::new(
        "these batch sizes fit only the following numbers of ranks: {numbers}",
        "这组 batch 大小只适合这些总卡数：{numbers}",
    ),
    why: Text::new(
        "`train_batch_size` {train} counts the samples of all ranks. No number of ranks was given; with any number not listed here, DeepSpeed rejects the config.",
        "`train_batch_size` {train} 是所有 rank 合计的样本数。没有指定总卡数；换成这里没有列出的总卡数，DeepSpeed 会报错。",
    ),
    help: Text::new(
        "to run on more ranks, increase `train_batch_size`, or set `train_micro_batch_size_per_gpu` instead",
        "要用更多 rank，就增大 `train_batch_size`，或改为设置 `train_micro_batch_size_per_gpu`",
    ),
};

/// From this number on, the file runs on a full node of GPUs and there is little to say.
const A_NODE: i128 = 8;

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.world.source == WorldSource::Given || subject.front_end != FrontEnd::DeepSpeed {
        return;
    }
    let Some(node) = subject.root.get(TRAIN) else { return };
    let number = |key| match subject.root.get(key).map(|node| &node.value) {
        Some(value @ (Value::Int(_) | Value::Float(_))) => Some(PyValue::from(value)),
        _ => None,
    };
    let numbers = BatchNumbers {
        train: number(TRAIN),
        micro: number(MICRO),
        accumulation: number(ACCUMULATION),
        world: PyValue::from(1),
    };
    let Some(Whole { train: Some(train), micro, accumulation, .. }) = Whole::of(&numbers) else {
        return;
    };
    if let (WorldSource::Inferred, Some(micro), Some(accumulation)) =
        (subject.world.source, micro, accumulation)
    {
        let diagnostic = Diagnostic::new(&RULE, &EXACTLY, TRAIN, node.span)
            .with("ranks", subject.world.size)
            .with("train", train)
            .with("micro", micro)
            .with("accumulation", accumulation);
        found.push(diagnostic);
        return;
    }
    let unit = match (micro, accumulation) {
        (Some(_), Some(_)) | (None, None) => return,
        (one, other) => one.or(other).unwrap_or(1),
    };
    if unit <= 0 || train <= 0 || train % unit != 0 || train / unit >= A_NODE {
        return;
    }
    let most = train / unit;
    let fitting = (1..=most).filter(|ranks| most % ranks == 0);
    let numbers = fitting.filter_map(|ranks| ranks.try_into().ok()).collect();
    found.push(
        Diagnostic::new(&RULE, &SOME, TRAIN, node.span)
            .with("train", train)
            .with("numbers", Argument::Numbers(numbers)),
    );
}
