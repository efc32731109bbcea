//! The verdict, the reason and the gaps in words.

use zeropilot_diagnose::{Cause, Certainty, Diagnosis, Gap, Memory, Object, Phase};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

/// "GPU 0 ran out of memory in the backward pass: activations (likely)".
pub(super) fn verdict(diagnosis: &Diagnosis, language: Language) -> String {
    let device = diagnosis.message.device.clone();
    let who = device.unwrap_or_else(|| tr!(language, "a GPU", "某张 GPU"));
    let when = diagnosis.phase.map_or("", |phase| moment(phase).get(language));
    let cause = cause(diagnosis.cause).get(language);
    let sure = match diagnosis.certainty {
        Certainty::Likely => Text::new(" (likely)", "（可能）").get(language),
        Certainty::Shown | Certainty::Unknown => "",
    };
    match diagnosis.memory {
        Memory::Device => tr!(
            language,
            "{who} ran out of GPU memory (OOM){when}: {cause}{sure}",
            "{who} 显存不足（OOM）{when}：{cause}{sure}"
        ),
        Memory::Host if diagnosis.gaps.contains(&Gap::Killer) => tr!(
            language,
            "a process was killed with signal 9{when}: the machine probably ran out of host memory (RAM)",
            "进程被信号 9 杀死{when}：很可能是主机内存不足"
        ),
        Memory::Host => {
            tr!(language, "the machine ran out of host memory (RAM){when}", "主机内存不足{when}")
        }
    }
}

fn moment(phase: Phase) -> Text {
    match phase {
        Phase::Loading => Text::new(" while loading the model", "，发生在加载模型时"),
        Phase::Initialize => Text::new(
            " while DeepSpeed or DDP was being initialized",
            "，发生在 DeepSpeed 或 DDP 初始化时",
        ),
        Phase::Forward => Text::new(" in the forward pass", "，发生在前向时"),
        Phase::Backward => Text::new(" in the backward pass", "，发生在反向时"),
        Phase::Step => Text::new(" in the optimizer step", "，发生在参数更新时"),
        Phase::Evaluation => Text::new(" during evaluation", "，发生在评估时"),
        Phase::Saving => Text::new(" while saving a checkpoint", "，发生在保存 checkpoint 时"),
        Phase::Generation => Text::new(" during generation", "，发生在生成（推理）时"),
    }
}

pub(super) fn cause(cause: Cause) -> Text {
    match cause {
        Cause::ModelStates => {
            Text::new("weights, gradients and optimizer states do not fit", "模型状态放不下")
        }
        Cause::Activations => Text::new("activations do not fit", "激活值放不下"),
        Cause::Logits => Text::new("the logits and the loss do not fit", "logits 与 loss 放不下"),
        Cause::Fragmentation => {
            Text::new("PyTorch's cache is fragmented", "PyTorch 缓存的显存碎片化")
        }
        Cause::OtherProcess => Text::new("other processes use this GPU", "其他进程占用了这张卡"),
        Cause::Evaluation => {
            Text::new("evaluation needs more GPU memory than training", "评估比训练更占显存")
        }
        Cause::Saving => Text::new("saving gathers or copies weights", "保存时要聚合或复制权重"),
        Cause::Generation => Text::new(
            "generation or the inference engine uses too much GPU memory",
            "生成或推理引擎占用的显存过多",
        ),
        Cause::LargeRequest => Text::new("a single tensor is too large", "单个张量过大"),
        Cause::HostMemory => Text::new(
            "the process needs more host memory than is available",
            "进程需要的主机内存超过可用量",
        ),
        Cause::LibraryMemory => Text::new(
            "no GPU memory is left for NCCL, cuBLAS or the CUDA context",
            "没有给 NCCL、cuBLAS 或 CUDA 上下文留下显存",
        ),
        Cause::Unknown => Text::new("the log does not show the cause", "日志没有说明原因"),
    }
}

