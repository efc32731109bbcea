use serde::Deserialize;
use std::sync::LazyLock;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L13",
    name: "environment-variable-unread",
    group: Group::Launch,
    severity: Severity::Warning,
    summary: Text::new(
        "an environment variable that DeepSpeed does not read",
        "DeepSpeed 不读取的环境变量",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("export DS_ACCELARATOR=cuda")],
    good: &[
        Example::job("export DS_ACCELERATOR=cuda"),
        Example::job("export DS_CONFIG=x.json"),
        Example::job("export DS_BUILD_OPS=1"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "DeepSpeed does not read the variable `{name}`; did you mean `{meant}`?",
        "DeepSpeed 不读取环境变量 `{name}`，是不是想写 `{meant}`？",
    ),
    why: Text::new(
        "No code in DeepSpeed {version} reads this variable, so it has no effect.",
        "DeepSpeed {version} 里没有代码读取这个变量，所以它不生效。",
    ),
    help: Text::new("write `{meant}`", "改为 `{meant}`"),
};

#[derive(Deserialize)]
struct Known {
    deepspeed: String,
    variables: Vec<String>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    // The file is part of the program and the example below reads it.
    serde_json::from_str(const { zeropilot_knowledge::text("environment.json") })
        .unwrap_or_else(|error| panic!("knowledge/environment.json: {error}"))
});

/// Variables that only DeepSpeed's `setup.py` reads, when it is installed.
const INSTALLATION: [&str; 3] = ["DS_BUILD_OPS", "DS_BUILD_STRING", "DS_ENABLE_NINJA"];

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    let launched = job.job.launches.iter().flat_map(|launch| &launch.variables);
    for set in job.job.exported.iter().chain(launched) {
        let is_ours = set.name.starts_with("DS_") || set.name.starts_with("DEEPSPEED_");
        let known = || KNOWN.variables.iter().map(String::as_str);
        let is_read = known().chain(INSTALLATION).any(|known| known == set.name);
        if !is_ours || is_read {
            continue;
        }
        // A name of one's own is no mistake; only what is nearly one of DeepSpeed's is.
        let close = known().find(|known| strsim::damerau_levenshtein(known, &set.name) <= 2);
        if let Some(meant) = close {
            found.here(
                Diagnostic::new(&RULE, &WORDING, "", set.value.span)
                    .with("name", set.name.as_str())
                    .with("meant", meant)
                    .with("version", KNOWN.deepspeed.as_str()),
            );
        }
    }
}
