//! Removing a disabled feature is safe; removing one that is on changes the run.

use zeropilot_config::problem::Problem;
use zeropilot_config::python::is_true;
use zeropilot_config::syntax::{Node, Value};

use crate::diagnostic::{Diagnostic, Fix, Safety};
use crate::edit::remove_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "V01",
    name: "removed-feature",
    group: Group::Versions,
    severity: Severity::Error,
    summary: Text::new("a feature that DeepSpeed has removed", "DeepSpeed 已经移除的功能"),
    wordings: &[&OFF, &ON],
    sources: &[
        "deepspeedai/DeepSpeed#8489",
        "deepspeedai/DeepSpeed#8490",
        "deepspeedai/DeepSpeed#8564",
        "aqlaboratory/openfold#125",
    ],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "amp": {"enabled": false}}"#),
        Example::new(r#"{"train_batch_size": 8, "sparse_gradients": true}"#),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8, "torch_autocast": {"enabled": false}}"#)],
    is_no_op: false,
};

static OFF: Wording = Wording {
    message: Text::new(
        "DeepSpeed {version} has removed `{path}` and rejects the key, even if it is off",
        "DeepSpeed {version} 已移除 `{path}`，即使设为关闭也会报错",
    ),
    why: Text::new("DeepSpeed reports: {message}", "DeepSpeed 的报错：{message}"),
    help: Text::new(
        "remove `{path}`, which has no effect here",
        "删掉 `{path}`，它在这里本来就不生效",
    ),
};

static ON: Wording = Wording {
    message: Text::new(
        "DeepSpeed {version} has removed `{path}` and rejects the key",
        "DeepSpeed {version} 已移除 `{path}`，写了就会报错",
    ),
    why: OFF.why,
    help: Text::new(
        "remove `{path}` and stop using the feature, or use the DeepSpeed version that the config was written for",
        "删掉 `{path}` 并停用该功能，或换回编写该配置时所用的 DeepSpeed 版本",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, message: &str, subject: &Subject<'_>) -> Diagnostic {
    let pair = subject.member(&problem.path.0);
    let off = pair.is_some_and(|(_, member)| is_off(&member.value));
    let safety = if off { Safety::Safe } else { Safety::Unsafe };
    let title = Text::new("remove the key", "删掉这个键");
    let fix = pair
        .and_then(|(object, member)| remove_member(subject, object, member.key_span))
        .map(|edit| Fix { title, safety, edits: vec![edit] });
    let wording = if off { &OFF } else { &ON };
    Diagnostic::new(&RULE, wording, problem.path.clone(), problem.span)
        .with("version", subject.version.name())
        .with("message", message)
        .fix(fix)
}

/// Whether the feature is switched off where it stands.
fn is_off(node: &Node) -> bool {
    match &node.value {
        Value::Object(members) => {
            members.is_empty()
                || node.get("enabled").is_some_and(|enabled| !is_true(&enabled.value))
        }
        value => !is_true(value),
    }
}
