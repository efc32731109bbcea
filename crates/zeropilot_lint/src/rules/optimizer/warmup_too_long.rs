use super::scheduler_parameters::parameters;
use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O22",
    name: "warmup-longer-than-training",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new(
        "the warmup is longer than the whole schedule",
        "warmup 比整个学习率调度还长",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 1000, "total_num_steps": 100, "warmup_max_lr": 1e-4, "warmup_type": "linear"}}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 10, "total_num_steps": 100, "warmup_max_lr": 1e-4, "warmup_type": "linear"}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`warmup_num_steps` {warmup} is more than `total_num_steps` {total}",
        "`warmup_num_steps` {warmup} 大于 `total_num_steps` {total}",
    ),
    why: Text::new(
        "Training ends before the warmup does, so the learning rate never reaches its peak. DeepSpeed writes one line to the log and continues.",
        "训练在 warmup 完成之前就结束了，学习率到不了峰值。DeepSpeed 只在日志里写一行就继续。",
    ),
    help: Text::new(
        "count `warmup_num_steps` and `total_num_steps` in optimizer steps over the entire training, and correct the wrong one",
        "`warmup_num_steps` 和 `total_num_steps` 都按整个训练的参数更新步数计，改正写错的值",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["scheduler", "params", "warmup_num_steps"];
    let total = subject.node(["scheduler", "params", "total_num_steps"]);
    let (Some(warmup), Some(total)) = (subject.node(path), total) else { return };
    if let (Some(steps), Some(all)) = (number(warmup), number(total))
        && steps > all
        && all > 0.0
        && parameters(subject).is_some_and(|(name, _)| name.starts_with("Warmup"))
    {
        found.push(
            at_value(&RULE, &WORDING, &path, warmup)
                .with("warmup", subject.text_of(warmup.span))
                .with("total", subject.text_of(total.span))
                .related(total.span, Text::new("total training steps", "训练总步数")),
        );
    }
}
