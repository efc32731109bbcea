use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::{Node, Value};

use crate::diagnostic::Diagnostic;
use crate::reading::{at_value, number};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

use super::optimizer_reads_rate;

pub(crate) static RULE: Rule = Rule {
    code: "O32",
    name: "optimizer-parameter-value",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new("an invalid value for an optimizer parameter", "优化器参数的值无效"),
    wordings: &[&NULL, &NO_NUMBER, &BETAS, &RANGE],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": null, "torch_adam": true}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": "high", "torch_adam": true}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001, "betas": [0.9], "torch_adam": true}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001, "betas": [0.9, 1.0], "torch_adam": true}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": -1, "torch_adam": true}}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001, "betas": [0.9, 0.95], "torch_adam": true}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": null}}, "scheduler": {"type": "LRRangeTest", "params": {}}}"#,
        ),
    ],
    is_no_op: false,
};

static NULL: Wording = Wording {
    message: Text::new(
        "`{path}` is null, but the optimizer needs a number",
        "`{path}` 是 null，优化器需要数字",
    ),
    why: Text::new(
        "null does not mean the default. The run exits with a `TypeError` when DeepSpeed creates the optimizer or in the first step.",
        "null 并不表示默认值。训练会在创建优化器时或第一步以 `TypeError` 退出。",
    ),
    help: Text::new(
        "set `{path}` to a number, or remove the key",
        "把 `{path}` 设为数字，或删掉这个键",
    ),
};

static NO_NUMBER: Wording = Wording {
    message: Text::new(
        "`{path}` is {value}, but the optimizer needs a number",
        "`{path}` 是 {value}，优化器需要数字",
    ),
    why: Text::new(
        "DeepSpeed passes the value unchanged. The run exits with a `TypeError` when DeepSpeed creates the optimizer or in the first step.",
        "DeepSpeed 把这个值原样传入。训练会在创建优化器时或第一步以 `TypeError` 退出。",
    ),
    help: Text::new(
        "set `{path}` to a number, or remove the key",
        "把 `{path}` 设为数字，或删掉这个键",
    ),
};

static BETAS: Wording = Wording {
    message: Text::new(
        "`{path}` has {count} numbers, but Adam needs two",
        "`{path}` 有 {count} 个数，Adam 需要两个",
    ),
    why: Text::new(
        "Adam keeps running means of the gradients and of their squares, with one beta for each. The run exits with an error when Adam reads the betas.",
        "Adam 要计算梯度的滑动平均和梯度平方的滑动平均，各用一个 beta。个数不对，Adam 读取时就会报错退出。",
    ),
    help: Text::new(
        "write both betas in `{path}`, such as `[0.9, 0.999]`",
        "在 `{path}` 里写两个 beta，例如 `[0.9, 0.999]`",
    ),
};

static RANGE: Wording = Wording {
    message: Text::new(
        "`{path}` is {value}, which PyTorch rejects",
        "`{path}` 是 {value}，PyTorch 不接受",
    ),
    why: Text::new(
        "PyTorch accepts a learning rate of 0 or more, and betas from 0 up to but not including 1. For any other value, it raises a `ValueError`.",
        "PyTorch 要求学习率不小于 0，beta 在 0 到 1 之间（不含 1），否则以 `ValueError` 退出。",
    ),
    help: Text::new("set `{path}` to a number in the valid range", "把 `{path}` 设为范围内的数"),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, _)) = subject.optimizer_type() else { return };
    if !matches!(name.to_lowercase().as_str(), "adam" | "adamw") {
        return;
    }
    let is_torch = subject.is_on(["optimizer", "params", "torch_adam"]);
    for key in ["lr", "eps", "weight_decay"] {
        let path = ["optimizer", "params", key];
        let Some(node) = subject.node(path) else { continue };
        if key == "lr" && !optimizer_reads_rate(subject) {
            continue;
        }
        let wording = match &node.value {
            Value::Null => &NULL,
            _ if is_no_number(node, subject.front_end) => &NO_NUMBER,
            _ if key == "lr" && is_torch && number(node).is_some_and(|rate| rate < 0.0) => &RANGE,
            _ => continue,
        };
        let told = at_value(&RULE, wording, &path, node);
        found.push(told.with("value", subject.text_of(node.span)));
    }
    let path = ["optimizer", "params", "betas"];
    let Some(node) = subject.node(path) else { return };
    let Value::Array(betas) = &node.value else { return };
    if betas.len() < 2 {
        found.push(at_value(&RULE, &BETAS, &path, node).with("count", betas.len()));
    }
    let is_outside = |node: &&Node| number(node).is_some_and(|beta| !(0.0..1.0).contains(&beta));
    if let Some(beta) = betas.iter().find(is_outside).filter(|_| is_torch) {
        let told = at_value(&RULE, &RANGE, &path, beta);
        found.push(told.with("value", subject.text_of(beta.span)));
    }
}

/// Quoted numbers are a rule of their own. The HF Trainer refuses what differs from its own arguments before DeepSpeed sees it.
fn is_no_number(node: &Node, front_end: FrontEnd) -> bool {
    match &node.value {
        Value::Str(text) => {
            text != "auto"
                && text.trim().parse::<f64>().is_err()
                && front_end != FrontEnd::HfTrainer
        }
        Value::Array(_) | Value::Object(_) => true,
        _ => false,
    }
}
