//! The message's numbers against the prediction for the same job.

use zeropilot_ask::Memory;
use zeropilot_diagnose::{Diagnosis, Phase};
use zeropilot_job::Origin;
use zeropilot_record::Term;
use zeropilot_step::memory::Phase as StepPhase;
use zeropilot_step::zero::Place;
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use crate::memory::{phase, term_words, terms};
use crate::provenance;

/// Parts that are named.
const NAMED: usize = 4;

/// What a phase is predicted to hold, against what the message says.
pub(super) struct Compared {
    /// The phase of the step that was compared.
    pub(super) phase: StepPhase,
    /// Tensors that are predicted at the peak of that phase.
    pub(super) tensors: u64,
    /// What they are, the largest first.
    pub(super) terms: Vec<Term>,
    /// The whole need of the GPU: tensors, cache, context.
    pub(super) device: u64,
    /// Live tensors that the run needed at least: those it had and the request.
    pub(super) measured: Option<u64>,
    /// The part that was larger than predicted, where the model states are not a guess.
    pub(super) larger: Option<&'static str>,
    /// Whether more was needed than predicted.
    is_larger: bool,
    /// Whether nobody said how the model states are partitioned.
    is_guess: bool,
}

/// The smallest share by which a measurement must be above the prediction to be called larger.
const NOISE: u64 = 20;

pub(super) fn compared(diagnosis: &Diagnosis, predicted: &Memory) -> Compared {
    let tape = &predicted.answer.on_gpu;
    let phase = match diagnosis.phase {
        Some(Phase::Loading | Phase::Initialize) => StepPhase::Init,
        Some(Phase::Generation) if tape.phases().contains(&StepPhase::Generate) => {
            StepPhase::Generate
        }
        Some(Phase::Forward | Phase::Evaluation | Phase::Generation) => StepPhase::Forward,
        Some(Phase::Backward) => StepPhase::Backward,
        Some(Phase::Step | Phase::Saving) => StepPhase::Step,
        None => tape.fullest(Place::Device),
    };
    let peak = tape.peak(phase);
    let tensors = peak.at(Place::Device).0;
    let message = &diagnosis.message;
    let measured = message.allocated.map(|live| live.saturating_add(message.tried.unwrap_or(0)));
    let is_larger = measured.is_some_and(|measured| measured > tensors + tensors / NOISE);
    let statements = &predicted.job.provenance.statements;
    let is_guess =
        statements.iter().any(|one| one.name == "stage" && one.origin == Origin::Assumed);
    let mut terms = terms(&peak.at_device_peak, &[Place::Device]);
    terms.sort_by_key(|term| std::cmp::Reverse(term.bytes));
    Compared {
        phase,
        tensors,
        terms,
        device: predicted.answer.device().expected().0,
        measured,
        larger: (is_larger && !is_guess).then_some(match phase {
            StepPhase::Init => "loading",
            StepPhase::Step => "temporaries",
            _ => "activations",
        }),
        is_larger,
        is_guess,
    }
}

fn moment(phase: StepPhase) -> Text {
    match phase {
        StepPhase::Init => Text::new("initialization", "初始化"),
        StepPhase::Forward => Text::new("the forward pass", "前向"),
        StepPhase::Backward => Text::new("the backward pass", "反向"),
        StepPhase::Step => Text::new("the optimizer step", "参数更新"),
        other => phase::title(other),
    }
}

