use zeropilot_config::front_end::{self, AccelerateArguments, Arguments, FrontEnd, MixedPrecision};
use zeropilot_config::problem::Problem;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P01",
    name: "both-precisions",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new("fp16 and bf16 are both on", "fp16 和 bf16 同时开启"),
    wordings: &[&IN_CONFIG, &AGAINST_SCRIPT],
    sources: &["huggingface/accelerate#2210"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "fp16": {"enabled": true}, "bf16": {"enabled": true}}"#,
        ),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "fp16": {"enabled": true}}"#,
        )
        .read_by(FrontEnd::Accelerate)
        .arguments(bf16_script),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "fp16": {"enabled": false}, "bf16": {"enabled": true}}"#,
        ),
    ],
    is_no_op: false,
};

fn bf16_script() -> Arguments {
    let accelerate = AccelerateArguments {
        mixed_precision: Some(MixedPrecision::Bf16),
        ..AccelerateArguments::default()
    };
    Arguments { accelerate, ..Arguments::default() }
}

static IN_CONFIG: Wording = Wording {
    message: Text::new("`fp16` and `bf16` are both enabled", "`fp16` 和 `bf16` 同时启用了"),
    why: Text::new(
        "A run can use only one 16-bit type. DeepSpeed rejects a config that enables both.",
        "一次训练只能用一种 16 位精度；两种都启用时，DeepSpeed 会报错。",
    ),
    help: Text::new(
        "set `fp16.enabled` or `bf16.enabled` to false: use bf16 on GPUs that support it (Ampere and later), otherwise fp16",
        "把 `fp16.enabled` 或 `bf16.enabled` 设为 false：支持 bf16 的卡（Ampere 及以后）用 bf16，否则用 fp16",
    ),
};

static AGAINST_SCRIPT: Wording = Wording {
    message: Text::new(
        "the training script uses {requested}, but the config enables the other 16-bit type",
        "训练脚本使用 {requested}，但配置启用了另一种 16 位精度",
    ),
    why: Text::new(
        "If `mixed_precision` differs from the config, accelerate raises an error at startup.",
        "`mixed_precision` 与配置不一致时，accelerate 启动时报错。",
    ),
    help: Text::new(
        "set the same type in the script and the config, or set `enabled` to `\"auto\"`",
        "把脚本和配置改成同一种精度，或把 `enabled` 设为 `\"auto\"`",
    ),
};

/// Words a refusal of the engine.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let found = Diagnostic::new(&RULE, &IN_CONFIG, problem.path.clone(), problem.span);
    let other = subject.node(["bf16", "enabled"]).or_else(|| subject.node(["bfloat16", "enabled"]));
    match other.filter(|node| node.span != problem.span) {
        Some(node) => {
            found.related(node.span, Text::new("`bf16` is enabled here", "`bf16` 在这里启用"))
        }
        None => found,
    }
}

/// Words a refusal of a front end, at the section that is on.
pub(crate) fn explain_front_end(
    problem: &front_end::Problem,
    requested: MixedPrecision,
    subject: &Subject<'_>,
) -> Diagnostic {
    let section = if requested == MixedPrecision::Fp16 { "bf16" } else { "fp16" };
    let span = subject.node([section, "enabled"]).map_or(problem.span, |node| node.span);
    Diagnostic::new(&RULE, &AGAINST_SCRIPT, format!("{section}.enabled").as_str(), span)
        .with("requested", requested.name())
}
