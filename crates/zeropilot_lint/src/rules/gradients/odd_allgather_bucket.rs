use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::ZERO;
use crate::reading::at_value;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "G03",
    name: "odd-allgather-bucket",
    group: Group::Gradients,
    severity: Severity::Error,
    summary: Text::new("an odd `allgather_bucket_size`", "`allgather_bucket_size` 是奇数"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_bucket_size": 200000001}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_bucket_size": 200000000}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`allgather_bucket_size` {value} is odd; stages 1 and 2 need a multiple of 2",
        "`allgather_bucket_size` {value} 是奇数，stage 1/2 要求是 2 的倍数",
    ),
    why: Text::new(
        "DeepSpeed aligns all-gather buffers to two elements. When it creates the optimizer, it exits with an `AssertionError` if the bucket size is odd.",
        "DeepSpeed 把 all-gather 缓冲区按两个元素对齐；创建优化器时会检查通信桶大小，是奇数就以 `AssertionError` 退出。",
    ),
    help: Text::new(
        "set `allgather_bucket_size` to {suggested}",
        "把 `allgather_bucket_size` 设为 {suggested}",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if !matches!(subject.stage(), Some(1..=2)) {
        return;
    }
    let Some(member) = subject.zero_member("allgather_bucket_size") else { return };
    let Some(size) = number(&member.value) else { return };
    if size % 2.0 == 1.0 {
        let suggested = format!("{:.0}", size + 1.0);
        let title = Text::new("write {suggested}", "写成 {suggested}");
        let fix = Fix::safe(title, vec![Edit::new(member.value.span, suggested.clone())]);
        found.push(
            at_value(&RULE, &WORDING, &[ZERO, &member.key], &member.value)
                .with("value", subject.text_of(member.value.span))
                .with("suggested", suggested)
                .fix(Some(fix)),
        );
    }
}
