//! V09: shared quantization parameters one level too high.
//!
//! # What it does
//! Finds enabled `shared_parameters` directly below `compression_training`, for versions that still
//! read the section.
//!
//! # Why is this bad?
//! The engine takes them for a sign to read the settings of eigenvalue-based quantization, whose
//! name its code no longer has, and ends with a `NameError`.

use zeropilot_config::problem::Problem;

use crate::diagnostic::Diagnostic;
use crate::language::Text;
use crate::rule::{Example, Group, Rule, Severity, Wording};

pub(crate) static RULE: Rule = Rule {
    code: "V09",
    name: "eigenvalue-disabled",
    group: Group::Versions,
    severity: Severity::Error,
    summary: Text::new(
        "shared quantization parameters one level too high end the run",
        "量化的共享参数写高了一层，会让 DeepSpeed 直接报错",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#8489"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "compression_training": {"shared_parameters": {"enabled": true}}, "quantize_training": {"eigenvalue": {"enabled": true}}}"#,
    )
    .version("0.18.9")],
    check: None,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` makes the engine fail while it loads the config",
        "`{path}` 会让 DeepSpeed 在读取配置时直接报错",
    ),
    why: Text::new(
        "enabled at this level, they send the engine to the settings of eigenvalue-based quantization, a feature whose name its own code has lost: it ends with a `NameError`.",
        "写在这一层并启用时，DeepSpeed 会转去读取基于特征值的量化设置，而这一功能在它自己的代码里已经不全，结果抛出 `NameError`。",
    ),
    help: Text::new(
        "move them into the technique they are for, such as `weight_quantization`, or remove them",
        "把它移到对应的方法里（例如 `weight_quantization`），或者删掉",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
}
