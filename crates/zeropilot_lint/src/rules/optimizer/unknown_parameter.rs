use zeropilot_config::constructors::Constructors;
use zeropilot_config::constructors::Place;

use super::super::auto::misspelt::did_you_mean;
use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::reading::Device;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use crate::suggestion::suggest;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O18",
    name: "unknown-optimizer-parameter",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new("a parameter that the optimizer does not have", "优化器不接受的参数"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "beta": [0.9, 0.95]}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 1e-4, "betas": [0.9, 0.95]}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "fused": true}}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95], "eps": 1e-8, "bias_correction": true}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": true, "fused": true}}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{name}` has no parameter `{key}`{nearest}",
        "`{name}` 不接受参数 `{key}`{nearest}",
    ),
    why: Text::new(
        "DeepSpeed passes `optimizer.params` unchanged to the constructor, which fails with `unexpected keyword argument`.",
        "DeepSpeed 把 `optimizer.params` 原样传给构造函数，多余的参数会直接报 `unexpected keyword argument`。",
    ),
    help: Text::new(
        "correct the name or remove the parameter; valid parameters are {known}",
        "改正参数名或删掉它；可用的参数有 {known}",
    ),
};

/// Parameters that the engine takes out before it calls the constructor.
const TAKEN_OUT: [&str; 3] = ["torch_adam", "adam_w_mode", "fp32_optimizer_states"];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, _)) = subject.optimizer_type() else { return };
    let constructors = Constructors::of(subject.version);
    let is_adam = matches!(name.to_lowercase().as_str(), "adam" | "adamw");
    let place = place(subject, is_adam);
    let Some(parameters) = place.and_then(|place| constructors.optimizer(name, place)) else {
        return;
    };
    for member in subject.members_at(["optimizer", "params"]) {
        let key = member.key.as_str();
        let is_taken_out = is_adam && TAKEN_OUT.contains(&key);
        if parameters.takes(key) || is_taken_out || key == "max_grad_norm" {
            continue;
        }
        let meant = suggest(key, parameters.names());
        let known = parameters.names().map(str::to_owned).collect();
        found.push(
            at_member(&RULE, &WORDING, &["optimizer", "params", key], member)
                .with("name", name)
                .with("nearest", did_you_mean(meant.as_deref()))
                .with("known", Argument::Words(known)),
        );
    }
}

/// Which implementation the engine builds, if the config settles it.
fn place(subject: &Subject<'_>, is_adam: bool) -> Option<Place> {
    if is_adam && subject.is_on(["optimizer", "params", "torch_adam"]) {
        return Some(Place::Torch);
    }
    if subject.zero().is_some_and(|zero| zero.get("zenflow").is_some()) {
        return None;
    }
    match subject.device("offload_optimizer")? {
        Device::None => Some(Place::Gpu),
        Device::Cpu | Device::Nvme => Some(Place::Cpu),
    }
}
