use zeropilot_config::front_end::{AccelerateArguments, Arguments, FrontEnd, Problem, ProblemKind};

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B09",
    name: "no-dataloader",
    group: Group::Batch,
    severity: Severity::Error,
    summary: Text::new(
        "accelerate has no dataloader to read the micro-batch size from",
        "accelerate 没有收到 dataloader，无法读出 micro batch",
    ),
    wordings: &[&ABSENT, &WITHOUT_SIZE],
    sources: &["huggingface/peft#450", "jquesnelle/yarn#35", "huggingface/accelerate#676"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::Accelerate)
        .arguments(no_loader),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::Accelerate)
        .arguments(loader_without_size),
    ],
    good: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}"#,
    )
    .read_by(FrontEnd::Accelerate)
    .arguments(no_loader)],
    is_no_op: false,
};

fn no_loader() -> Arguments {
    with_loaders(Vec::new())
}

fn loader_without_size() -> Arguments {
    with_loaders(vec![None])
}

fn with_loaders(loaders: Vec<Option<u64>>) -> Arguments {
    let accelerate = AccelerateArguments {
        dataloader_batch_sizes: Some(loaders),
        ..AccelerateArguments::default()
    };
    Arguments { accelerate, ..Arguments::default() }
}

static ABSENT: Wording = Wording {
    message: Text::new(
        "`train_micro_batch_size_per_gpu` is `\"auto\"`, but `prepare` gets no dataloader",
        "`train_micro_batch_size_per_gpu` 是 `\"auto\"`，但没有把 dataloader 传给 `prepare`",
    ),
    why: Text::new(
        "accelerate reads the micro-batch size from the dataloaders in the same `prepare` call. Without one, it raises a `ValueError`.",
        "accelerate 从同一次 `prepare` 调用传入的 dataloader 里读 micro batch；没有就抛 `ValueError`。",
    ),
    help: Text::new(
        "set `train_micro_batch_size_per_gpu` to a number, or pass a dataloader to `prepare`",
        "把 `train_micro_batch_size_per_gpu` 设为数字，或者把 dataloader 一起传给 `prepare`",
    ),
};

static WITHOUT_SIZE: Wording = Wording {
    message: Text::new(
        "a dataloader passed to `prepare` has no `batch_size`",
        "传给 `prepare` 的 dataloader 没有 `batch_size`",
    ),
    why: Text::new(
        "accelerate reads the micro-batch size from `batch_size` and raises a `ValueError` if it is `None`. A loader with a batch sampler has no `batch_size`.",
        "accelerate 要从 `batch_size` 读出 micro batch；`batch_size` 为 `None` 时（例如由 batch sampler 构造的 loader）会抛 `ValueError`。",
    ),
    help: Text::new(
        "set `train_micro_batch_size_per_gpu` to a number",
        "把 `train_micro_batch_size_per_gpu` 设为数字",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    let wording = match problem.kind {
        ProblemKind::NoDataloader => &ABSENT,
        _ => &WITHOUT_SIZE,
    };
    Diagnostic::new(&RULE, wording, problem.path.as_str(), problem.span)
}
