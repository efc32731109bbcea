use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use zeropilot_text::Text;

const KEY: &str = "managed_gradient_accumulation";

pub(crate) static RULE: Rule = Rule {
    code: "G15",
    name: "unmanaged-accumulation-overlap",
    group: Group::Gradients,
    severity: Severity::Error,
    summary: Text::new(
        "`managed_gradient_accumulation` is false, but another feature needs it to be true",
        "`managed_gradient_accumulation` 为 false，与其他功能冲突",
    ),
    wordings: &[&WORDING, &COMPILED],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "managed_gradient_accumulation": false, "zero_optimization": {"stage": 1, "overlap_comm": true}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "managed_gradient_accumulation": false, "zero_optimization": {"stage": 2}, "compile": {"deepcompile": true}}"#,
        )
        .script(compiled),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "managed_gradient_accumulation": false, "zero_optimization": {"stage": 1}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "managed_gradient_accumulation": false, "zero_optimization": {"stage": 2, "overlap_comm": true}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`managed_gradient_accumulation: false` does not work with `overlap_comm` in ZeRO stage {stage}",
        "ZeRO stage {stage} 下，`managed_gradient_accumulation: false` 不能与 `overlap_comm` 一起使用",
    ),
    why: Text::new(
        "Only stages that partition gradients can overlap communication while the script decides when to step. DeepSpeed raises an error at startup.",
        "由脚本决定何时更新参数时，只有切分梯度的 stage 才能重叠通信；否则 DeepSpeed 启动时报错。",
    ),
    help: Text::new(
        "set `overlap_comm` to false, or use stage 2 or 3",
        "把 `overlap_comm` 设为 false，或改用 stage 2/3",
    ),
};

static COMPILED: Wording = Wording {
    message: Text::new(
        "`managed_gradient_accumulation: false` does not work with DeepCompile",
        "`managed_gradient_accumulation: false` 不能与 DeepCompile 一起使用",
    ),
    why: Text::new(
        "With DeepCompile, DeepSpeed rejects `managed_gradient_accumulation: false` at startup and exits with an `AssertionError`.",
        "启用 DeepCompile 时，DeepSpeed 不接受 `managed_gradient_accumulation: false`，启动时以 `AssertionError` 退出。",
    ),
    help: Text::new(
        "remove `managed_gradient_accumulation`, or set `compile.deepcompile` to false",
        "删掉 `managed_gradient_accumulation`，或把 `compile.deepcompile` 设为 false",
    ),
};

fn compiled() -> Script {
    Script { is_compiled: true, ..Script::default() }
}

/// Whether DeepSpeed exits at startup because it cannot compile what the script accumulates.
pub(crate) fn is_rejected_compiled(subject: &Subject<'_>) -> bool {
    let is = |path: &[&str], value: bool| {
        subject.node(path.iter().copied()).is_some_and(|node| node.value == Value::Bool(value))
    };
    subject.schema().reads_top_level(KEY)
        && is(&[KEY], false)
        && is(&["compile", "deepcompile"], true)
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = [KEY];
    let is_read = subject.schema().reads_top_level(KEY);
    let Some(node) = subject.node(path).filter(|node| node.value == Value::Bool(false)) else {
        return;
    };
    if is_rejected_compiled(subject) {
        found.push(at_value(&RULE, &COMPILED, &path, node));
    }
    let Some(stage @ 0..=1) = subject.stage() else { return };
    if is_read && subject.zero_switch("overlap_comm") == Some(true) {
        found.push(at_value(&RULE, &WORDING, &path, node).with("stage", usize::from(stage)));
    }
}
