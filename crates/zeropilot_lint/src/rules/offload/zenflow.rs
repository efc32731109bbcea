use num_traits::ToPrimitive as _;
use zeropilot_config::syntax::{Member, Value};

use super::super::batch::{ACCUMULATION, MICRO, TRAIN};
use crate::diagnostic::Diagnostic;
use crate::reading::{Device, ZERO, at_member};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F19",
    name: "zenflow-settings",
    group: Group::Offload,
    severity: Severity::Error,
    summary: Text::new(
        "ZenFlow settings that DeepSpeed rejects or that break training",
        "DeepSpeed 不接受、或会破坏训练的 ZenFlow 设置",
    ),
    wordings: &[
        &OVERWRITTEN,
        &OPEN,
        &ON_DEVICE,
        &NO_PARAMETERS,
        &NOT_A_NUMBER,
        &TOO_SHORT,
        &REPLACED,
        &NO_OVERLAP,
    ],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"select_interval": 2}}, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"select_strategy": "step"}}, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "zenflow": {}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {}}, "optimizer": {"type": "AdamW"}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"select_strategy": "step", "select_interval": 4}}, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"select_strategy": "step", "select_interval": 4, "update_interval": 10}}, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"offload": true, "update_interval": 2}}, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}}"#,
        ),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"update_interval": 2}}, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}}"#,
        ),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"update_interval": 2}}, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}}"#,
        ),
    ],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"select_strategy": "step", "select_interval": 4, "update_interval": 2}}, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}}"#,
    )],
    is_no_op: false,
};

static OVERWRITTEN: Wording = Wording {
    message: Text::new(
        "a number in `select_interval` needs `select_strategy` `step` or `epoch`",
        "`select_interval` 写数字时，`select_strategy` 必须是 `step` 或 `epoch`",
    ),
    why: Text::new(
        "With the strategy `auto`, DeepSpeed sets the interval itself. If you write a number, DeepSpeed raises a warning as an exception, and the run exits.",
        "策略为 `auto` 时由 DeepSpeed 决定间隔；如果写了数字，DeepSpeed 会把警告当作异常抛出，训练随之退出。",
    ),
    help: Text::new(
        "add `\"select_strategy\": \"step\"`, or remove `select_interval`",
        "加上 `\"select_strategy\": \"step\"`，或删掉 `select_interval`",
    ),
};

static OPEN: Wording = Wording {
    message: Text::new(
        "`select_strategy` `{strategy}` needs a number in `select_interval`",
        "`select_strategy` 为 `{strategy}` 时，`select_interval` 必须是数字",
    ),
    why: Text::new(
        "DeepSpeed sets the interval itself only with the strategy `auto`. With another strategy and no number, it exits at startup.",
        "只有策略为 `auto` 时，DeepSpeed 才自动设定间隔；其他策略没有写数字时，DeepSpeed 启动时就会退出。",
    ),
    help: Text::new(
        "add `\"select_interval\": 4`, or another number",
        "加上 `\"select_interval\": 4` 或其他数字",
    ),
};

static ON_DEVICE: Wording = Wording {
    message: Text::new(
        "`zenflow` needs `offload_optimizer` with device `cpu` in ZeRO stage {stage}",
        "在 ZeRO stage {stage} 下，`zenflow` 需要 `offload_optimizer`，device 为 `cpu`",
    ),
    why: Text::new(
        "ZenFlow updates part of the weights on the CPU. Without CPU offload, DeepSpeed raises an error at startup in stages 1 and 2.",
        "ZenFlow 在 CPU 上更新一部分权重；没有 CPU 卸载时，DeepSpeed 在 stage 1 和 2 下启动时报错。",
    ),
    help: Text::new(
        "add `\"offload_optimizer\": {{\"device\": \"cpu\"}}`, or remove `zenflow`",
        "加上 `\"offload_optimizer\": {{\"device\": \"cpu\"}}`，或删掉 `zenflow`",
    ),
};

