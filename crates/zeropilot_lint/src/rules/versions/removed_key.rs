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
    summary: Text::new("a feature that the engine no longer has", "DeepSpeed 已经移除的功能"),
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
        "DeepSpeed {version} has removed `{path}` and refuses the key, even switched off",
        "DeepSpeed {version} 已移除 `{path}`，即使关着也会拒绝",
    ),
    why: Text::new("the engine says: {message}", "DeepSpeed 的原话：{message}"),
    help: Text::new("remove the key; it does nothing here", "删掉这个键；它在这里本来就没有作用"),
};

static ON: Wording = Wording {
    message: Text::new(
        "DeepSpeed {version} has removed `{path}` and refuses the key",
        "DeepSpeed {version} 已移除 `{path}`，出现就会拒绝",
    ),
    why: OFF.why,
    help: Text::new(
        "remove the key and do without the feature, or run the engine version that the file was written for",
        "删掉这个键、不再使用该功能，或换回这个文件当初对应的 DeepSpeed 版本",
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
