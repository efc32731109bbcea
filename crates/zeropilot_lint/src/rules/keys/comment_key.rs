use zeropilot_config::problem::KeyPath;
use zeropilot_config::syntax::Member;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K13",
    name: "comment-key",
    group: Group::Keys,
    severity: Severity::Note,
    summary: Text::new("a key used as a comment", "用键来写注释"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(r#"{"_comment": "for 8 GPUs", "train_batch_size": 8}"#)],
    good: &[Example::new(r#"{"train_batch_size": 8}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{key}` counts as a comment: DeepSpeed does not read it",
        "`{key}` 视为注释：DeepSpeed 不会读取",
    ),
    why: Text::new(
        "DeepSpeed ignores unknown keys here, so this key does no harm. In `zero_optimization`, `fp16` or `bf16`, DeepSpeed would reject it.",
        "DeepSpeed 在这里会忽略未知的键，所以不影响训练；但写在 `zero_optimization`、`fp16` 或 `bf16` 里会报错。",
    ),
    help: Text::new("no action needed", "无需处理"),
};

/// Whether a key looks like a remark.
pub(crate) fn is_remark(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    key.starts_with(['_', '#', '$'])
        || key.starts_with("//")
        || ["comment", "comments", "note", "notes", "description"].contains(&lower.as_str())
}

/// Words the finding.
pub(crate) fn found(path: KeyPath, member: &Member) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, path, member.key_span)
}