/// Why this cause, from the numbers and frames.
pub(super) fn reason(diagnosis: &Diagnosis, language: Language) -> String {
    let message = &diagnosis.message;
    let size =
        |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), |it| Bytes(it).to_string());
    let (tried, capacity) = (size(message.tried), size(message.capacity));
    let (cached, others) = (size(message.cached()), size(message.others()));
    let has_both = message.tried.is_some() && message.capacity.is_some();
    match diagnosis.cause {
        Cause::Fragmentation => tr!(
            language,
            "PyTorch caches {cached} that it does not use, and the run requested {tried}. The cached blocks are not contiguous, so the request fails although enough GPU memory is free.",
            "PyTorch 缓存了 {cached} 未使用的显存，而这次申请的是 {tried}。缓存的块不连续，所以总量虽然够用，申请仍然失败。"
        ),
        Cause::OtherProcess if message.others().is_some_and(|bytes| bytes > 0) => tr!(
            language,
            "On this GPU, {others} of memory does not belong to this process's PyTorch. If this memory were free, {tried} would fit.",
            "这张 GPU 上有 {others} 显存不属于本进程的 PyTorch。如果这部分显存空闲，{tried} 就放得下。"
        ),
        Cause::OtherProcess => tr!(
            language,
            "nvidia-smi in the log lists a GPU that is already more than half full.",
            "日志里的 nvidia-smi 显示有 GPU 已被占用一半以上。"
        ),
        Cause::LargeRequest if diagnosis.object == Some(Object::GatheredWeights) => tr!(
            language,
            "The run gathered weights of other ranks outside the forward and backward passes. Some code gathers many parameters at once.",
            "报错时正在前向和反向之外聚合其他 rank 的权重：有代码一次聚合了大量参数。"
        ),
        Cause::LargeRequest if has_both => tr!(
            language,
            "The run requested one tensor of {tried} on a GPU with {capacity} of memory. The usual cause is a sequence that is much longer than the others, or attention without a fused kernel.",
            "在显存 {capacity} 的 GPU 上一次申请了 {tried}。通常是某条序列远长于其他序列，或注意力没有使用融合 kernel。"
        ),
        Cause::ModelStates if diagnosis.phase == Some(Phase::Step) => tr!(
            language,
            "The first optimizer step creates Adam's states, and every step copies a part of these states.",
            "第一次参数更新会创建 Adam 的优化器状态，每次更新还会临时复制其中一部分。"
        ),
        Cause::ModelStates => tr!(
            language,
            "No batch has been processed at this point, so the batch size and the sequence length do not matter.",
            "此时还没有处理任何 batch，因此与 batch 大小和序列长度无关。"
        ),
        Cause::Activations => tr!(
            language,
            "Activations grow with the micro-batch size and the sequence length. In full fine-tuning, the backward pass also creates the gradients of all weights.",
            "激活值随 micro batch 和序列长度增长。全参数微调时，所有权重的梯度也在反向时创建。"
        ),
        Cause::Logits => tr!(
            language,
            "Logits have micro-batch size × sequence length × vocabulary size elements. The loss often stores another copy in fp32.",
            "logits 的大小是 micro batch × 序列长度 × 词表大小，计算 loss 时往往还要再存一份 fp32。"
        ),
        Cause::Evaluation => tr!(
            language,
            "By default, HF Trainer keeps the predictions of all batches on the GPU until the evaluation ends. Evaluation also has its own batch size.",
            "HF Trainer 默认把所有 batch 的预测结果留在 GPU 上直到评估结束，而且评估有自己的 batch 大小。"
        ),
        Cause::Saving => tr!(
            language,
            "Saving gathers or copies weights, in addition to the weights already on the GPU.",
            "保存时要在原有权重之外，再聚合或复制一份权重。"
        ),
        Cause::Generation => tr!(
            language,
            "vLLM reserves a share of GPU memory for weights and KV cache, in addition to the GPU memory that training uses.",
            "vLLM 会为权重和 KV cache 预留一部分显存，这部分不包括在训练占用的显存里。"
        ),
        Cause::HostMemory => tr!(
            language,
            "CPU offload, model loading on every rank and data loader workers all use host memory.",
            "CPU 卸载、每个 rank 各自加载模型和数据加载进程都要占用主机内存。"
        ),
        Cause::LibraryMemory => tr!(
            language,
            "A library requested GPU memory outside PyTorch's cache, and none was left. PyTorch's cache usually holds most of the memory.",
            "PyTorch 之外的库申请显存时已经没有空闲。通常是 PyTorch 的缓存占用了大部分显存。"
        ),
        Cause::LargeRequest | Cause::Unknown => match message.allocated {
            Some(allocated) => {
                let allocated = Bytes(allocated);
                tr!(
                    language,
                    "Live tensors use {allocated} of GPU memory. The numbers alone do not show whether these tensors are weights, optimizer states or activations.",
                    "在用的张量占 {allocated} 显存。单看数字无法判断它们是权重、优化器状态还是激活值。"
                )
            }
            None => tr!(
                language,
                "The log does not show what uses the GPU memory: tensors of this process, PyTorch's cache or other processes.",
                "日志没有说明显存被什么占用：可能是本进程的张量、PyTorch 的缓存，也可能是其他进程。"
            ),
        },
    }
}

pub(super) fn gap(gap: Gap) -> Text {
    match gap {
        Gap::Traceback => Text::new(
            "The log has no traceback that shows the phase: include the lines above the message, starting at `Traceback (most recent call last)`.",
            "日志里没有能说明阶段的调用栈：请附上报错之前、从 `Traceback (most recent call last)` 开始的内容。",
        ),
        Gap::Numbers => Text::new(
            "The message has no numbers for requested, free and used memory.",
            "报错没有数字：申请了多少、空闲多少、占用多少都不清楚。",
        ),
        Gap::Processes => Text::new(
            "The message does not name processes. GPU memory outside PyTorch may also belong to this process: run `nvidia-smi`.",
            "报错没有列出进程。PyTorch 之外的部分也可能属于本进程：请运行 `nvidia-smi` 确认。",
        ),
        Gap::Killer => Text::new(
            "The log does not show who sent signal 9: the kernel's OOM killer, a container or Slurm limit, or a person. `dmesg -T` lists the processes that the kernel killed for lack of host memory.",
            "仅凭信号 9 看不出由谁发出：内核的 OOM killer、容器或 Slurm 的限额，或者人为。用 `dmesg -T` 可以查看内核因主机内存不足杀死进程的记录。",
        ),
    }
}

pub(super) fn gaps(diagnosis: &Diagnosis, language: Language) -> Vec<&'static str> {
    diagnosis.gaps.iter().map(|one| gap(*one).get(language)).collect()
}
