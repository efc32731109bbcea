//! What to change first, with the key, the argument or the variable.

use zeropilot_diagnose::{Cause, Diagnosis, Object, Phase};
use zeropilot_text::Text;

/// A change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// The key, argument, variable or command.
    pub(super) setting: &'static str,
    pub(super) text: Text,
}

const fn step(setting: &'static str, english: &'static str, chinese: &'static str) -> Step {
    Step { setting, text: Text::new(english, chinese) }
}

const STAGE_3: Step = step(
    "zero_optimization.stage",
    "Set `zero_optimization.stage` to 3: every rank then stores only its share of weights, gradients and optimizer states.",
    "把 `zero_optimization.stage` 设为 3：每个 rank 只保存模型状态（权重、梯度和优化器状态）的一个分片。",
);
const OFFLOAD: Step = step(
    "zero_optimization.offload_optimizer",
    "Offload optimizer states to the CPU: `\"offload_optimizer\": {\"device\": \"cpu\"}`. This needs at least 12 bytes of host memory per parameter.",
    "把优化器状态卸载到 CPU：`\"offload_optimizer\": {\"device\": \"cpu\"}`，每个参数至少需要 12 字节主机内存。",
);
const LORA: Step = step(
    "LoRA",
    "Train LoRA adapters: gradients and optimizer states then exist only for the adapters.",
    "改用 LoRA：只有适配器才有梯度和优化器状态。",
);
const ZERO_INIT: Step = step(
    "deepspeed.zero.Init",
    "In stage 3, load the model partitioned: create `TrainingArguments` before `from_pretrained`, or use `deepspeed.zero.Init`. Otherwise every rank first loads the whole model. Do not use `device_map=\"auto\"`.",
    "stage 3 下要分片加载模型：先创建 `TrainingArguments` 再调用 `from_pretrained`，或使用 `deepspeed.zero.Init`；否则每个 rank 都会先加载完整模型。不要用 `device_map=\"auto\"`。",
);
const MICRO_BATCH: Step = step(
    "train_micro_batch_size_per_gpu",
    "Halve the micro-batch size (`train_micro_batch_size_per_gpu`, `per_device_train_batch_size`) and double `gradient_accumulation_steps`: the global batch size stays the same.",
    "micro batch（`train_micro_batch_size_per_gpu`、`per_device_train_batch_size`）减半，`gradient_accumulation_steps` 加倍：全局 batch 不变。",
);
const CHECKPOINTING: Step = step(
    "gradient_checkpointing",
    "Turn on gradient checkpointing: `gradient_checkpointing=True`, or `model.gradient_checkpointing_enable()`.",
    "开启梯度检查点：`gradient_checkpointing=True` 或 `model.gradient_checkpointing_enable()`。",
);
const LENGTH: Step = step(
    "max_length",
    "Truncate long samples (`max_length`, `max_seq_length`, `cutoff_len`): GPU memory depends on the longest sample of a batch.",
    "截断过长的样本（`max_length`、`max_seq_length`、`cutoff_len`）：显存由 batch 中最长的样本决定。",
);
const FUSED_LOSS: Step = step(
    "use_liger_kernel",
    "Use a fused linear cross entropy, which never stores all logits: `use_liger_kernel=True` in HF Trainer. By default, TRL 1.7 and later do not store all logits.",
    "使用融合的 linear cross entropy，不保存完整的 logits：HF Trainer 的 `use_liger_kernel=True`。TRL 从 1.7 起默认不保存完整的 logits。",
);
const EXPANDABLE: Step = step(
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` before the process starts (`PYTORCH_HIP_ALLOC_CONF` on AMD, `PYTORCH_NPU_ALLOC_CONF` on Ascend).",
    "启动前设置 `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`（AMD 用 `PYTORCH_HIP_ALLOC_CONF`，昇腾用 `PYTORCH_NPU_ALLOC_CONF`）。",
);
const EVEN_LENGTHS: Step = step(
    "pad_to_multiple_of",
    "Make tensor sizes similar: use `pad_to_multiple_of` in the data collator, packing, or `train_sampling_strategy=\"group_by_length\"` (`group_by_length=True` before transformers 5.2).",
    "让张量大小更一致：data collator 的 `pad_to_multiple_of`、packing，或 `train_sampling_strategy=\"group_by_length\"`（transformers 5.2 之前是 `group_by_length=True`）。",
);
const NVIDIA_SMI: Step = step(
    "nvidia-smi",
    "List the processes on the GPU: `nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv`. Stop processes left over from an earlier run.",
    "列出这张卡上的进程：`nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv`，结束上次运行的残留进程。",
);
const OWN_GPU: Step = step(
    "torch.cuda.set_device",
    "If the other processes are ranks of this job, call `torch.cuda.set_device(local_rank)` before any other CUDA call, and load checkpoints with `map_location=\"cpu\"`.",
    "如果其他进程是本任务的 rank：在使用 CUDA 之前先调用 `torch.cuda.set_device(local_rank)`，加载 checkpoint 时用 `map_location=\"cpu\"`。",
);
const FREE_GPUS: Step = step(
    "CUDA_VISIBLE_DEVICES",
    "Choose free GPUs with `CUDA_VISIBLE_DEVICES`, or with the deepspeed launcher's `--include`.",
    "用 `CUDA_VISIBLE_DEVICES` 或 deepspeed 启动器的 `--include` 选择空闲的卡。",
);
const EVALUATION: [Step; 3] = [
    step(
        "per_device_eval_batch_size",
        "Set `per_device_eval_batch_size` to 1.",
        "把 `per_device_eval_batch_size` 设为 1。",
    ),
    step(
        "eval_accumulation_steps",
        "Set `eval_accumulation_steps` to 1: predictions then move to the CPU after every batch.",
        "把 `eval_accumulation_steps` 设为 1：每个 batch 之后把预测结果移到主机内存。",
    ),
    step(
        "prediction_loss_only",
        "Set `prediction_loss_only=True`, or reduce the logits with `preprocess_logits_for_metrics`.",
        "设置 `prediction_loss_only=True`，或用 `preprocess_logits_for_metrics` 先缩减 logits。",
    ),
];
const SAVING: [Step; 3] = [
    step(
        "stage3_gather_16bit_weights_on_model_save",
        "In stage 3, set `stage3_gather_16bit_weights_on_model_save` to false and convert the checkpoint afterwards with `zero_to_fp32.py`.",
        "stage 3 下把 `stage3_gather_16bit_weights_on_model_save` 设为 false，之后用 `zero_to_fp32.py` 转换 checkpoint。",
    ),
    step(
        "save_pretrained",
        "With LoRA, save only the adapters. With 8-bit weights, update bitsandbytes: older versions copy every weight while saving.",
        "用 LoRA 时只保存适配器。使用 8 位权重时请更新 bitsandbytes：旧版本保存时会复制每个权重。",
    ),
    step(
        "torch.cuda.empty_cache",
        "Call `torch.cuda.empty_cache()` before saving.",
        "保存前调用 `torch.cuda.empty_cache()`。",
    ),
];
const GENERATION: [Step; 3] = [
    step(
        "vllm_gpu_memory_utilization",
        "Lower vLLM's share of GPU memory: `vllm_gpu_memory_utilization` (TRL, ms-swift), `gpu_memory_utilization` (vLLM, verl).",
        "调低 vLLM 占用的显存比例：`vllm_gpu_memory_utilization`（TRL、ms-swift）、`gpu_memory_utilization`（vLLM、verl）。",
    ),
    step(
        "vllm_mode",
        "Run vLLM on separate GPUs (`vllm_mode=\"server\"`), or turn on its sleep mode during training (`vllm_enable_sleep_mode=True`).",
        "让 vLLM 使用单独的卡（`vllm_mode=\"server\"`），或开启训练期间的休眠模式（`vllm_enable_sleep_mode=True`）。",
    ),
    step(
        "max_completion_length",
        "Generate fewer tokens at once: lower `max_completion_length` or `num_generations`. In stage 3, use `ds3_gather_for_generation=False` or `move_model_batches` (ms-swift).",
        "减少一次生成的 token 数：调低 `max_completion_length` 或 `num_generations`；stage 3 下用 `ds3_gather_for_generation=False` 或 `move_model_batches`（ms-swift）。",
    ),
];
const FUSED_ATTENTION: Step = step(
    "attn_implementation",
    "Use fused attention, which does not store the score matrix: `attn_implementation=\"flash_attention_2\"` or `\"sdpa\"`.",
    "使用不保存分数矩阵的融合注意力：`attn_implementation=\"flash_attention_2\"` 或 `\"sdpa\"`。",
);
const GATHER: Step = step(
    "deepspeed.zero.GatheredParameters",
    "Gather parameters one by one or in batches, not all at once: one `deepspeed.zero.GatheredParameters` per layer.",
    "参数要逐个或分批聚合，不要一次全部聚合：每层用一个 `deepspeed.zero.GatheredParameters`。",
);
const HOST: [Step; 3] = [
    step(
        "zero_optimization.offload_param",
        "Offload less to the CPU: remove `offload_param` first, then `offload_optimizer`, or use `\"device\": \"nvme\"`.",
        "减少 CPU 卸载：先去掉 `offload_param`，再去掉 `offload_optimizer`，或改用 `\"device\": \"nvme\"`。",
    ),
    step(
        "pin_memory",
        "Set `pin_memory` to false in the offload sections: PyTorch rounds pinned memory up, and the system cannot swap it out.",
        "把卸载配置段里的 `pin_memory` 设为 false：锁页内存会向上取整，且不能换出。",
    ),
    step(
        "host memory limit",
        "Check the host memory limit: `free -g`, `docker run --memory`, Slurm's `--mem`. Start fewer data loader workers and processes per machine.",
        "检查主机内存的限额：`free -g`、`docker run --memory`、Slurm 的 `--mem`。减少数据加载进程数和每台机器的进程数。",
    ),
];
const FRACTION: Step = step(
    "torch.cuda.set_per_process_memory_fraction",
    "Leave GPU memory for libraries outside PyTorch: call `torch.cuda.set_per_process_memory_fraction(0.95)` before training.",
    "给 PyTorch 之外的库留出显存：训练前调用 `torch.cuda.set_per_process_memory_fraction(0.95)`。",
);
const NCCL: Step = step(
    "NCCL_BUFFSIZE",
    "Use smaller NCCL buffers: `NCCL_BUFFSIZE=2097152` (the default is 4 MiB per channel).",
    "减小 NCCL 缓冲区：`NCCL_BUFFSIZE=2097152`（默认每通道 4 MiB）。",
);
const PREDICT: Step = step(
    "zeropilot memory",
    "Predict GPU memory and host memory: `zeropilot memory --model MODEL --gpus GPUS --config ds_config.json`, or add `--model` and `--gpus` to this command.",
    "预测任务需要的显存和主机内存：`zeropilot memory --model MODEL --gpus GPUS --config ds_config.json`，或给本命令加上 `--model` 和 `--gpus`。",
);

