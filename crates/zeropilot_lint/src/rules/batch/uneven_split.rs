use zeropilot_config::front_end::{AccelerateArguments, Arguments, FrontEnd, Problem};

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B13",
    name: "uneven-split",
    group: Group::Batch,
    severity: Severity::Error,
    summary: Text::new(
        "`split_batches` with a batch size that is not a multiple of the number of ranks",
        "`split_batches` 的 batch 不能被总卡数整除",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
    )
    .read_by(FrontEnd::Accelerate)
    .ranks(4)
    .arguments(split_loader)],
    good: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
    )
    .read_by(FrontEnd::Accelerate)
    .ranks(2)
    .arguments(split_loader)],
    is_no_op: false,
};

fn split_loader() -> Arguments {
    let accelerate = AccelerateArguments {
        dataloader_batch_sizes: Some(vec![Some(6)]),
        split_batches: Some(true),
        ..AccelerateArguments::default()
    };
    Arguments { accelerate, ..Arguments::default() }
}

static WORDING: Wording = Wording {
    message: Text::new(
        "a dataloader batch of {batch} cannot be split over {world} ranks",
        "dataloader 的 batch {batch} 无法平分给 {world} 个 rank",
    ),
    why: Text::new(
        "With `split_batches`, the loader's batch size covers all ranks together. accelerate rejects a batch size that is not a multiple of the number of ranks.",
        "启用 `split_batches` 后，loader 的 batch 是所有 rank 合计；不是总卡数的倍数时，accelerate 会报错。",
    ),
    help: Text::new(
        "set the dataloader's batch size to a multiple of {world}, or turn `split_batches` off",
        "把 dataloader 的 batch 改成 {world} 的倍数，或关闭 `split_batches`",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, batch_size: u64, world_size: u64) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.as_str(), problem.span)
        .with("batch", batch_size.to_string())
        .with("world", world_size.to_string())
}
