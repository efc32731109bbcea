use zeropilot_config::front_end::{FrontEnd, Problem};
use zeropilot_config::problem::KeyPath;
use zeropilot_config::schema::Field;

use super::{genuine, is_genuine, misspelt, unfilled_by_accelerate};
use crate::argument::Argument;
use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::remove_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use crate::suggestion::suggest;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A04",
    name: "auto-nobody-fills",
    group: Group::Auto,
    severity: Severity::Error,
    summary: Text::new("an `\"auto\"` that no framework fills in", "训练框架不会填的 `\"auto\"`"),
    wordings: &[&KNOWN, &UNKNOWN],
    sources: &["huggingface/trl#2154"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2, "overlap_comm": "auto"}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2, "reduce_bucket_sise": "auto"}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2, "overlap_comm": true}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
    ],
    is_no_op: false,
};

static KNOWN: Wording = Wording {
    message: Text::new(
        "no framework fills in `\"auto\"` for `{path}`",
        "训练框架不会填 `{path}` 的 `\"auto\"`",
    ),
    why: Text::new(
        "The HF Trainer and accelerate fill in a fixed list of keys. For any other `\"auto\"`, `prepare` raises a `ValueError` after the model has been loaded.",
        "HF Trainer 和 accelerate 只填固定的一批键；其他键写 `\"auto\"`，`prepare` 会抛 `ValueError`，此时模型已经加载完。",
    ),
    help: Text::new(
        "write a value for `{path}`, or remove the key to get DeepSpeed's default{default}",
        "给 `{path}` 写具体的值，或删掉这个键使用 DeepSpeed 的默认值{default}",
    ),
};

static UNKNOWN: Wording = Wording {
    message: Text::new(
        "no framework fills in `\"auto\"` for `{path}`, and DeepSpeed has no such key{nearest}",
        "训练框架不会填 `{path}` 的 `\"auto\"`，DeepSpeed 也没有这个键{nearest}",
    ),
    why: KNOWN.why,
    help: Text::new(
        "correct the name of `{path}`, or remove the key",
        "改正 `{path}` 的键名，或删掉这个键",
    ),
};

/// Words the refusal, or hands it to the rule about the key.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let parts: Vec<&str> = problem.path.split('.').collect();
    if is_genuine(&parts) {
        return genuine::explain(problem, subject);
    }
    if subject.front_end == FrontEnd::Accelerate && unfilled_by_accelerate::applies(&parts) {
        return unfilled_by_accelerate::explain(problem);
    }
    let path = KeyPath::from(problem.path.as_str());
    let title = Text::new("remove the key", "删掉这个键");
    let fix = subject
        .member(&parts)
        .and_then(|(object, member)| remove_member(subject, object, member.key_span))
        .map(|edit| Fix::guess(title, vec![edit]));
    let model = match parts.as_slice() {
        [section, _] => subject.schema().section_model(section),
        _ => None,
    };
    let field = model.and_then(|model| model.field_for_key(path.key()));
    match (model, field) {
        (Some(model), None) => {
            let meant = suggest(path.key(), model.fields.iter().map(Field::key));
            Diagnostic::new(&RULE, &UNKNOWN, path, problem.span)
                .with("nearest", misspelt::did_you_mean(meant.as_deref()))
                .fix(fix)
        }
        _ => Diagnostic::new(&RULE, &KNOWN, path, problem.span)
            .with("default", default(field))
            .fix(fix),
    }
}

fn default(field: Option<&Field>) -> Argument {
    match field {
        Some(field) if !field.default.is_null() => Argument::Nested(
            Text::new(", {value}", " {value}"),
            vec![("value", format!("`{}`", field.default).into())],
        ),
        _ => Argument::from(""),
    }
}
