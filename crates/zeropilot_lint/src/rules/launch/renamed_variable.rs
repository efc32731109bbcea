use std::sync::LazyLock;

use serde::Deserialize;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L14",
    name: "environment-variable-renamed",
    group: Group::Launch,
    severity: Severity::Note,
    summary: Text::new("an environment variable that has been renamed", "环境变量用的是旧名字"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("export NCCL_ASYNC_ERROR_HANDLING=1")],
    good: &[
        Example::job("export TORCH_NCCL_ASYNC_ERROR_HANDLING=1"),
        Example::job("export NCCL_DEBUG=INFO"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("`{old}` is now called `{new}`", "`{old}` 已改名为 `{new}`"),
    why: Text::new(
        "PyTorch {version} still reads the old name and logs a warning on every rank. A later release that drops the old name would silently ignore the setting.",
        "PyTorch {version} 还支持旧名字，但每个 rank 都会打印警告；如果以后的版本不再支持旧名字，这项设置就不再生效，而且没有提示。",
    ),
    help: Text::new("write `{new}`", "改为 `{new}`"),
};

#[derive(Deserialize)]
struct Known {
    torch: String,
    renamed: Vec<Renamed>,
}

#[derive(Deserialize)]
struct Renamed {
    old: String,
    new: String,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    // The file is part of the program and the example above reads it.
    serde_json::from_str(const { zeropilot_knowledge::text("environment_renamed.json") })
        .unwrap_or_else(|error| panic!("knowledge/environment_renamed.json: {error}"))
});

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    let launched = job.job.launches.iter().flat_map(|launch| &launch.variables);
    for set in job.job.exported.iter().chain(launched) {
        if let Some(renamed) = KNOWN.renamed.iter().find(|renamed| renamed.old == set.name) {
            found.here(
                Diagnostic::new(&RULE, &WORDING, "", set.value.span)
                    .with("old", renamed.old.as_str())
                    .with("new", renamed.new.as_str())
                    .with("version", KNOWN.torch.as_str()),
            );
        }
    }
}
