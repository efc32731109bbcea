use zeropilot_config::schema::EngineVersion;

use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P14",
    name: "autocast-with-16-bit",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new(
        "`torch_autocast` with `fp16` or `bf16` before DeepSpeed 0.18.3",
        "DeepSpeed 0.18.3 之前同时使用 `torch_autocast` 和 `fp16`/`bf16`",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#,
    )
    .version("0.17.6")],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}, "zero_optimization": {"stage": 2}}"#,
        )
        .version("0.17.6"),
        Example::new(
            r#"{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#,
        )
        .version("0.18.9"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "DeepSpeed {version} rejects `torch_autocast` together with `{section}`",
        "DeepSpeed {version} 不允许同时启用 `torch_autocast` 和 `{section}`",
    ),
    why: Text::new(
        "Before DeepSpeed 0.18.3, autocast does not work with `fp16` or `bf16`. DeepSpeed checks this at startup and exits with an error.",
        "在 DeepSpeed 0.18.3 之前，autocast 不能与 `fp16` 或 `bf16` 一起使用；DeepSpeed 启动时会检查并报错退出。",
    ),
    help: Text::new(
        "remove `{section}`, or use DeepSpeed 0.18.3 or later",
        "删掉 `{section}`，或升级到 DeepSpeed 0.18.3 及以上",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["torch_autocast", "enabled"];
    let Some(section) = subject.sixteen_bit() else { return };
    if subject.enabled("torch_autocast") == Some(true)
        && subject.reads_section("torch_autocast")
        && subject.version < EngineVersion::V0_18
        && let Some((_, member)) = subject.member(&path)
    {
        found.push(
            at_member(&RULE, &WORDING, &path, member)
                .with("version", subject.version.name())
                .with("section", section),
        );
    }
}
