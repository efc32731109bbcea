use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launch, Launcher, Word};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L16",
    name: "two-filters",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new("two options that select GPUs", "同时用了两个选择 GPU 的选项"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#662"],
    examples: &[
        Example::job("deepspeed --num_gpus 2 --include localhost:0,1 t.py"),
        Example::job("deepspeed --include localhost:0,1 --exclude localhost:1 t.py"),
    ],
    good: &[
        Example::job("deepspeed --include localhost:0,1 t.py"),
        Example::job("deepspeed --num_gpus 2 --num_nodes 1 t.py"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`deepspeed` rejects `--{one}` together with `--{other}`",
        "`deepspeed` 不允许同时使用 `--{one}` 和 `--{other}`",
    ),
    why: Text::new(
        "One option sets how many GPUs to use, starting from the first; the other option lists the GPUs. The launcher exits with an error.",
        "一个选项指定从第一张卡开始用几张，另一个选项逐个列出要用的卡；启动器会报错退出。",
    ),
    help: Text::new("keep only `--{one}`", "只保留 `--{one}`"),
};

/// An option that has a value, by its long name.
fn given<'a>(
    launch: &'a Launch,
    name: &'static str,
    short: &str,
) -> Option<(&'static str, &'a Word)> {
    let word = launch.option(name).or_else(|| launch.option(short))?;
    word.text.as_deref().filter(|text| !text.is_empty())?;
    Some((name, word))
}

/// A number that the launcher takes for one; it has -1 where none is given.
fn counted<'a>(launch: &'a Launch, name: &'static str) -> Option<(&'static str, &'a Word)> {
    let word = launch.option(name)?;
    word.text.as_deref()?.parse::<u32>().ok()?;
    Some((name, word))
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in job.job.launches.iter().filter(|launch| launch.launcher == Launcher::DeepSpeed) {
        let include = given(launch, "include", "i");
        let exclude = given(launch, "exclude", "e");
        let counts = counted(launch, "num_gpus").or_else(|| counted(launch, "num_nodes"));
        let pair = match (include, exclude, counts) {
            (Some(one), other, counts) => counts.or(other).map(|other| (one, other)),
            (None, Some(one), Some(other)) => Some((one, other)),
            _ => None,
        };
        if let Some(((one, _), (other, word))) = pair {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", word.span)
                .with("one", one)
                .with("other", other);
            found.here(diagnostic);
        }
    }
}
