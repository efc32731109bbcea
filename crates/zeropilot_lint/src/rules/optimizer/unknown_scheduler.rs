use zeropilot_config::constructors::Constructors;
use zeropilot_config::syntax::Value;

use super::super::auto::misspelt::did_you_mean;
use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use crate::suggestion::suggest;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O12",
    name: "unknown-scheduler",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new(
        "a learning rate scheduler that DeepSpeed does not have",
        "DeepSpeed 没有的学习率调度器",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/transformers#24359"],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "scheduler": {"type": "cosine", "params": {}}}"#),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "warmuplr", "params": {"warmup_num_steps": 10, "warmup_type": "linear"}}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_type": "linear"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "CosineAnnealingLR", "params": {"T_max": 100}}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "DeepSpeed has no scheduler `{name}`{nearest}",
        "DeepSpeed 没有 `{name}` 这个调度器{nearest}",
    ),
    why: Text::new(
        "DeepSpeed looks for a class with exactly this name among its own schedulers and in `torch.optim.lr_scheduler`, finds none and exits. PyTorch schedulers work only in fp32 without ZeRO; otherwise, they reject DeepSpeed's optimizer with a `TypeError`.",
        "DeepSpeed 在自己的调度器和 `torch.optim.lr_scheduler` 里按类名（区分大小写）查找，找不到就退出。PyTorch 的调度器只能用于不开 ZeRO 的 fp32 训练；其他情况下，它们会以 `TypeError` 拒绝 DeepSpeed 的优化器。",
    ),
    help: Text::new(
        "set `scheduler.type` to one of {known}",
        "把 `scheduler.type` 设为以下之一：{known}",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(node) = subject.node(["scheduler", "type"]) else { return };
    let Value::Str(name) = &node.value else { return };
    let constructors = Constructors::of(subject.version);
    let own = || constructors.schedulers.keys().map(String::as_str);
    let is_torch = constructors.torch_schedulers.contains_key(name);
    if name == "auto" || is_torch || own().any(|known| known == name) {
        return;
    }
    let meant = own()
        .find(|known| known.eq_ignore_ascii_case(name))
        .map(str::to_owned)
        .or_else(|| suggest(name, own()));
    let title = Text::new("write `{meant}`", "改为 `{meant}`");
    let fix = meant
        .as_ref()
        .map(|meant| Fix::guess(title, vec![Edit::new(node.span, format!("\"{meant}\""))]));
    found.push(
        at_value(&RULE, &WORDING, &["scheduler", "type"], node)
            .with("name", name.as_str())
            .with("nearest", did_you_mean(meant.as_deref()))
            .with("known", Argument::Words(own().map(str::to_owned).collect()))
            .with("meant", meant.unwrap_or_default())
            .fix(fix),
    );
}
