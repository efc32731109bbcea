//! K28: measuring is left on.
//!
//! # What it does
//! Finds `wall_clock_breakdown` and `memory_breakdown` switched on.
//!
//! # Why is this bad?
//! Both wait for the device around every part of every step, so that communication and computation
//! no longer overlap. They belong into a measurement, not into a training.

use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::language::Text;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;

pub(crate) static RULE: Rule = Rule {
    code: "K28",
    name: "timers-left-on",
    group: Group::Keys,
    severity: Severity::Note,
    summary: Text::new("measuring is left on", "计时开关没有关"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(r#"{"train_batch_size": 8, "wall_clock_breakdown": true}"#)],
    good: &[Example::new(r#"{"train_batch_size": 8, "wall_clock_breakdown": false}"#)],
    check: Some(check),
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` slows every step: it waits for the device to measure",
        "`{path}` 会拖慢每一步：测量时要等设备执行完",
    ),
    why: Text::new(
        "the engine waits for the device around forward, backward and step, so that nothing overlaps any more.",
        "引擎会在前向、反向和参数更新前后等待设备，计算和通信无法再重叠。",
    ),
    help: Text::new("remove it once you have measured", "测完就删掉"),
};

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for key in ["wall_clock_breakdown", "memory_breakdown"] {
        let Some(node) = subject.root.get(key) else { continue };
        if node.value == Value::Bool(true) {
            found.push(at_value(&RULE, &WORDING, &[key], node));
        }
    }
}
