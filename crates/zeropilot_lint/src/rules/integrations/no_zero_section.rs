//! The autotuner writes the section into every experiment, so with `autotuning` enabled the finding is
//! a warning: the file is refused only without `--autotuning`.

use zeropilot_config::front_end::{FrontEnd, Problem};
use zeropilot_config::syntax::Span;

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::insert_members;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::keys::autotuning_left_on::started_by_the_autotuner;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "I02",
    name: "no-zero-section",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "the framework needs a `zero_optimization` section",
        "缺少训练框架要求的 `zero_optimization` 配置段",
    ),
    wordings: &[&WORDING, &AUTOTUNER],
    sources: &["CarperAI/trlx#316"],
    examples: &[
        Example::new(r#"{"train_micro_batch_size_per_gpu": "auto"}"#).read_by(FrontEnd::HfTrainer),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "autotuning": {"enabled": true}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(started_by_the_autotuner),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
        Example::new(r#"{"train_micro_batch_size_per_gpu": 1, "autotuning": {"enabled": true}}"#)
            .script(started_by_the_autotuner),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the config has no `zero_optimization` section",
        "配置里没有 `zero_optimization` 配置段",
    ),
    why: Text::new(
        "Plain DeepSpeed runs without ZeRO, but the HF Trainer and accelerate reject a config without `zero_optimization`.",
        "直接使用 DeepSpeed 可以不开 ZeRO，但 HF Trainer 和 accelerate 不接受没有 `zero_optimization` 的配置。",
    ),
    help: Text::new(
        "add `zero_optimization`; `{{\"stage\": 0}}` turns ZeRO off",
        "加上 `zero_optimization`；`{{\"stage\": 0}}` 表示不用 ZeRO",
    ),
};

static AUTOTUNER: Wording = Wording {
    message: WORDING.message,
    why: Text::new(
        "`autotuning` is enabled: with `deepspeed --autotuning`, the autotuner adds `zero_optimization` to every experiment. Without this option, the HF Trainer and accelerate reject the config.",
        "启用了 `autotuning`：用 `deepspeed --autotuning` 启动时，每次试验的 `zero_optimization` 由 autotuner 写入；不带这个选项启动，HF Trainer 和 accelerate 会报错。",
    ),
    help: Text::new(
        "use this file only with `--autotuning`, or add `zero_optimization`",
        "只配合 `--autotuning` 使用这个文件，或加上 `zero_optimization`",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let title = Text::new(
        "add `zero_optimization` with ZeRO turned off",
        "加上 `zero_optimization`，但不启用 ZeRO",
    );
    let fix = insert_members(subject, subject.root, &[("zero_optimization", "{\"stage\": 0}")])
        .map(|edit| Fix::guess(title, vec![edit]));
    let start = problem.span.start;
    let span = Span::new(start, problem.span.end.min(start + 1));
    let (wording, severity) = if subject.is_for_autotuner() {
        (&AUTOTUNER, Severity::Warning)
    } else {
        (&WORDING, Severity::Error)
    };
    Diagnostic::new(&RULE, wording, "zero_optimization", span).severity(severity).fix(fix)
}