static NO_PARAMETERS: Wording = Wording {
    message: Text::new(
        "`zenflow` needs `optimizer.params` in ZeRO stage {stage}",
        "在 ZeRO stage {stage} 下，`zenflow` 需要 `optimizer.params`",
    ),
    why: Text::new(
        "In stages 1 and 2, ZenFlow creates a second optimizer from `optimizer.params`, even if the script passes its own optimizer. Without these parameters, DeepSpeed exits with `TypeError: … argument after ** must be a mapping, not NoneType`.",
        "在 stage 1 和 2 下，ZenFlow 用 `optimizer.params` 再建一个优化器，脚本自带优化器时也一样。缺少这些参数时，DeepSpeed 报错退出：`TypeError: … argument after ** must be a mapping, not NoneType`。",
    ),
    help: Text::new(
        "add `\"optimizer\": {{\"type\": \"AdamW\", \"params\": {{\"lr\": 1e-4}}}}`, with your own values",
        "加上 `\"optimizer\": {{\"type\": \"AdamW\", \"params\": {{\"lr\": 1e-4}}}}`，数值按需修改",
    ),
};

static NOT_A_NUMBER: Wording = Wording {
    message: Text::new(
        "ZenFlow makes the weights NaN unless `update_interval` is a number",
        "`update_interval` 不是数字时，ZenFlow 会让权重变成 NaN",
    ),
    why: Text::new(
        "With `auto`, the default, DeepSpeed sets the gradient accumulation steps to 0, and `engine.backward` divides the loss by this number. In the first step, the gradients become infinite.",
        "默认的 `auto` 会把梯度累积步数设为 0，`engine.backward` 再把 loss 除以它，第一步的梯度就是无穷大。",
    ),
    help: Text::new(
        "add `\"update_interval\": 4`, or another number; this key replaces `gradient_accumulation_steps`",
        "加上 `\"update_interval\": 4` 或其他数字；这个键会取代 `gradient_accumulation_steps`",
    ),
};

static TOO_SHORT: Wording = Wording {
    message: Text::new(
        "`select_interval` {select} is smaller than `update_interval` {update}",
        "`select_interval` {select} 小于 `update_interval` {update}",
    ),
    why: Text::new(
        "ZenFlow cannot select columns again before it has updated the last selected columns. DeepSpeed exits with a `ValueError` at startup.",
        "上一次选出的列还没有更新完，ZenFlow 不能重新选择。DeepSpeed 启动时以 `ValueError` 退出。",
    ),
    help: Text::new(
        "set `select_interval` to {update} or more",
        "把 `select_interval` 设为不小于 {update}",
    ),
};

static REPLACED: Wording = Wording {
    message: Text::new(
        "ZenFlow's `update_interval` {update} replaces `gradient_accumulation_steps` {steps}",
        "ZenFlow 的 `update_interval` {update} 会取代 `gradient_accumulation_steps` {steps}",
    ),
    why: Text::new(
        "DeepSpeed loads the batch sizes from the config and then accumulates gradients over {update} micro-steps. The actual global batch size differs from `train_batch_size`.",
        "DeepSpeed 先按配置加载 batch 大小，之后却按 {update} 个 micro step 累积梯度，实际的全局 batch 与 `train_batch_size` 不同。",
    ),
    help: Text::new(
        "set `update_interval` and `gradient_accumulation_steps` to the same number",
        "把 `update_interval` 和 `gradient_accumulation_steps` 设为同一个数",
    ),
};

static NO_OVERLAP: Wording = Wording {
    message: Text::new(
        "ZenFlow's `offload` needs `overlap_comm` in ZeRO stage {stage}",
        "在 ZeRO stage {stage} 下，ZenFlow 的 `offload` 需要 `overlap_comm`",
    ),
    why: Text::new(
        "DeepSpeed exits at startup if `overlap_comm` is off. Below stage 3, this key is off by default.",
        "`overlap_comm` 关闭时，DeepSpeed 启动时就会退出。stage 低于 3 时，这个键默认关闭。",
    ),
    help: Text::new(
        "add `\"overlap_comm\": true` to `zero_optimization`, or remove ZenFlow's `offload`",
        "在 `zero_optimization` 里加上 `\"overlap_comm\": true`，或去掉 ZenFlow 的 `offload`",
    ),
};

