use std::sync::LazyLock;

use serde::Deserialize;
use zeropilot_config::packages::{Packages, Release};
use zeropilot_config::syntax::Span;
use zeropilot_job::{Call, PythonScript, is_training_arguments};

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "V12",
    name: "removed-argument",
    group: Group::Versions,
    severity: Severity::Error,
    summary: Text::new(
        "an argument that transformers or TRL has removed",
        "transformers 或 TRL 已经移除的参数",
    ),
    wordings: &[&WORDING, &PARSED],
    sources: &[],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[
                ("t.py", "from transformers import TrainingArguments\nargs = TrainingArguments(output_dir='out', deepspeed='ds.json', evaluation_strategy='steps')\n"),
                ("ds.json", CONFIG),
            ])
            .packages(&[("transformers", "4.51.0")]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed ds.json --output_dir out --overwrite_output_dir --warmup_ratio 0.03")
            .files(&[
                ("t.py", "from transformers import HfArgumentParser, TrainingArguments\nargs, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"),
                ("ds.json", CONFIG),
            ])
            .packages(&[("transformers", "5.15.0")]),
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
                ("t.py", "from transformers import TrainingArguments\nargs = TrainingArguments(output_dir='out', deepspeed='ds.json', evaluation_strategy='steps')\n"),
                ("ds.json", CONFIG),
            ])
            .packages(&[("transformers", "4.50.3")]),
        // A field of the program's own.
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed ds.json --output_dir out --overwrite_output_dir True")
            .files(&[
                ("t.py", "from dataclasses import dataclass\nfrom transformers import HfArgumentParser, TrainingArguments\n@dataclass\nclass Own(TrainingArguments):\n    overwrite_output_dir: bool = False\nargs, = HfArgumentParser(Own).parse_args_into_dataclasses()\n"),
                ("ds.json", CONFIG),
            ])
            .packages(&[("transformers", "5.15.0")]),
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
        "`{class}` has no argument `{argument}` in {package} {removed} and later",
        "从 {package} {removed} 起，`{class}` 没有参数 `{argument}`",
    ),
    why: Text::new(
        "{package} {removed} removed the argument. `{class}` raises a `TypeError`, so training does not start.",
        "{package} {removed} 移除了这个参数。`{class}` 会抛 `TypeError`，训练不会开始。",
    ),
    help: HELP,
};

static PARSED: Wording = Wording {
    message: Text::new(
        "the script has no option `--{argument}` with {package} {removed} and later",
        "从 {package} {removed} 起，脚本没有选项 `--{argument}`",
    ),
    why: Text::new(
        "{package} {removed} removed the argument. The parser raises a `ValueError` about unused arguments, so training does not start.",
        "{package} {removed} 移除了这个参数。解析器会抛 `ValueError`，指出有未使用的参数，训练不会开始。",
    ),
    help: HELP,
};

const HELP: Text = Text::new(
    "{instead}, or install a release of {package} before {removed}",
    "{instead}；或安装早于 {removed} 的 {package}",
);

/// The class whose fields all training arguments have.
const BASE: &str = "TrainingArguments";

/// Calls that fail where an option of the command line belongs to none of their classes, and their arguments that prevent it.
const PARSERS: [(&str, &[&str]); 2] = [
    ("parse_args_into_dataclasses", &["return_remaining_strings", "args"]),
    ("parse_args_and_config", &["return_remaining_strings", "fail_with_unknown_args", "args"]),
];

/// Classes of transformers and TRL that parsers are made for, which have none of the arguments.
const BESIDE: [&str; 2] = ["ScriptArguments", "ModelConfig"];

/// An argument that a class had once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Removed {
    package: String,
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
    serde_json::from_str(const { zeropilot_knowledge::text("recipes/removed_arguments.json") })
        .unwrap_or_else(|error| panic!("knowledge/recipes/removed_arguments.json: {error}"))
});

impl Removed {
    /// Whether a class had it.
    fn is_of(&self, class: &str) -> bool {
        self.class == class || (self.class == BASE && is_training_arguments(class))
    }

    /// How bad it is with these packages: certain if the package is known to be without it, `None` if it is known to have it.
    fn severity(&self, packages: &Packages) -> Option<Severity> {
        let installed = packages.version(&self.package).and_then(Release::parse);
        let removed = Release::parse(&self.removed)?;
        match installed.and_then(|version| version.is_before(&removed)) {
            Some(true) => None,
            Some(false) => Some(Severity::Error),
            None => Some(Severity::Warning),
        }
    }

