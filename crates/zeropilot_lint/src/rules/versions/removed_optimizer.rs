use zeropilot_config::constructors::Constructors;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "V02",
    name: "removed-optimizer",
    group: Group::Versions,
    severity: Severity::Error,
    summary: Text::new(
        "a 1-bit optimizer that DeepSpeed has removed",
        "DeepSpeed 已移除的 1-bit 优化器",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#8490", "deepspeedai/DeepSpeed#1773"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-4}}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-4}}}"#,
        )
        .version("0.18.9"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "DeepSpeed {version} no longer has the optimizer `{name}`",
        "DeepSpeed {version} 不再提供优化器 `{name}`",
    ),
    why: Text::new(
        "DeepSpeed has removed the 1-bit optimizers. When it creates the optimizer, it reports that `{name}` is not supported and exits.",
        "DeepSpeed 已移除 1-bit 优化器，创建优化器时会报告 `{name}` 不受支持并退出。",
    ),
    help: Text::new(
        "use `AdamW` (or `Lamb`) and remove the parameters that only the 1-bit optimizer has, or stay on an older DeepSpeed",
        "改用 `AdamW`（或 `Lamb`）并去掉 1-bit 优化器特有的参数，或继续使用旧版 DeepSpeed",
    ),
};

const ONE_BIT: [&str; 3] = ["onebitadam", "onebitlamb", "zerooneadam"];

/// Whether a name is one of theirs.
pub(crate) fn is_one_bit(name: &str) -> bool {
    ONE_BIT.contains(&name.to_lowercase().as_str())
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, node)) = subject.optimizer_type() else { return };
    if is_one_bit(name) && !Constructors::of(subject.version).builds_optimizer(name) {
        found.push(
            at_value(&RULE, &WORDING, &["optimizer", "type"], node)
                .with("name", name)
                .with("version", subject.version.name()),
        );
    }
}