/// Whether the section has nothing that ZenFlow could make its own optimizer from.
fn lacks_parameters(subject: &Subject<'_>) -> bool {
    let params = subject.node(["optimizer", "params"]);
    params.is_none_or(|params| matches!(params.value, Value::Null))
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = [ZERO, "zenflow"];
    let is_read = subject.reads(ZERO, "zenflow");
    let Some((_, section)) = subject.member(&path) else { return };
    if !is_read || !matches!(section.value.value, Value::Object(_)) {
        return;
    }
    if let Some(stage @ 1..=2) = subject.stage() {
        let wording = match subject.device("offload_optimizer") {
            Some(Device::None) => Some(&ON_DEVICE),
            Some(Device::Cpu) if lacks_parameters(subject) => Some(&NO_PARAMETERS),
            _ => None,
        };
        found.extend(wording.map(|wording| {
            at_member(&RULE, wording, &path, section).with("stage", usize::from(stage))
        }));
    }
    intervals(subject, section, found);
    let strategy = match section.value.get("select_strategy").map(|node| &node.value) {
        None => "auto",
        Some(Value::Str(strategy)) => strategy.as_str(),
        Some(_) => return,
    };
    let interval = section.value.member("select_interval");
    match interval.map(|member| (member, &member.value.value)) {
        Some((member, Value::Int(_))) if strategy == "auto" => {
            let path = [ZERO, "zenflow", "select_interval"];
            found.push(at_member(&RULE, &OVERWRITTEN, &path, member));
        }
        None | Some((_, Value::Str(_))) if strategy != "auto" => {
            found.push(at_member(&RULE, &OPEN, &path, section).with("strategy", strategy));
        }
        _ => {}
    }
}

/// How often columns are updated and chosen, and what else must be on.
fn intervals(subject: &Subject<'_>, section: &Member, found: &mut Vec<Diagnostic>) {
    let path = [ZERO, "zenflow"];
    let whole = |key: &str| match section.value.member(key).map(|member| &member.value.value) {
        Some(Value::Int(number)) => number.to_i64(),
        _ => None,
    };
    let update = section.value.member("update_interval");
    let is_open = update.is_none_or(|member| matches!(member.value.value, Value::Str(_)));
    let strategy = section.value.get("select_strategy").map(|node| &node.value);
    let by_step = matches!(strategy, Some(Value::Str(strategy)) if strategy == "step");
    if is_open && matches!(subject.device("offload_optimizer"), Some(Device::Cpu)) {
        let told = at_member(&RULE, &NOT_A_NUMBER, &path, update.unwrap_or(section));
        found.push(told.severity(Severity::Warning));
    }
    if by_step
        && let (Some(select), Some(update)) = (whole("select_interval"), whole("update_interval"))
        && 0 < select
        && select < update
    {
        let told = at_member(&RULE, &TOO_SHORT, &path, section);
        found.push(told.with("select", i128::from(select)).with("update", i128::from(update)));
    }
    let is_there = |key| subject.root.get(key).is_some();
    let steps = match subject.root.get(ACCUMULATION).map(|node| &node.value) {
        Some(Value::Int(steps)) => steps.to_i64(),
        None if is_there(TRAIN) != is_there(MICRO) => Some(1),
        _ => None,
    };
    // Without CPU offload, stages 1 and 2 do not come that far.
    let starts = !matches!(subject.stage(), Some(1..=2))
        || subject.device("offload_optimizer") != Some(Device::None);
    if let (Some(update), Some(steps)) = (whole("update_interval"), steps)
        && update != steps
        && starts
    {
        let told = at_member(&RULE, &REPLACED, &path, section).severity(Severity::Note);
        found.push(told.with("update", i128::from(update)).with("steps", i128::from(steps)));
    }
    let offloads = section.value.get("offload").is_some_and(|it| it.value == Value::Bool(true));
    let overlaps = subject.zero_switch("overlap_comm") == Some(true);
    if let Some(stage @ 1..=2) = subject.stage()
        && offloads
        && !overlaps
        && subject.device("offload_optimizer") == Some(Device::Cpu)
    {
        found.push(at_member(&RULE, &NO_OVERLAP, &path, section).with("stage", usize::from(stage)));
    }
}
