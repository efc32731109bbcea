use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "S07",
    name: "checkpoint-not-universal",
    group: Group::Saving,
    severity: Severity::Error,
    summary: Text::new(
        "the config loads a universal checkpoint that does not exist",
        "配置要加载 universal checkpoint，但 checkpoint 没有转换过",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#2921"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "checkpoint": {"load_universal": true}}"#,
    )
    .script(super::other_ranks::two_ranks)],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "checkpoint": {"load_universal": true}}"#,
    )
    .script(super::other_ranks::universal)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`load_universal` is on, but the checkpoint has no `latest_universal`",
        "`load_universal` 已打开，但 checkpoint 里没有 `latest_universal`",
    ),
    why: Text::new(
        "Only the conversion with `ds_to_universal.py` writes `latest_universal`. Without this file, DeepSpeed exits with an error when it loads the checkpoint.",
        "只有用 `ds_to_universal.py` 转换之后才有 `latest_universal`；没有这个文件，DeepSpeed 加载 checkpoint 时会报错退出。",
    ),
    help: Text::new(
        "convert the checkpoint first (stages 1 and 2 need the option `--inject_missing_state`), or remove `load_universal`",
        "先转换 checkpoint（stage 1、2 要加 `--inject_missing_state`），或去掉 `load_universal`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(checkpoint) = &subject.script.checkpoint else { return };
    let path = ["checkpoint", "load_universal"];
    if let Some((_, member)) = subject.member(&path)
        && subject.is_on(path)
        && !checkpoint.is_universal
    {
        found.push(at_member(&RULE, &WORDING, &path, member));
    }
}
