use super::scheduler_parameters::parameters;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O23",
    name: "unknown-warmup-type",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new("an unknown `warmup_type`", "未知的 `warmup_type`"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_type": "cosine"}}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_type": "linear"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_type": "log"}}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`warmup_type` `{value}` is unknown, so the warmup is logarithmic",
        "无法识别 `warmup_type` 的值 `{value}`，warmup 将按对数曲线进行",
    ),
    why: Text::new(
        "The scheduler supports `log` and `linear`. For any other value, it logs a warning and uses `log`.",
        "调度器只支持 `log` 和 `linear`；遇到其他值，只在日志里警告，然后按 `log` 处理。",
    ),
    help: Text::new(
        "set `warmup_type` to `linear` or `log`",
        "把 `warmup_type` 设为 `linear` 或 `log`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["scheduler", "params", "warmup_type"];
    let Some(node) = subject.node(path) else { return };
    let Some(value) = subject.text_at(path) else { return };
    let is_warmup = parameters(subject).is_some_and(|(name, _)| name.starts_with("Warmup"));
    if is_warmup && !matches!(value, "log" | "linear" | "auto") {
        let title = Text::new("write `linear`", "改为 `linear`");
        let fix = Fix::guess(title, vec![Edit::new(node.span, "\"linear\"")]);
        found.push(at_value(&RULE, &WORDING, &path, node).with("value", value).fix(Some(fix)));
    }
}
