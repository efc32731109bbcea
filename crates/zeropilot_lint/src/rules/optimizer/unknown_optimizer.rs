use zeropilot_config::constructors::Constructors;

use super::super::auto::misspelt::did_you_mean;
use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::versions::removed_optimizer::is_one_bit;
use crate::subject::Subject;
use crate::suggestion::suggest;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O17",
    name: "unknown-optimizer",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new("an optimizer that DeepSpeed does not have", "DeepSpeed 没有的优化器"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdmaW", "params": {"lr": 1e-4}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "adamw_torch", "params": {"lr": 1e-4}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "sgd", "params": {"lr": 1e-4}}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "adamW", "params": {"lr": 1e-4}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 1e-4}}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "DeepSpeed has no optimizer `{name}`{nearest}",
        "DeepSpeed 没有 `{name}` 这个优化器{nearest}",
    ),
    why: Text::new(
        "DeepSpeed looks for the name among its own optimizers and, case-sensitively, in `torch.optim`. If neither has the name, DeepSpeed exits with an error.",
        "DeepSpeed 先在自己的优化器里找，再到 `torch.optim` 里找（区分大小写），都找不到就报错退出。",
    ),
    help: Text::new(
        "set `optimizer.type` to one of {known}, or to the exact name of a `torch.optim` class",
        "把 `optimizer.type` 设为以下之一：{known}；或者写 `torch.optim` 里的类名，大小写要一致",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, node)) = subject.optimizer_type() else { return };
    let constructors = Constructors::of(subject.version);
    if name == "auto" || constructors.builds_optimizer(name) || is_one_bit(name) {
        return;
    }
    let meant = constructors
        .optimizer_names()
        .find(|known| known.eq_ignore_ascii_case(name))
        .map(str::to_owned)
        .or_else(|| suggest(name, constructors.optimizer_names()));
    let title = Text::new("write `{meant}`", "改为 `{meant}`");
    let fix = meant
        .as_ref()
        .map(|meant| Fix::guess(title, vec![Edit::new(node.span, format!("\"{meant}\""))]));
    found.push(
        at_value(&RULE, &WORDING, &["optimizer", "type"], node)
            .with("name", name)
            .with("nearest", did_you_mean(meant.as_deref()))
            .with("known", Argument::Words(constructors.deepspeed_optimizers.clone()))
            .with("meant", meant.unwrap_or_default())
            .fix(fix),
    );
}
