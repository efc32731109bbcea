use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P15",
    name: "amp-alone",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new(
        "`amp` with ZeRO, `fp16` or `bf16`",
        "`amp` 与 ZeRO、`fp16` 或 `bf16` 同时使用",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "amp": {"enabled": true}, "zero_optimization": {"stage": 1}}"#,
        )
        .version("0.18.9"),
        Example::new(
            r#"{"train_batch_size": 8, "amp": {"enabled": true}, "bf16": {"enabled": true}}"#,
        )
        .version("0.18.9"),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "amp": {"enabled": false}, "zero_optimization": {"stage": 1}}"#,
        )
        .version("0.18.9"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "Apex `amp` does not work together with {other}",
        "Apex `amp` 不能与 {other} 同时使用",
    ),
    why: Text::new(
        "DeepSpeed checks the combination of `amp` and {other} when it creates the optimizer, after the model has been loaded, and exits with an error.",
        "DeepSpeed 到创建优化器时才检查 `amp` 与 {other} 的组合并报错退出，此时模型已经加载完。",
    ),
    help: Text::new(
        "remove `amp`; with ZeRO, use `bf16` or `fp16` instead",
        "删掉 `amp`；使用 ZeRO 时用 `bf16` 或 `fp16` 即可",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["amp", "enabled"];
    let other = match (subject.stage(), subject.sixteen_bit()) {
        (Some(1..=3), _) => "ZeRO".to_owned(),
        (_, Some(section)) => format!("`{section}`"),
        _ => return,
    };
    if subject.reads_section("amp")
        && subject.enabled("amp") == Some(true)
        && let Some((_, member)) = subject.member(&path)
    {
        found.push(at_member(&RULE, &WORDING, &path, member).with("other", other));
    }
}
