use zeropilot_config::problem::{Conflict, Problem};

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P07",
    name: "master-weights",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new(
        "16-bit master weights without their prerequisites",
        "16 位主权重的前提条件不满足",
    ),
    wordings: &[&NEED_ZERO, &NEED_STAGE_2, &NEED_MASTER],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "fp16": {"enabled": true, "fp16_master_weights_and_grads": true}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true, "bf16_optimizer_states": true}}"#,
        ),
    ],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}"#,
    )],
    is_no_op: false,
};

static NEED_ZERO: Wording = Wording {
    message: Text::new("`{path}` needs ZeRO", "`{path}` 需要启用 ZeRO"),
    why: Text::new(
        "Only the ZeRO optimizers support 16-bit master weights. Without a ZeRO stage, DeepSpeed raises an error at startup.",
        "只有 ZeRO 优化器支持 16 位主权重；没有开启 ZeRO 时，DeepSpeed 启动时会报错。",
    ),
    help: Text::new(
        "set `zero_optimization.stage` to 1, 2 or 3, or remove `{path}`",
        "把 `zero_optimization.stage` 设为 1、2 或 3，或删掉 `{path}`",
    ),
};

static NEED_STAGE_2: Wording = Wording {
    message: Text::new(
        "`{path}` needs ZeRO stage 2 in this version of DeepSpeed",
        "在这个版本的 DeepSpeed 中，`{path}` 需要 ZeRO stage 2",
    ),
    why: Text::new(
        "This version of DeepSpeed supports 16-bit master weights only in stage 2. In any other stage, it raises an error at startup.",
        "这个版本的 DeepSpeed 只在 stage 2 下支持 16 位主权重，在其他 stage 下启动时会报错。",
    ),
    help: Text::new(
        "use stage 2 or a newer DeepSpeed, or remove `{path}`",
        "改用 stage 2、升级 DeepSpeed，或删掉 `{path}`",
    ),
};

static NEED_MASTER: Wording = Wording {
    message: Text::new(
        "`{path}` needs `bf16_master_weights_and_grads`",
        "`{path}` 需要同时启用 `bf16_master_weights_and_grads`",
    ),
    why: Text::new(
        "bf16 optimizer states work only with bf16 master weights; otherwise, DeepSpeed raises an error at startup.",
        "bf16 优化器状态只能与 bf16 主权重一起使用，否则 DeepSpeed 启动时会报错。",
    ),
    help: Text::new(
        "set `bf16.bf16_master_weights_and_grads` to true, or remove `{path}`",
        "把 `bf16.bf16_master_weights_and_grads` 设为 true，或删掉 `{path}`",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, conflict: Conflict) -> Diagnostic {
    let wording = match conflict {
        Conflict::OptimizerStatesNeedMasterWeights => &NEED_MASTER,
        Conflict::MasterWeightsNeedStage2 => &NEED_STAGE_2,
        _ => &NEED_ZERO,
    };
    Diagnostic::new(&RULE, wording, problem.path.clone(), problem.span)
}