/// Two or three changes, the first first; whether the job is predicted already.
pub(super) fn steps(diagnosis: &Diagnosis, is_predicted: bool) -> Vec<Step> {
    match diagnosis.cause {
        Cause::ModelStates if diagnosis.phase == Some(Phase::Loading) => {
            vec![ZERO_INIT, STAGE_3, LORA]
        }
        Cause::ModelStates => vec![STAGE_3, OFFLOAD, LORA],
        Cause::Activations => vec![MICRO_BATCH, CHECKPOINTING, LENGTH],
        Cause::Logits => vec![FUSED_LOSS, MICRO_BATCH, LENGTH],
        Cause::Fragmentation => vec![EXPANDABLE, EVEN_LENGTHS],
        Cause::OtherProcess => vec![NVIDIA_SMI, OWN_GPU, FREE_GPUS],
        Cause::Evaluation => EVALUATION.to_vec(),
        Cause::Saving => SAVING.to_vec(),
        Cause::Generation => GENERATION.to_vec(),
        Cause::LargeRequest => match diagnosis.object {
            Some(Object::GatheredWeights) => vec![GATHER, GENERATION[2]],
            _ => vec![LENGTH, FUSED_ATTENTION, MICRO_BATCH],
        },
        Cause::HostMemory => HOST.to_vec(),
        Cause::LibraryMemory => vec![FRACTION, MICRO_BATCH, NCCL],
        Cause::Unknown if is_predicted => vec![MICRO_BATCH, EXPANDABLE],
        Cause::Unknown => vec![PREDICT, MICRO_BATCH, EXPANDABLE],
    }
}
