use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K31",
    name: "layer-drop-parameters",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new(
        "`progressive_layer_drop` without its parameters",
        "`progressive_layer_drop` 缺少参数",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "progressive_layer_drop": {"enabled": true}}"#,
    )
    .version("0.18.9")],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "progressive_layer_drop": {"enabled": true, "theta": 0.5, "gamma": 0.001}}"#,
    )
    .version("0.18.9")],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`progressive_layer_drop` needs {missing}",
        "`progressive_layer_drop` 需要 {missing}",
    ),
    why: Text::new(
        "DeepSpeed reads `theta` and `gamma` at startup and has no defaults for them. If one is missing, the run exits with a `KeyError`.",
        "DeepSpeed 启动时读取 `theta` 和 `gamma`，两者都没有默认值，缺少就以 `KeyError` 退出。",
    ),
    help: Text::new(
        "add the missing keys, such as `\"theta\": 0.5, \"gamma\": 0.001`",
        "补上缺少的键，例如 `\"theta\": 0.5, \"gamma\": 0.001`",
    ),
};

const SECTION: &str = "progressive_layer_drop";

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((_, section)) = subject.member(&[SECTION]) else { return };
    let missing: Vec<String> = ["theta", "gamma"]
        .into_iter()
        .filter(|key| section.value.get(key).is_none())
        .map(str::to_owned)
        .collect();
    if subject.reads_section(SECTION) && subject.is_on([SECTION, "enabled"]) && !missing.is_empty()
    {
        found.push(
            at_member(&RULE, &WORDING, &[SECTION], section)
                .with("missing", Argument::Words(missing)),
        );
    }
}