pub(super) fn words(diagnosis: &Diagnosis, predicted: &Memory, language: Language) -> Vec<String> {
    let compared = compared(diagnosis, predicted);
    let message = &diagnosis.message;
    let moment = moment(compared.phase).get(language);
    let (tensors, device) = (Bytes(compared.tensors), Bytes(compared.device));
    let parts: Vec<String> = compared
        .terms
        .iter()
        .take(NAMED)
        .map(|term| format!("{} {}", Bytes(term.bytes), term_words(&term.name, language)))
        .collect();
    let mut lines = vec![tr!(
        language,
        ("tensors use {tensors} at the peak of {moment}: {}", parts.join(", ")),
        ("{moment}峰值时的张量共 {tensors}：{}", parts.join("，"))
    )];
    let assumed = provenance::assumed(&predicted.job.provenance, language);
    lines.extend((!assumed.is_empty()).then(|| assumed.trim_end().to_owned()));
    let rest = &predicted.answer.on_gpu.states.after_step;
    let states = Bytes(rest.at(Place::Device).0);
    if !compared.is_guess && message.capacity.is_some_and(|capacity| states.0 > capacity) {
        lines.push(tr!(
            language,
            "Model states alone need {states}, more than the GPU has: no batch size is small enough.",
            "仅模型状态就占 {states}，超过这张 GPU 的显存：batch 再小也放不下。"
        ));
    }
    lines.push(tr!(
        language,
        "{device} of GPU memory in total: tensors, PyTorch's cache, CUDA context and NCCL",
        "共需显存 {device}：张量、PyTorch 缓存、CUDA 上下文和 NCCL"
    ));
    if let (Some(process), Some(live)) = (message.process(), message.allocated) {
        let (process, live) = (Bytes(process), Bytes(live));
        let cached = Bytes(message.cached().unwrap_or(0));
        lines.push(tr!(
            language,
            "The run used {process}: {live} for live tensors, {cached} for the cache, and the rest outside PyTorch. Compare the predicted tensors with the live tensors, not with the sum.",
            "实际占用 {process}：在用张量 {live}，缓存 {cached}，其余在 PyTorch 之外。应拿在用张量与预测的张量比较，而不是总和。"
        ));
    }
    lines.extend(verdict(&compared, language));
    if matches!(diagnosis.phase, Some(Phase::Evaluation | Phase::Generation | Phase::Saving)) {
        lines.push(tr!(
            language,
            "zeropilot predicts training steps only: evaluation, generation and saving can need more GPU memory.",
            "zeropilot 预测的是训练步，不包括评估、生成和保存额外占用的显存。"
        ));
    }
    lines
}

fn verdict(compared: &Compared, language: Language) -> Option<String> {
    let measured = Bytes(compared.measured?);
    if !compared.is_larger {
        return Some(tr!(
            language,
            "The run needed at least {measured} for tensors, which is within the prediction.",
            "实际的张量至少占 {measured}，在预测范围之内。"
        ));
    }
    let more = measured.saturating_sub(Bytes(compared.tensors));
    let Some(larger) = compared.larger else {
        return Some(tr!(
            language,
            "The run needed at least {measured} for tensors, {more} more than predicted. The prediction assumes a ZeRO stage, so this difference does not show which part was larger: set --config, --job or --stage.",
            "实际的张量至少占 {measured}，比预测多 {more}。预测假定了 ZeRO stage，因此这个差别不能说明哪一部分偏大：请指定 --config、--job 或 --stage。"
        ));
    };
    let reason = match larger {
        "loading" => Text::new(
            "The stage, the precision and the training method determine the model states, so the difference comes from loading. Either every rank builds the whole model before DeepSpeed partitions it, or weights are read in fp32.",
            "模型状态由 stage、精度和训练方式决定，差别出在加载：每个 rank 先构建完整模型再切分，或按 fp32 读入权重。",
        ),
        "activations" => Text::new(
            "The stage, the precision and the training method determine the model states, so the difference comes from the activations. Possible causes: longer or more sequences than --seq-len and --micro-batch set, no gradient checkpointing, or another attention implementation.",
            "模型状态由 stage、精度和训练方式决定，差别出在激活值。可能的原因：序列比 --seq-len 长，条数比 --micro-batch 多，没有开启梯度检查点，或注意力实现不同。",
        ),
        _ => Text::new(
            "The stage, the precision and the training method determine the model states, so the difference comes from temporary copies in the optimizer step. Possible causes: another optimizer, or more trainable parameters than the options set.",
            "模型状态由 stage、精度和训练方式决定，差别出在参数更新时的临时副本。可能的原因：优化器不同，或可训练参数比选项给出的多。",
        ),
    };
    let reason = reason.get(language);
    Some(tr!(
        language,
        "The run needed at least {measured} for tensors, {more} more than predicted. {reason}",
        "实际的张量至少占 {measured}，比预测多 {more}。{reason}"
    ))
}
