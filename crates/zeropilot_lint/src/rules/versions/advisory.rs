use zeropilot_config::problem::KeyPath;
use zeropilot_config::syntax::Span;

use crate::advisory::{Advisory, Answer, Condition, Facts, met_by};
use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::report::ResolvedValues;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "V11",
    name: "known-defect",
    group: Group::Versions,
    severity: Severity::Warning,
    summary: Text::new(
        "a known defect in the installed versions affects this job",
        "已安装版本的已知缺陷会影响本次训练",
    ),
    wordings: &[&MEETS, &MAY_MEET],
    sources: &["deepspeedai/DeepSpeed#7707", "deepspeedai/DeepSpeed#7967"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}"#,
        )
        .version("0.18.9")
        .packages(&[("deepspeed", "0.18.9")]),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}"#,
        )
        .version("0.18.9")
        .packages(&[("deepspeed", "0.18.9")]),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}"#,
        )
        .packages(&[("deepspeed", "0.19.8")]),
    ],
    is_no_op: false,
};

static MEETS: Wording = Wording {
    message: Text::new("known defect {id}: {title}", "已知缺陷 {id}：{title}"),
    why: Text::new(
        "{what} Installed: {installed}; fixed in {package} {fixed}.",
        "{what}已安装：{installed}；{package} {fixed} 已修复。",
    ),
    help: Text::new(
        "upgrade to {package} {fixed} or newer, or: {workaround}",
        "升级到 {package} {fixed} 或更新版本；或者：{workaround}",
    ),
};

static MAY_MEET: Wording = Wording {
    message: Text::new(
        "{count} known defects in the installed versions may apply to this job",
        "已安装版本有 {count} 个已知缺陷可能影响本次训练",
    ),
    why: Text::new(
        "Whether the defects {ids} apply depends on information that is not in the checked files. Installed: {installed}.",
        "缺陷 {ids} 是否有影响，取决于所检查的文件里没有的信息。已安装：{installed}。",
    ),
    help: Text::new(
        "run `zeropilot advisories {first}` to see when a defect applies",
        "运行 `zeropilot advisories {first}`，查看缺陷的触发条件",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, resolved: &ResolvedValues, found: &mut Vec<Diagnostic>) {
    let mut affecting = met_by(subject.packages).peekable();
    if affecting.peek().is_none() {
        return;
    }
    let facts = Facts::new(subject, resolved);
    let mut perhaps = Vec::new();
    for (advisory, version) in affecting {
        let conditions = advisory.when.iter().map(|condition| facts.answer(condition));
        match conditions.fold(version, Answer::and) {
            Answer::Yes => found.push(met(advisory, subject)),
            Answer::Unknown => perhaps.push(advisory),
            Answer::No => {}
        }
    }
    found.extend(possible(&perhaps, subject));
}

/// An advisory that applies.
fn met(advisory: &'static Advisory, subject: &Subject<'_>) -> Diagnostic {
    let (path, span) = place(advisory, subject);
    let (package, fixed) = advisory.fixed().unwrap_or_default();
    Diagnostic::new(&RULE, &MEETS, path, span)
        .severity(advisory.severity())
        .with("id", advisory.id.as_str())
        .with("title", advisory.title())
        .with("what", advisory.what())
        .with("workaround", advisory.workaround())
        .with("installed", installed(&[advisory], subject))
        .with("package", package)
        .with("fixed", fixed)
}

/// All advisories that may apply, as one note.
fn possible(all: &[&'static Advisory], subject: &Subject<'_>) -> Option<Diagnostic> {
    let first = all.first()?;
    let span = Span { end: subject.root.span.start + 1, ..subject.root.span };
    let ids = all.iter().map(|advisory| advisory.id.clone()).collect();
    let note = Diagnostic::new(&RULE, &MAY_MEET, "", span)
        .severity(Severity::Note)
        .with("count", all.len())
        .with("ids", Argument::Words(ids))
        .with("first", first.id.as_str())
        .with("installed", installed(all, subject));
    Some(note)
}

/// The versions that advisories are about, as they are installed.
fn installed(all: &[&'static Advisory], subject: &Subject<'_>) -> String {
    let is_named = |package: &str| {
        all.iter().flat_map(|advisory| &advisory.affects).any(|one| one.package == package)
    };
    let named = subject.packages.iter().filter(|(package, _)| is_named(package));
    named.map(|(package, version)| format!("{package} {version}")).collect::<Vec<_>>().join(", ")
}

/// The key that leads to a defect, where one is written; else the beginning of the file.
fn place(advisory: &Advisory, subject: &Subject<'_>) -> (KeyPath, Span) {
    let paths = advisory.when.iter().filter_map(|condition| match condition {
        Condition::Key { path, .. } => Some(path.as_str()),
        Condition::Stage(_) => Some("zero_optimization.stage"),
        _ => None,
    });
    let written = paths.into_iter().find_map(|path| {
        let node = subject.node(path.split('.'))?;
        Some((KeyPath(path.split('.').map(str::to_owned).collect()), node.span))
    });
    written.unwrap_or_else(|| {
        let start = subject.root.span.start;
        (KeyPath::default(), Span { start, end: start + 1 })
    })
}
