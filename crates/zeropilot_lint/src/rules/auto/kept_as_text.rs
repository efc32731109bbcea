use zeropilot_config::problem::KeyPath;
use zeropilot_config::python::is_auto;
use zeropilot_config::syntax::Value;

use super::is_genuine;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::keys::HAND_READ_SECTIONS;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A13",
    name: "auto-kept-as-text",
    group: Group::Auto,
    severity: Severity::Warning,
    summary: Text::new(
        "`\"auto\"` stays a string and counts as true",
        "`\"auto\"` 被当作字符串保留，等同于 true",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "activation_checkpointing": {"partition_activations": "auto"}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "activation_checkpointing": {"partition_activations": true}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` is `\"auto\"`, and DeepSpeed keeps this string as the value",
        "`{path}` 写的是 `\"auto\"`，DeepSpeed 会把这个字符串当作值",
    ),
    why: Text::new(
        "DeepSpeed does not replace `\"auto\"` with a default here. A switch counts as on; a numeric key fails when DeepSpeed uses its value.",
        "DeepSpeed 在这里不会把 `\"auto\"` 换成默认值：开关类的键会被当成开启，数值类的键在用到时才报错。",
    ),
    help: Text::new(
        "set `{path}` to a value, or remove the key to get the default",
        "把 `{path}` 写成具体的值，或删掉这个键使用默认值",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if !subject.may_leave_auto() {
        return;
    }
    for section in subject.members() {
        let Value::Object(members) = &section.value.value else { continue };
        if !HAND_READ_SECTIONS.contains(&section.key.as_str()) {
            continue;
        }
        for member in members.iter().filter(|member| is_auto(&member.value.value)) {
            let path = [section.key.as_str(), member.key.as_str()];
            if !is_genuine(&path) {
                let path = KeyPath(path.map(str::to_owned).to_vec());
                found.push(Diagnostic::new(&RULE, &WORDING, path, member.value.span));
            }
        }
    }
}
