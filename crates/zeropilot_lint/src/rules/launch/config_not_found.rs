//! L12: the DeepSpeed config does not exist.
//!
//! # What it does
//! Finds a launch whose DeepSpeed config does not exist.
//!
//! # Why is this bad?
//! The run ends when the config is read, after the cluster was waited for.

use crate::diagnostic::Diagnostic;
use crate::job::{Findings, Judged};
use crate::language::Text;
use crate::rule::{Example, Group, Rule, Severity, Wording};

pub(crate) static RULE: Rule = Rule {
    code: "L12",
    name: "config-not-found",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new("the DeepSpeed config does not exist", "DeepSpeed 配置文件不存在"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job(
        "deepspeed --num_gpus 2 train.py --deepspeed_config /nonexistent/ds.json",
    )],
    good: &[Example::job("deepspeed --num_gpus 2 train.py --deepspeed_config $CONFIG")],
    check: None,
};

static WORDING: Wording = Wording {
    message: Text::new("there is no file `{name}`", "找不到文件 `{name}`"),
    why: Text::new(
        "the path is looked up from the directory the script runs in and from where the script stands; it is in neither.",
        "按运行目录和脚本所在目录都找过，都没有这个文件。",
    ),
    help: Text::new(
        "correct the path, or run the script from where it holds",
        "改正路径，或到正确的目录下运行脚本",
    ),
};

pub(super) fn check(job: &Judged<'_>, found: &mut Findings) {
    for config in job.job.launches.iter().filter_map(|launch| launch.given.config.as_ref()) {
        if let Some(name) = config.text.as_deref()
            && !name.starts_with('{')
            && (job.files)(name).is_none()
        {
            let place = &config.place;
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", place.span).with("name", name);
            found.at(place, diagnostic);
        }
    }
}