    fn diagnostic(
        &self,
        wording: &'static Wording,
        span: Span,
        packages: &Packages,
    ) -> Option<Diagnostic> {
        let severity = self.severity(packages)?;
        let package = if self.package == "trl" { "TRL" } else { self.package.as_str() };
        let mut diagnostic = Diagnostic::new(&RULE, wording, "", span)
            .with("package", package)
            .with("argument", self.argument.as_str())
            .with("removed", self.removed.as_str())
            .with("instead", self.instead());
        diagnostic.severity = severity;
        Some(diagnostic)
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
        let Some(text) = (job.files)(training.name) else { continue };
        // Other libraries have classes of these names, too.
        let is_its = |removed: &&Removed| text.contains(&removed.package) || text.contains("trl");
        for call in &training.script.calls {
            for removed in REMOVED.iter().filter(is_its).filter(|known| known.is_of(call.name())) {
                let Some((_, span)) = call.keyword(&removed.argument) else { continue };
                let Some(diagnostic) = removed.diagnostic(&WORDING, span, job.packages) else {
                    continue;
                };
                found.at(&training.place(span), diagnostic.with("class", call.name()));
            }
        }
        let classes = parsed(training.script, &text).unwrap_or_default();
        for said in &training.launch.given.values {
            let is_it = |removed: &&Removed| {
                removed.argument == said.name
                    && classes.iter().any(|class| removed.is_of(class))
                    && !is_own_field(&text, &said.name)
            };
            let removed = REMOVED.iter().filter(is_its).find(is_it);
            let diagnostic =
                removed.and_then(|it| it.diagnostic(&PARSED, said.place.span, job.packages));
            if let Some(diagnostic) = diagnostic.filter(|_| said.place.file.is_none()) {
                found.here(diagnostic);
            }
        }
    }
}

/// The classes that the command line is parsed into, if all of them are known and nothing else takes what is left.
fn parsed<'a>(script: &PythonScript, text: &'a str) -> Option<Vec<&'a str>> {
    let fails = |call: &Call| {
        let known = PARSERS.iter().find(|(name, _)| *name == call.name());
        known.is_some_and(|(_, unless)| {
            call.positional.is_empty()
                && !call.has_more
                && unless.iter().all(|argument| call.keyword(argument).is_none())
        })
    };
    let mut parses = script.training_arguments();
    parses.next().filter(|call| fails(call) && parses.next().is_none())?;
    let is_parser = |call: &&Call| matches!(call.name(), "HfArgumentParser" | "TrlParser");
    let mut parsers = script.calls.iter().filter(is_parser);
    let made = parsers.next().filter(|_| parsers.next().is_none())?;
    let (_, span) = made.positional.first()?;
    let mut classes = Vec::new();
    for class in names(span.of(text)?) {
        let bases = match (is_training_arguments(class), BESIDE.contains(&class)) {
            (false, false) => bases(text, class)?,
            _ => vec![class],
        };
        let is_known = |base: &&str| is_training_arguments(base) || BESIDE.contains(base);
        if !bases.iter().all(is_known) {
            return None;
        }
        classes.extend(bases);
    }
    Some(classes)
}

/// The classes that a class of a script is built on.
fn bases<'a>(text: &'a str, class: &str) -> Option<Vec<&'a str>> {
    let rest = text.lines().find_map(|line| line.strip_prefix("class ")?.strip_prefix(class))?;
    let (bases, _) = rest.rsplit_once(':')?;
    matches!(bases.chars().next(), None | Some('(')).then(|| names(bases).collect())
}

/// The names in a piece of Python, each without what it is a member of.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.');
    let names = text.split(move |letter| !is_part(letter)).filter(|name| !name.is_empty());
    names.map(|name| name.rsplit('.').next().unwrap_or(name))
}

/// Whether a class of a script has a field of this name.
fn is_own_field(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let rest = line.trim_start().strip_prefix(name);
        rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
    })
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

    #[test]
    fn classes_of_the_command_line_are_known_or_nothing_is_said() {
        let classes = |text: &str| {
            let files = |name: &str| (name == "t.py").then(|| text.to_owned());
            let launches = zeropilot_job::read(
                "torchrun t.py --deepspeed ds.json",
                &Default::default(),
                &files,
            );
            let script = launches.launches[0].script.as_ref().expect("a script");
            parsed(script, text).map(|classes| classes.join(" "))
        };
        let parser = |classes: &str, end: &str| {
            format!(
                "p = HfArgumentParser({classes})\nargs = p.parse_args_into_dataclasses({end})\n"
            )
        };
        let own =
            "class Model:\n    a: str\nclass Own(transformers.TrainingArguments):\n    b: int\n";
        for (text, expected) in [
            (parser("TrainingArguments", ""), Some("TrainingArguments")),
            (
                parser("(transformers.Seq2SeqTrainingArguments,)", ""),
                Some("Seq2SeqTrainingArguments"),
            ),
            (format!("{own}{}", parser("(Model, Own)", "")), Some("TrainingArguments")),
            (parser("(Model, TrainingArguments)", ""), None),
            (format!("class Own(Base):\n    b: int\n{}", parser("Own", "")), None),
            (parser("TrainingArguments", "return_remaining_strings=True"), None),
            (parser("TrainingArguments", "words"), None),
        ] {
            assert_eq!(classes(&text).as_deref(), expected, "{text}");
        }
        assert!(is_own_field(own, "b") && !is_own_field(own, "c"));
    }
}
