use num_traits::ToPrimitive as _;
use zeropilot_config::python::PyValue;
use zeropilot_config::schema::EngineVersion;

use crate::diagnostic::Diagnostic;
use crate::reading::{Device, ZERO, at_member};
use crate::report::ResolvedValues;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F21",
    name: "super-offload-waits-for-clipping",
    group: Group::Offload,
    severity: Severity::Note,
    summary: Text::new(
        "gradient clipping keeps `super_offload` from overlapping with the backward pass",
        "梯度裁剪使 `super_offload` 无法与反向重叠",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/superoffload/superoffload_stage3.py, partition_grads",
    ],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "gradient_clipping": 1.0, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "super_offload": true}}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "gradient_clipping": 0, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "super_offload": true}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`super_offload` updates nothing during the backward pass while `gradient_clipping` is {clipping}",
        "`gradient_clipping` 为 {clipping} 时，`super_offload` 在反向期间不做任何更新",
    ),
    why: Text::new(
        "The norm of all gradients is known only after the backward pass. With clipping, every update on the CPU waits for this norm, so nothing overlaps with the backward pass.",
        "所有梯度的范数要到反向结束才知道。开启裁剪后，CPU 上的更新都要等这个范数，无法与反向重叠。",
    ),
    help: Text::new(
        "set `gradient_clipping` to 0 if training is stable without clipping, or expect the speed of ordinary CPU offload",
        "如果不裁剪也能稳定训练，就把 `gradient_clipping` 设为 0；否则速度与普通 CPU 卸载相近",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, resolved: &ResolvedValues, found: &mut Vec<Diagnostic>) {
    let path = [ZERO, "offload_optimizer", "super_offload"];
    let Some((_, member)) = subject.member(&path) else { return };
    let norm = match resolved.keys.table().get("gradient_clipping") {
        Some(PyValue::Float(norm)) => Some(*norm),
        Some(PyValue::Int(norm)) => norm.to_f64(),
        _ => None,
    };
    let Some(clipping) = norm.filter(|norm| *norm > 0.0) else { return };
    if subject.version >= EngineVersion::V0_18
        && resolved.stage == 3
        && subject.is_on(path)
        && subject.device("offload_optimizer") == Some(Device::Cpu)
    {
        let told = at_member(&RULE, &WORDING, &path, member);
        found.push(told.with("clipping", clipping.to_string()));
    }
}
