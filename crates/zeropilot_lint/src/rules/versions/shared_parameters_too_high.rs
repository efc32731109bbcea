use zeropilot_config::problem::Problem;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "V09",
    name: "shared-parameters-too-high",
    group: Group::Versions,
    severity: Severity::Error,
    summary: Text::new("compression parameters one level too high", "压缩参数写在了上一级"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "compression_training": {"shared_parameters": {"enabled": true}}}"#,
        )
        .version("0.18.9"),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8}"#).version("0.18.9")],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`shared_parameters` cannot be enabled directly below `compression_training`",
        "`shared_parameters` 不能直接写在 `compression_training` 下并启用",
    ),
    why: Text::new(
        "With `shared_parameters` at this level, DeepSpeed refers to an undefined name (a bug) and raises an error, whatever the config contains.",
        "`shared_parameters` 写在这一级会触发 DeepSpeed 自身的 bug（引用了未定义的名称），无论配置怎么写都会报错。",
    ),
    help: Text::new(
        "move `shared_parameters` into a compression method such as `weight_quantization`, or remove the key",
        "把 `shared_parameters` 移到具体的压缩方法里（例如 `weight_quantization`），或删掉这个键",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
}
