//! The lines about a task and the models that run beside the trained one.

use zeropilot_ask::TaskName;
use zeropilot_step::memory::FrozenRest;
use zeropilot_step::task::{Generator, Objective, Task};
use zeropilot_step::zero::Place;
use zeropilot_text::{Language, Text, tr};

use super::human::billions;
use super::phase::role;

/// Training task and with which others; empty for the next token alone.
pub(crate) fn lines(
    name: TaskName,
    task: &Task,
    micro_batch: u64,
    frozen: &[FrozenRest],
    language: Language,
) -> String {
    if task.objective == Objective::NextToken {
        return String::new();
    }
    let name = label(name).get(language);
    let rows = batch(task, micro_batch, language);
    let mut text = format!("  {name}{rows}\n");
    if task.adapters_off {
        text.push_str(&tr!(
            language,
            "  reference model: the trained model with its adapters disabled, no second model\n",
            "  参考模型：训练的模型关闭适配器后兼作参考模型，不另外加载模型\n"
        ));
    }
    if let Some(critic) = &task.critic {
        let size = billions(critic.model.elements());
        text.push_str(&tr!(
            language,
            "  value model: {size} parameters, trained together with the policy\n",
            "  价值模型：{size} 参数，与策略模型在同一个 DeepSpeed engine 里训练\n"
        ));
    }
    for (frozen, held) in task.frozen.iter().zip(frozen) {
        let who = role(frozen.role).get(language);
        let size = billions(frozen.model.elements());
        let bytes = held.rest.at(Place::Device);
        let host = held.rest.at(Place::Pinned) + held.rest.at(Place::Host);
        let host = match host.0 {
            0 => String::new(),
            _ => tr!(language, " and {host} in host memory", "，主机内存 {host}"),
        };
        text.push_str(&tr!(
            language,
            "  {who}: {size} parameters, frozen, {bytes} on each GPU{host}\n",
            "  {who}：{size} 参数，冻结，每张卡 {bytes}{host}\n"
        ));
    }
    text
}

fn batch(task: &Task, micro: u64, language: Language) -> String {
    let rows = task.objective.rows() * micro;
    if task.objective.rows() > 1 {
        return tr!(
            language,
            ": chosen and rejected answers make {rows} sequences in one forward pass",
            "：chosen 和 rejected 两个回答在一次前向里共 {rows} 条序列"
        );
    }
    let Some(generation) = task.generation else { return String::new() };
    let (count, tokens) = (generation.sequences(micro), generation.completion);
    if let (Some(_), piece) = (generation.at_once, generation.piece(micro))
        && piece < count
    {
        return tr!(
            language,
            ": each GPU generates {count} completions of {tokens} tokens, {piece} at once",
            "：每张卡生成 {count} 条 {tokens} token 的补全，一次 {piece} 条"
        );
    }
    let completions = if count == 1 { "completion" } else { "completions" };
    match generation.by {
        Generator::Model { .. } => tr!(
            language,
            ": each GPU generates {count} {completions} of {tokens} tokens at once",
            "：每张卡一次生成 {count} 条 {tokens} token 的补全"
        ),
        Generator::Engine { colocated: Some(_), .. } => tr!(
            language,
            ": vLLM on the same GPUs generates {count} {completions} of {tokens} tokens for each GPU",
            "：同一批卡上的 vLLM 为每张卡生成 {count} 条 {tokens} token 的补全"
        ),
        Generator::Engine { colocated: None, .. } => tr!(
            language,
            ": a vLLM server on other GPUs generates {count} {completions} of {tokens} tokens for each GPU",
            "：其他卡上的 vLLM 服务为每张卡生成 {count} 条 {tokens} token 的补全"
        ),
    }
}

fn label(task: TaskName) -> Text {
    match task {
        TaskName::Sft => Text::new("supervised fine-tuning", "监督微调（SFT）"),
        TaskName::Dpo => Text::new("DPO", "DPO"),
        TaskName::Kto => Text::new("KTO", "KTO"),
        TaskName::Orpo => Text::new("ORPO", "ORPO"),
        TaskName::Cpo => Text::new("CPO", "CPO"),
        TaskName::Reward => Text::new("reward model", "奖励模型"),
        TaskName::Distill => Text::new(
            "distillation with the KL divergence of 32-bit logits",
            "蒸馏（32 位 logits 的 KL 散度）",
        ),
        TaskName::Gkd => Text::new("distillation with TRL's GKD", "蒸馏（TRL 的 GKD）"),
        TaskName::Grpo => Text::new("GRPO", "GRPO"),
        TaskName::Rloo => Text::new("RLOO", "RLOO"),
        TaskName::Ppo => Text::new("PPO", "PPO"),
    }
}
