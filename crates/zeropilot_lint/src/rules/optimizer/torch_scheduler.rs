use zeropilot_config::constructors::Constructors;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O30",
    name: "torch-scheduler-wrapped",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new(
        "a PyTorch scheduler with ZeRO or 16-bit training",
        "PyTorch 的调度器与 ZeRO 或 16 位训练同时使用",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "StepLR", "params": {"step_size": 10}}, "zero_optimization": {"stage": 2}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "CosineAnnealingLR", "params": {"T_max": 100}}, "bf16": {"enabled": true}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "StepLR", "params": {"step_size": 10}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_type": "linear"}}, "zero_optimization": {"stage": 2}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the PyTorch scheduler `{name}` rejects DeepSpeed's optimizer wrapper",
        "PyTorch 的调度器 `{name}` 不接受 DeepSpeed 包装后的优化器",
    ),
    why: Text::new(
        "With ZeRO, fp16 or bf16, DeepSpeed passes the scheduler its own optimizer, which is not a `torch.optim.Optimizer`. The run exits with a `TypeError`.",
        "使用 ZeRO、fp16 或 bf16 时，DeepSpeed 把自己的优化器交给调度器，而这个优化器不是 `torch.optim.Optimizer`，训练以 `TypeError` 退出。",
    ),
    help: Text::new(
        "use one of DeepSpeed's schedulers, such as `WarmupCosineLR`, or create the scheduler in the script",
        "改用 DeepSpeed 自带的调度器（如 `WarmupCosineLR`），或在脚本里创建调度器",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["scheduler", "type"];
    let (Some(node), Some(name)) = (subject.node(path), subject.text_at(path)) else { return };
    let is_torch = Constructors::of(subject.version).torch_schedulers.contains_key(name);
    let is_wrapped = matches!(subject.stage(), Some(1..=3)) || subject.sixteen_bit().is_some();
    if is_torch && is_wrapped {
        found.push(at_value(&RULE, &WORDING, &path, node).with("name", name));
    }
}
