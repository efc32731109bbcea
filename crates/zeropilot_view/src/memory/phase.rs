//! What the phases of a step are called.

use zeropilot_step::memory::Phase;
use zeropilot_step::task::Role;
use zeropilot_text::Text;

/// In machine formats.
pub(crate) fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Init => "init",
        Phase::Generate => "generate",
        Phase::Score => "score",
        Phase::Forward => "forward",
        Phase::Frozen(role) => role_name(role),
        Phase::Loss => "loss",
        Phase::Backward => "backward",
        Phase::Step => "step",
    }
}

/// What a frozen model is called in machine formats.
pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Reference => "reference",
        Role::Teacher => "teacher",
        Role::Reward => "reward",
    }
}

/// What a frozen model is called.
pub(super) fn role(role: Role) -> Text {
    match role {
        Role::Reference => Text::new("reference", "参考模型"),
        Role::Teacher => Text::new("teacher", "教师模型"),
        Role::Reward => Text::new("reward model", "奖励模型"),
    }
}

/// In pictures.
pub(crate) fn title(phase: Phase) -> Text {
    match phase {
        Phase::Init => Text::new("initialization", "初始化"),
        Phase::Generate => Text::new("generation", "生成"),
        Phase::Score => Text::new("scoring", "打分"),
        Phase::Forward => Text::new("forward", "前向传播"),
        Phase::Frozen(model) => role(model),
        Phase::Loss => Text::new("loss", "loss"),
        Phase::Backward => Text::new("backward", "反向传播"),
        Phase::Step => Text::new("optimizer step", "参数更新"),
    }
}

/// Below a narrow timeline.
pub(super) fn short(phase: Phase) -> Text {
    match phase {
        Phase::Init => Text::new("init", "初始化"),
        Phase::Forward => Text::new("forward", "前向"),
        Phase::Backward => Text::new("backward", "反向"),
        Phase::Step => Text::new("step", "更新"),
        other => title(other),
    }
}

/// When something happens.
pub(crate) fn moment(phase: Phase) -> Text {
    match phase {
        Phase::Init => Text::new("during DeepSpeed initialization", "初始化 DeepSpeed 时"),
        Phase::Generate => Text::new("during generation", "生成补全时"),
        Phase::Score => Text::new("while the model scores completions", "模型给补全打分时"),
        Phase::Forward => Text::new("in the forward pass", "前向传播中"),
        Phase::Frozen(Role::Reference) => {
            Text::new("in the forward pass of the reference", "参考模型的前向传播中")
        }
        Phase::Frozen(Role::Teacher) => {
            Text::new("in the forward pass of the teacher", "教师模型的前向传播中")
        }
        Phase::Frozen(Role::Reward) => {
            Text::new("in the forward pass of the reward model", "奖励模型的前向传播中")
        }
        Phase::Loss => Text::new("while computing the loss", "计算 loss 时"),
        Phase::Backward => Text::new("in the backward pass", "反向传播中"),
        Phase::Step => Text::new("in the optimizer step", "参数更新时"),
    }
}
