use zeropilot_config::constructors::Constructors;
use zeropilot_config::schema::EngineVersion;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::edit::insert_members;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O06",
    name: "untested-optimizer",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new(
        "ZeRO with an untested optimizer",
        "ZeRO 搭配了未经测试的优化器",
    ),
    wordings: &[&WORDING],
    sources: &["axolotl-ai-cloud/axolotl#2634"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}}"#,
        )
        .version("0.17.6"),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": true}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "ZeRO rejects the optimizer `{name}` unless `zero_allow_untested_optimizer` is true",
        "除非 `zero_allow_untested_optimizer` 为 true，否则 ZeRO 不接受 `{name}`",
    ),
    why: Text::new(
        "ZeRO is tested with Adam, AdamW, Adagrad, Lion and (in newer versions) Muon. With any other optimizer, DeepSpeed exits unless `zero_allow_untested_optimizer` is true.",
        "在 ZeRO 下经过测试的优化器有 Adam、AdamW、Adagrad、Lion 和（较新版本里的）Muon；使用其他优化器时，必须把 `zero_allow_untested_optimizer` 设为 true，否则 DeepSpeed 会直接退出。",
    ),
    help: Text::new(
        "add `\"zero_allow_untested_optimizer\": true`, or use one of the tested optimizers",
        "加上 `\"zero_allow_untested_optimizer\": true`，或换成经过测试的优化器",
    ),
};

/// Optimizers of the engine that are not on its own list of tested ones.
const OWN_UNTESTED: [&str; 4] = ["lamb", "muadam", "muadamw", "musgd"];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, node)) = subject.optimizer_type() else { return };
    let constructors = Constructors::of(subject.version);
    let is_untested = if constructors.knows_optimizer(name) {
        let name = name.to_lowercase();
        // 0.17 looks for Muon in a module that it does not have, and so does not list it.
        let is_muon_lost = name == "muon" && subject.version < EngineVersion::V0_18;
        OWN_UNTESTED.contains(&name.as_str()) || is_muon_lost
    } else {
        constructors.builds_optimizer(name)
    };
    let has_zero = matches!(subject.stage(), Some(1..=3));
    let is_allowed = subject
        .node(["zero_allow_untested_optimizer"])
        .is_some_and(|node| zeropilot_config::python::is_true(&node.value));
    if is_untested && has_zero && !is_allowed {
        let title = Text::new(
            "add `\"zero_allow_untested_optimizer\": true`",
            "加上 `\"zero_allow_untested_optimizer\": true`",
        );
        let fix = match subject.node(["zero_allow_untested_optimizer"]) {
            Some(switch) => Some(Edit::new(switch.span, "true")),
            None => {
                insert_members(subject, subject.root, &[("zero_allow_untested_optimizer", "true")])
            }
        };
        found.push(
            at_value(&RULE, &WORDING, &["optimizer", "type"], node)
                .with("name", name)
                .fix(fix.map(|edit| Fix::guess(title, vec![edit]))),
        );
    }
}
