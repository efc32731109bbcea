use zeropilot_config::problem::Problem;
use zeropilot_config::python::is_auto;

use super::super::batch;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A01",
    name: "auto-reaches-deepspeed",
    group: Group::Auto,
    severity: Severity::Error,
    summary: Text::new(
        "a top-level `\"auto\"` reaches DeepSpeed as a string",
        "顶层的 `\"auto\"` 会原样传给 DeepSpeed",
    ),
    wordings: &[&REFUSED, &LATER],
    sources: &["deepspeedai/DeepSpeed#1270", "Roblox/FAI-RL#70", "huggingface/trl#2154"],
    examples: &[
        Example::new(r#"{"train_batch_size": "auto"}"#),
        Example::new(r#"{"train_batch_size": 8, "gradient_clipping": "auto"}"#),
        Example::new(r#"{"train_batch_size": 8, "communication_data_type": "auto"}"#),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8, "gradient_clipping": 1.0}"#)],
    is_no_op: false,
};

static REFUSED: Wording = Wording {
    message: Text::new(
        "`{key}` is `\"auto\"`, which DeepSpeed does not support",
        "`{key}` 写的是 `\"auto\"`，DeepSpeed 不支持",
    ),
    why: Text::new(
        "`\"auto\"` is a placeholder that the HF Trainer and accelerate replace with their arguments. Neither reads this file, and DeepSpeed fails on the string.",
        "`\"auto\"` 是 HF Trainer 和 accelerate 的占位符，由它们按训练参数替换。这个文件不由它们读取，DeepSpeed 遇到这个字符串就会报错。",
    ),
    help: Text::new(
        "set `{key}` to a number; or, if the HF Trainer or accelerate reads this file, name that framework with `--front-end`",
        "把 `{key}` 写成具体数值；如果这个文件其实由 HF Trainer 或 accelerate 读取，请用 `--front-end` 指明训练框架",
    ),
};

static LATER: Wording = Wording {
    message: Text::new(
        "`{key}` is `\"auto\"`, and DeepSpeed does not replace it",
        "`{key}` 写的是 `\"auto\"`，DeepSpeed 不会替换它",
    ),
    why: Text::new(
        "DeepSpeed keeps the string as the value. The config loads; the run fails when DeepSpeed uses the value, or behaves as if the key were on.",
        "DeepSpeed 会把这个字符串原样当作值。加载配置时没有问题；DeepSpeed 用到这个值时才报错，或者把它当成“已开启”。",
    ),
    help: Text::new(
        "set `{key}` to a value, or remove the key to get the default",
        "把 `{key}` 写成具体的值，或删掉这个键使用默认值",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    Diagnostic::new(&RULE, &REFUSED, problem.path.clone(), problem.span)
}

/// Top-level keys that the engine loads with the text in them.
pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if !subject.may_leave_auto() {
        return;
    }
    let schema = subject.schema();
    for member in subject.members().iter().filter(|member| is_auto(&member.value.value)) {
        let path = member.key.as_str().into();
        let is_refused = batch::is_batch_key(&path)
            || schema.sections.contains_key(&member.key)
            || schema.raw_key(&member.key).is_none_or(|key| {
                key.choices.is_some()
                    || key
                        .accepts
                        .as_ref()
                        .is_some_and(|kinds| !kinds.iter().any(|kind| kind == "str"))
            });
        if !is_refused {
            found.push(Diagnostic::new(&RULE, &LATER, path, member.value.span));
        }
    }
}
