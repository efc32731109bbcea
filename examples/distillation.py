"""Distillation: a small student learns the token probabilities of a frozen teacher.

    zeropilot new zero3 --micro-batch 2 --grad-accum 4 --world-size 2 -o ds.json
    torchrun --nproc-per-node 2 distillation.py --deepspeed ds.json

The student trains with plain DeepSpeed. The teacher only runs forward passes, so it has no optimizer and no gradients.
In stage 3, a second DeepSpeed engine partitions its weights. In other stages, every rank stores a full copy.
"""

import argparse
import itertools

import deepspeed
import torch
import torch.distributed as dist
import torch.nn.functional as F
from deepspeed.runtime.config import DeepSpeedConfig
from torch.utils.data import DataLoader, DistributedSampler
from transformers import LlamaForCausalLM

from made_up import Counting, llama_config


def teacher_config(config: DeepSpeedConfig) -> dict:
    """Return the config of the teacher: the precision of the student, with partitioned weights."""
    return {
        "train_micro_batch_size_per_gpu": config.train_micro_batch_size_per_gpu,
        "bf16": {"enabled": config.bfloat16_config.enabled},
        "fp16": {"enabled": config.float16_config.enabled},
        "zero_optimization": {"stage": 3},
    }


def frozen_teacher(config: DeepSpeedConfig, device: torch.device, dtype: torch.dtype):
    """Build a larger frozen model."""
    own_config = teacher_config(config)
    is_partitioned = config.zero_optimization_stage == 3
    with deepspeed.zero.Init(config_dict_or_path=own_config, enabled=is_partitioned):
        teacher = LlamaForCausalLM(llama_config(layers=4, width=128))
    teacher.requires_grad_(False).eval()
    if is_partitioned:
        teacher, _, _, _ = deepspeed.initialize(model=teacher, config=own_config)
    else:
        teacher.to(device, dtype)
    return teacher


def distillation_loss(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the KL divergence of the student from the teacher, both at this temperature."""
    target = F.log_softmax(teacher.float() / temperature, dim=-1)
    answer = F.log_softmax(student.float() / temperature, dim=-1)
    distance = F.kl_div(answer, target, log_target=True, reduction="none").sum(-1).mean()
    return distance * temperature**2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deepspeed", required=True, help="DeepSpeed config of the student")
    parser.add_argument("--steps", type=int, default=20, help="optimizer steps")
    parser.add_argument("--temperature", type=float, default=2.0)
    parser.add_argument("--local_rank", type=int, default=-1, help="set by the deepspeed launcher")
    args = parser.parse_args()

    deepspeed.init_distributed()
    config = DeepSpeedConfig(args.deepspeed)
    is_stage_3 = config.zero_optimization_stage == 3
    with deepspeed.zero.Init(config_dict_or_path=args.deepspeed, enabled=is_stage_3):
        student = LlamaForCausalLM(llama_config())
    engine, _, _, _ = deepspeed.initialize(
        model=student, model_parameters=student.parameters(), config=args.deepspeed
    )
    teacher = frozen_teacher(config, engine.device, next(student.parameters()).dtype)

    data = Counting()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=engine.train_micro_batch_size_per_gpu(), sampler=sampler)
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        for batch in loader:
            if engine.global_steps >= args.steps:
                return
            tokens = batch["input_ids"].to(engine.device)
            with torch.no_grad():
                answer = teacher(input_ids=tokens).logits
            loss = distillation_loss(engine(input_ids=tokens).logits, answer, args.temperature)
            engine.backward(loss)
            is_update = engine.is_gradient_accumulation_boundary()
            engine.step()
            if is_update and dist.get_rank() == 0:
                print(f"step {engine.global_steps} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
