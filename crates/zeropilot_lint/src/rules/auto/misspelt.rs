use zeropilot_config::problem::KeyPath;
use zeropilot_config::schema::{Field, Model};
use zeropilot_config::syntax::Member;

use crate::argument::Argument;
use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::rename;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::suggestion::suggest;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A11",
    name: "misspelt-auto-key",
    group: Group::Auto,
    severity: Severity::Warning,
    summary: Text::new(
        "DeepSpeed accepts an unknown key whose value is `\"auto\"`",
        "值为 `\"auto\"` 的未知键不会报错",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_sise": "auto"}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8}}"#,
    )],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{section}` has no key `{key}`{nearest}",
        "`{section}` 里没有 `{key}` 这个键{nearest}",
    ),
    why: Text::new(
        "DeepSpeed drops keys whose value is `\"auto\"` before it looks for unknown keys, so it does not report this typo. With any other value, it would reject the config.",
        "DeepSpeed 先丢弃值为 `\"auto\"` 的键，再检查未知的键，所以不会报告这个拼写错误；换成别的值就会报错。",
    ),
    help: Text::new(
        "correct the name of `{key}`, or remove the key",
        "改正键名 `{key}`，或删掉这个键",
    ),
};

/// Words the finding.
pub(crate) fn found(model: &Model, path: &[String], member: &Member) -> Diagnostic {
    let meant = suggest(&member.key, model.fields.iter().map(Field::key));
    let title = Text::new("rename the key to `{meant}`", "改名为 `{meant}`");
    let fix = meant.as_ref().map(|meant| Fix::guess(title, vec![rename(member.key_span, meant)]));
    Diagnostic::new(&RULE, &WORDING, KeyPath(path.to_vec()), member.key_span)
        .with("nearest", did_you_mean(meant.as_deref()))
        .with("meant", meant.unwrap_or_default())
        .fix(fix)
}

/// "; did you mean …?", or nothing.
pub(crate) fn did_you_mean(nearest: Option<&str>) -> Argument {
    match nearest {
        Some(word) => Argument::Nested(
            Text::new("; did you mean `{word}`?", "，是不是想写 `{word}`？"),
            vec![("word", word.into())],
        ),
        None => Argument::from(""),
    }
}
