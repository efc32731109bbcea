use zeropilot_config::front_end::{Arguments, FrontEnd, Problem, TrainerArguments};

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "I06",
    name: "auto-find-batch-size",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "`auto_find_batch_size` with ZeRO stage 3",
        "`auto_find_batch_size` 与 ZeRO stage 3 同用",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/transformers#29058"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(finding),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(finding),
    ],
    is_no_op: false,
};

fn finding() -> Arguments {
    let trainer =
        TrainerArguments { auto_find_batch_size: Some(true), ..TrainerArguments::default() };
    Arguments { trainer, ..Arguments::default() }
}

static WORDING: Wording = Wording {
    message: Text::new(
        "the HF Trainer does not support `auto_find_batch_size` with ZeRO stage 3",
        "HF Trainer 的 `auto_find_batch_size` 不支持 ZeRO stage 3",
    ),
    why: Text::new(
        "The HF Trainer cannot create the DeepSpeed engine a second time in stage 3 and raises an error at startup.",
        "stage 3 下，HF Trainer 无法重新创建 engine，启动时会报错。",
    ),
    help: Text::new(
        "remove `auto_find_batch_size` and set a fixed batch size, or use stage 1 or 2",
        "去掉 `auto_find_batch_size` 并固定 batch 大小，或改用 stage 1 或 2",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let stage = subject.node(["zero_optimization", "stage"]);
    let span = stage.map_or(problem.span, |node| node.span);
    Diagnostic::new(&RULE, &WORDING, "zero_optimization.stage", span)
}
