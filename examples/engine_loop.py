"""A training loop on the bare DeepSpeed engine.

    zeropilot new zero2 --micro-batch 2 --grad-accum 4 --world-size 2 -o ds.json
    torchrun --nproc-per-node 2 engine_loop.py --deepspeed ds.json

The config holds batch, precision, optimizer and schedule; the loop only feeds data and calls the engine.
"""

import argparse
import itertools

import deepspeed
import torch.distributed as dist
from deepspeed.runtime.config import DeepSpeedConfig
from torch.utils.data import DataLoader, DistributedSampler
from transformers import LlamaForCausalLM

from made_up import Counting, llama_config


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deepspeed", required=True, help="DeepSpeed config")
    parser.add_argument("--steps", type=int, default=20, help="optimizer steps")
    parser.add_argument("--local_rank", type=int, default=-1, help="set by the deepspeed launcher")
    args = parser.parse_args()

    # The process group comes first: without it the config would be read as if for a single rank.
    deepspeed.init_distributed()

    # With stage 3 each parameter is partitioned as soon as it is made, so no rank ever holds the whole model.
    is_stage_3 = DeepSpeedConfig(args.deepspeed).zero_optimization_stage == 3
    with deepspeed.zero.Init(config_dict_or_path=args.deepspeed, enabled=is_stage_3):
        model = LlamaForCausalLM(llama_config())

    engine, _, _, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=args.deepspeed
    )

    data = Counting()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=engine.train_micro_batch_size_per_gpu(), sampler=sampler)

    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        for batch in loader:
            if engine.global_steps >= args.steps:
                return
            batch = {name: tensor.to(engine.device) for name, tensor in batch.items()}
            loss = engine(**batch).loss
            # The engine divides by the accumulation steps itself, and updates only when they are complete.
            engine.backward(loss)
            is_update = engine.is_gradient_accumulation_boundary()
            engine.step()
            if is_update and dist.get_rank() == 0:
                print(f"step {engine.global_steps} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
