use zeropilot_config::problem::Problem;

use super::super::auto::misspelt::did_you_mean;
use super::comment_key;
use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::{remove_member, rename};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K03",
    name: "unknown-key-in-strict-section",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new(
        "an unknown key in a section that rejects unknown keys",
        "严格校验的配置段里出现了未知的键",
    ),
    wordings: &[&UNKNOWN, &TOP_LEVEL, &REMARK],
    sources: &["deepspeedai/DeepSpeed#3827", "deepspeedai/DeepSpeed#912"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_com": true}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "gradient_clipping": 1.0}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"_comment": "x", "stage": 2}}"#,
        ),
    ],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": true}}"#,
    )],
    is_no_op: false,
};

static UNKNOWN: Wording = Wording {
    message: Text::new(
        "`{section}` has no key `{key}`{nearest}",
        "`{section}` 里没有 `{key}` 这个键{nearest}",
    ),
    why: Text::new(
        "`{section}` must not contain unknown keys: DeepSpeed {version} exits with `Extra inputs are not permitted`.",
        "`{section}` 里不允许有未知的键；DeepSpeed {version} 会报 `Extra inputs are not permitted` 并退出。",
    ),
    help: Text::new(
        "correct the name of `{key}`, or remove the key if it is from another DeepSpeed version",
        "改正键名 `{key}`；如果是别的 DeepSpeed 版本的键，就删掉",
    ),
};

static TOP_LEVEL: Wording = Wording {
    message: Text::new(
        "`{key}` must be at the top level, not in `{section}`",
        "`{key}` 应该写在顶层，而不是 `{section}` 里",
    ),
    why: UNKNOWN.why,
    help: Text::new("move `{key}` out of `{section}`", "把 `{key}` 移出 `{section}`"),
};

static REMARK: Wording = Wording {
    message: Text::new(
        "`{section}` rejects `{key}`, even as a comment",
        "`{section}` 不接受 `{key}`，即使只是当注释用",
    ),
    why: UNKNOWN.why,
    help: Text::new(
        "move `{key}` to the top level, where DeepSpeed ignores unknown keys, or remove it",
        "把 `{key}` 移到顶层（DeepSpeed 在那里会忽略未知的键），或删掉",
    ),
};

/// Words the refusal.
pub(crate) fn explain(
    problem: &Problem,
    nearest: Option<&str>,
    subject: &Subject<'_>,
) -> Diagnostic {
    let key = problem.path.key();
    let (wording, nearest) = if comment_key::is_remark(key) {
        (&REMARK, None)
    } else if nearest.is_none() && subject.schema().reads_top_level(key) {
        (&TOP_LEVEL, None)
    } else {
        (&UNKNOWN, nearest)
    };
    Diagnostic::new(&RULE, wording, problem.path.clone(), problem.span)
        .with("version", subject.version.name())
        .with("nearest", did_you_mean(nearest))
        .with("meant", nearest.unwrap_or_default())
        .fix(fix(problem, nearest, subject))
}

fn fix(problem: &Problem, nearest: Option<&str>, subject: &Subject<'_>) -> Option<Fix> {
    let (object, member) = subject.member(&problem.path.0)?;
    if member.key_span != problem.span {
        return None;
    }
    if let Some(nearest) = nearest
        && object.get(nearest).is_none()
    {
        let title = Text::new("rename the key to `{meant}`", "改名为 `{meant}`");
        return Some(Fix::guess(title, vec![rename(member.key_span, nearest)]));
    }
    let edit = remove_member(subject, object, member.key_span)?;
    Some(Fix::guess(Text::new("remove the key", "删掉这个键"), vec![edit]))
}
