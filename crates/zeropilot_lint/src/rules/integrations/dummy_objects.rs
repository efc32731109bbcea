use zeropilot_config::front_end::{
    AccelerateArguments, Arguments, FrontEnd, OptimizerInCode, Problem, ProblemKind,
    SchedulerInCode,
};
use zeropilot_config::problem::KeyPath;
use zeropilot_config::syntax::Span;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "I09",
    name: "dummy-objects",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "accelerate's dummy objects do not match the config",
        "accelerate 的 Dummy 对象与配置不匹配",
    ),
    wordings: &[&WITHOUT_SECTION, &REAL_SCHEDULER],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::Accelerate)
        .arguments(dummy_optimizer),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {}}}"#,
        )
        .read_by(FrontEnd::Accelerate)
        .arguments(real_scheduler),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::Accelerate),
    ],
    is_no_op: false,
};

fn dummy_optimizer() -> Arguments {
    with(SchedulerInCode::Absent)
}

fn real_scheduler() -> Arguments {
    with(SchedulerInCode::Torch)
}

fn with(scheduler: SchedulerInCode) -> Arguments {
    let accelerate = AccelerateArguments {
        optimizer: Some(OptimizerInCode::Dummy { lr: None, weight_decay: None }),
        scheduler: Some(scheduler),
        ..AccelerateArguments::default()
    };
    Arguments { accelerate, ..Arguments::default() }
}

static WITHOUT_SECTION: Wording = Wording {
    message: Text::new(
        "the code passes `{dummy}`, but the config has no `{missing}` section",
        "代码传入了 `{dummy}`，但配置里没有配置段 `{missing}`",
    ),
    why: Text::new(
        "The dummy object is a placeholder for the object that the config describes. accelerate raises an error if the config does not describe one.",
        "Dummy 对象代替的是配置里描述的对象；配置里没有，accelerate 就会报错。",
    ),
    help: Text::new(
        "add the `{missing}` section, or pass a real object in the code",
        "补上配置段 `{missing}`，或在代码里传真正的对象",
    ),
};

static REAL_SCHEDULER: Wording = Wording {
    message: Text::new(
        "the code passes `DummyOptim` together with a PyTorch scheduler",
        "代码同时传入了 `DummyOptim` 和 PyTorch 的调度器",
    ),
    why: Text::new(
        "A PyTorch scheduler needs a PyTorch optimizer; with `DummyOptim`, accelerate raises an error.",
        "PyTorch 的调度器需要 PyTorch 的优化器；传入 `DummyOptim` 时，accelerate 会报错。",
    ),
    help: Text::new(
        "pass `DummyScheduler`, or a real optimizer",
        "改传 `DummyScheduler`，或传真正的优化器",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    let start = problem.span.start;
    let span = Span::new(start, problem.span.end.min(start + 1));
    let found = |wording| Diagnostic::new(&RULE, wording, KeyPath::default(), span);
    match problem.kind {
        ProblemKind::DummyOptimizerWithoutSection => {
            found(&WITHOUT_SECTION).with("dummy", "DummyOptim").with("missing", "optimizer")
        }
        ProblemKind::DummySchedulerWithoutSection => {
            found(&WITHOUT_SECTION).with("dummy", "DummyScheduler").with("missing", "scheduler")
        }
        _ => found(&REAL_SCHEDULER),
    }
}
