use std::sync::LazyLock;

use serde::Deserialize;
use zeropilot_config::packages::{Packages, Release};

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "V12",
    name: "removed-trl-argument",
    group: Group::Versions,
    severity: Severity::Error,
    summary: Text::new("an argument that TRL has removed", "TRL 已经移除的参数"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[
                ("t.py", "from trl import SFTConfig\nargs = SFTConfig(output_dir='out', deepspeed='ds.json', max_seq_length=2048)\n"),
                ("ds.json", CONFIG),
            ])
            .packages(&[("trl", "1.16.0")]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "from trl import GRPOConfig\nargs = GRPOConfig(output_dir='out', deepspeed='ds.json', max_prompt_length=512)\n"),
            ("ds.json", CONFIG),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[
                ("t.py", "from trl import SFTConfig\nargs = SFTConfig(output_dir='out', deepspeed='ds.json', max_length=2048)\n"),
                ("ds.json", CONFIG),
            ])
            .packages(&[("trl", "1.16.0")]),
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[
                ("t.py", "from trl import SFTConfig\nargs = SFTConfig(output_dir='out', deepspeed='ds.json', max_seq_length=2048)\n"),
                ("ds.json", CONFIG),
            ])
            .packages(&[("trl", "0.19.1")]),
    ],
    is_no_op: false,
};

const CONFIG: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "`{class}` has no argument `{argument}` in TRL {removed} and later",
        "从 TRL {removed} 起，`{class}` 没有参数 `{argument}`",
    ),
    why: Text::new(
        "TRL {removed} removed the argument. `{class}` raises a `TypeError`, so training does not start.",
        "TRL {removed} 移除了这个参数。`{class}` 会抛 `TypeError`，训练不会开始。",
    ),
    help: Text::new(
        "{instead}, or install a TRL release before {removed}",
        "{instead}；或安装早于 {removed} 的 TRL",
    ),
};

/// An argument that a class had once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Removed {
    class: String,
    argument: String,
    /// The first release without it.
    removed: String,
    /// The argument that replaces it.
    #[serde(default)]
    new: Option<String>,
}

static REMOVED: LazyLock<Vec<Removed>> = LazyLock::new(|| {
    // The file is part of the program and a test reads it.
    serde_json::from_str(const { zeropilot_knowledge::text("recipes/trl_removed.json") })
        .unwrap_or_else(|error| panic!("knowledge/recipes/trl_removed.json: {error}"))
});

impl Removed {
    /// How bad it is with these packages: certain if TRL is known to be without it, `None` if it is known to have it.
    fn severity(&self, packages: &Packages) -> Option<Severity> {
        let installed = packages.version("trl").and_then(Release::parse);
        let removed = Release::parse(&self.removed)?;
        match installed.and_then(|version| version.is_before(&removed)) {
            Some(true) => None,
            Some(false) => Some(Severity::Error),
            None => Some(Severity::Warning),
        }
    }

    fn instead(&self) -> Argument {
        match &self.new {
            Some(new) => Argument::Nested(
                Text::new("use `{new}`", "改用 `{new}`"),
                vec![("new", new.as_str().into())],
            ),
            None => {
                let words = Text::new("remove `{argument}`", "删掉 `{argument}`");
                Argument::Nested(words, vec![("argument", self.argument.as_str().into())])
            }
        }
    }
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        // Other libraries have classes of these names, too.
        if !(job.files)(training.name).is_some_and(|text| text.contains("trl")) {
            continue;
        }
        for call in &training.script.calls {
            for removed in REMOVED.iter().filter(|removed| removed.class == call.name()) {
                let Some((_, span)) = call.keyword(&removed.argument) else { continue };
                let Some(severity) = removed.severity(job.packages) else { continue };
                let mut diagnostic = Diagnostic::new(&RULE, &WORDING, "", span)
                    .with("class", removed.class.as_str())
                    .with("argument", removed.argument.as_str())
                    .with("removed", removed.removed.as_str())
                    .with("instead", removed.instead());
                diagnostic.severity = severity;
                found.at(&training.place(span), diagnostic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_can_be_compared_and_no_argument_is_listed_twice() {
        let mut names: Vec<_> =
            REMOVED.iter().map(|removed| (&removed.class, &removed.argument)).collect();
        assert!(names.is_sorted());
        names.dedup();
        assert_eq!(names.len(), REMOVED.len());
        for removed in REMOVED.iter() {
            assert!(Release::parse(&removed.removed).is_some(), "{}", removed.removed);
        }
        let prompt = REMOVED.iter().find(|removed| {
            removed.class == "GRPOConfig" && removed.argument == "max_prompt_length"
        });
        let severity =
            |trl: &str| prompt.expect("it").severity(&Packages::from_iter([("trl", trl)]));
        assert_eq!(severity("1.16.0"), Some(Severity::Error));
        assert_eq!(severity("0.28.0.dev0"), Some(Severity::Warning));
        assert_eq!(severity("0.27.2"), None);
        assert_eq!(prompt.expect("it").severity(&Packages::default()), Some(Severity::Warning));
    }
}
