use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K33",
    name: "random-ltd-keys",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new(
        "random layerwise token dropping (random-LTD) without required keys",
        "random-LTD 缺少必需的键",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "data_efficiency": {"enabled": true, "data_routing": {"enabled": true, "random_ltd": {"enabled": true}}}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "data_efficiency": {"enabled": true, "data_routing": {"enabled": true, "random_ltd": {"enabled": false}}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("`random_ltd` needs `{missing}`", "`random_ltd` 需要 `{missing}`"),
    why: Text::new(
        "DeepSpeed reads the required keys at startup, has no defaults for them, and exits with a `KeyError` if one is missing.",
        "DeepSpeed 启动时直接读取必需的键，它们没有默认值，缺少就以 `KeyError` 退出。",
    ),
    help: Text::new(
        "add `{missing}` to `data_efficiency.data_routing.random_ltd`, or set its `enabled` to false",
        "在 `data_efficiency.data_routing.random_ltd` 里补上 `{missing}`，或把 `enabled` 设为 false",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["data_efficiency", "data_routing", "random_ltd"];
    let is_on = |path: &[&str]| {
        let keys = path.iter().copied().chain(["enabled"]);
        subject.node(keys).is_some_and(|node| node.value == Value::Bool(true))
    };
    if !(1..=3).all(|length| is_on(&path[..length])) {
        return;
    }
    let Some(section) = subject.node(path) else { return };
    if section.get("total_layer_num").is_none() {
        found.push(at_value(&RULE, &WORDING, &path, section).with("missing", "total_layer_num"));
    }
}
