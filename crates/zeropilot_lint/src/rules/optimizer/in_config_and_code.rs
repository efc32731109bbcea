use zeropilot_config::front_end::{
    AccelerateArguments, Arguments, FrontEnd, OptimizerInCode, Problem, SchedulerInCode,
};

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O03",
    name: "in-config-and-code",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new(
        "an optimizer or scheduler is in both the config and the code",
        "优化器或调度器在配置和代码里都有",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/accelerate#1909", "deepspeedai/DeepSpeed#5726", "deepspeedai/DeepSpeed#2361"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {}}}"#,
        )
        .read_by(FrontEnd::Accelerate)
        .arguments(torch_optimizer),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "scheduler": {"type": "WarmupLR", "params": {"warmup_type": "linear"}}}"#,
        )
        .read_by(FrontEnd::Accelerate)
        .arguments(torch_scheduler),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::Accelerate)
        .arguments(torch_optimizer),
    ],
    is_no_op: false,
};

fn torch_optimizer() -> Arguments {
    let accelerate = AccelerateArguments {
        optimizer: Some(OptimizerInCode::Torch { lr: None }),
        ..AccelerateArguments::default()
    };
    Arguments { accelerate, ..Arguments::default() }
}

fn torch_scheduler() -> Arguments {
    let accelerate = AccelerateArguments {
        scheduler: Some(SchedulerInCode::Torch),
        ..AccelerateArguments::default()
    };
    Arguments { accelerate, ..Arguments::default() }
}

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` is in both the config and the code",
        "`{path}` 在配置和代码里各有一份",
    ),
    why: Text::new(
        "accelerate rejects a PyTorch object in `prepare` if the config has this section.",
        "配置里有这个配置段，又把 PyTorch 对象传给 `prepare`，accelerate 会报错。",
    ),
    help: Text::new(
        "remove `{path}` from the config, or pass accelerate's dummy object in the code",
        "从配置里删掉 `{path}`，或在代码里改传 accelerate 的 Dummy 对象",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.as_str(), problem.span)
}
