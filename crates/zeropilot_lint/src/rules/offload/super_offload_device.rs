use zeropilot_config::schema::EngineVersion;

use crate::diagnostic::Diagnostic;
use crate::reading::{Device, ZERO, at_member};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F20",
    name: "super-offload-needs-cpu",
    group: Group::Offload,
    severity: Severity::Error,
    summary: Text::new(
        "`super_offload` without CPU offload",
        "用了 `super_offload`，但没有卸载到 CPU",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/superoffload/superoffload_stage3.py, SuperOffloadOptimizer_Stage3",
    ],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none", "super_offload": true}}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "gradient_clipping": 0, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "super_offload": true}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`super_offload` needs `\"device\": \"cpu\"` in `offload_optimizer`",
        "`super_offload` 需要在 `offload_optimizer` 里设置 `\"device\": \"cpu\"`",
    ),
    why: Text::new(
        "DeepSpeed uses the SuperOffload optimizer whatever the device is, but prepares it only if offload is on. The run exits with `AttributeError: … has no attribute 'norm_for_param_grads'` in the first backward pass.",
        "无论 device 是什么，DeepSpeed 都会使用 SuperOffload 的优化器，但只有启用卸载时才会做相应的初始化；第一次反向就以 `AttributeError: … has no attribute 'norm_for_param_grads'` 退出。",
    ),
    help: Text::new(
        "write `\"device\": \"cpu\"` in `offload_optimizer`, or remove `super_offload`",
        "在 `offload_optimizer` 里写 `\"device\": \"cpu\"`，或删掉 `super_offload`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = [ZERO, "offload_optimizer", "super_offload"];
    let Some((_, member)) = subject.member(&path) else { return };
    if subject.version >= EngineVersion::V0_18
        && subject.stage() == Some(3)
        && subject.is_on(path)
        && subject.device("offload_optimizer") == Some(Device::None)
    {
        found.push(at_member(&RULE, &WORDING, &path, member));
    }
}
