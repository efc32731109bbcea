use num_traits::ToPrimitive as _;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K29",
    name: "autotuning-left-on",
    group: Group::Keys,
    severity: Severity::Warning,
    summary: Text::new(
        "with `autotuning` enabled, the run exits after a few steps",
        "启用 `autotuning` 后，训练几步就会退出",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "autotuning": {"enabled": true}}"#),
        Example::new(
            r#"{"train_batch_size": 8, "autotuning": {"enabled": true, "end_profile_step": 50}}"#,
        ),
    ],
    good: &[
        Example::new(r#"{"train_batch_size": 8, "autotuning": {"enabled": false}}"#),
        Example::new(r#"{"train_batch_size": 8, "autotuning": {"enabled": true}}"#)
            .script(started_by_the_autotuner),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "a run without `deepspeed --autotuning` exits in step {step} with exit code 0",
        "如果不用 `deepspeed --autotuning` 启动，训练会在第 {step} 步退出，退出码是 0",
    ),
    why: Text::new(
        "With `autotuning` enabled, DeepSpeed treats every run as an experiment. It measures until `end_profile_step` and then exits as if the run had succeeded.",
        "启用 `autotuning` 后，DeepSpeed 把每次运行都当成一次试验：测到 `end_profile_step` 就退出程序，看起来像正常结束。",
    ),
    help: Text::new(
        "for training, set `autotuning.enabled` to false or remove `autotuning`",
        "正式训练时把 `autotuning.enabled` 设为 false，或删掉 `autotuning`",
    ),
};

pub(crate) fn started_by_the_autotuner() -> Script {
    Script { is_autotuned: true, ..Script::default() }
}

fn default_of_the_engine(subject: &Subject<'_>) -> Option<u64> {
    subject.schema().resolved_defaults.get("autotuning_config")?["end_profile_step"].as_u64()
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if !subject.is_for_autotuner() || subject.script.is_autotuned {
        return;
    }
    let path = ["autotuning", "enabled"];
    let Some(node) = subject.node(path) else { return };
    let written = subject.node(["autotuning", "end_profile_step"]);
    let last = match written.map(|node| &node.value) {
        None => default_of_the_engine(subject),
        Some(Value::Int(step)) => step.to_u64(),
        Some(_) => None,
    };
    let step = last.map_or_else(
        || "`end_profile_step` + 1".to_owned(),
        |last| last.saturating_add(1).to_string(),
    );
    found.push(at_value(&RULE, &WORDING, &path, node).with("step", step));
}
