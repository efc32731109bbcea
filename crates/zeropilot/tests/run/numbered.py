"""A training program on the real engine whose losses depend on nothing but the step, so that runs can be compared.

Data workers, a process that outlives the ranks, and a rank that leaves are there on demand.
"""

import argparse
import itertools
import os
import subprocess
import time

import deepspeed
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

WIDTH = 32


class Numbered(Dataset):
    """Samples that their number tells."""

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(number)
        given = torch.randn(WIDTH, generator=generator)
        return given, given.roll(1) / 2


def batches(first: int, size: int):
    """The numbers of a rank's samples: ranks take turns."""
    rank, world = dist.get_rank(), dist.get_world_size()
    for turn in itertools.count():
        begin = first + (turn * world + rank) * size
        yield list(range(begin, begin + size))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--deepspeed", required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that each step takes longer")
    parser.add_argument("--save")
    parser.add_argument("--save-every", type=int, default=3)
    parser.add_argument("--resume")
    parser.add_argument("--workers", type=int, default=0, help="processes of each rank that load data")
    parser.add_argument("--helper", action="store_true", help="start a process that outlives the rank")
    parser.add_argument("--leave-at", type=int, help="a step at which rank 1 leaves as if it were done")
    parser.add_argument("--local_rank", type=int, default=-1)
    args = parser.parse_args()
    if args.helper:
        subprocess.Popen(["setsid", "sh", "-c", "sleep 600 & exec true"], start_new_session=True).wait()

    deepspeed.init_distributed()
    torch.manual_seed(0)
    is_stage_3 = deepspeed.DeepSpeedConfig(args.deepspeed).zero_optimization_stage == 3
    with deepspeed.zero.Init(config_dict_or_path=args.deepspeed, enabled=is_stage_3):
        model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.Tanh(), torch.nn.Linear(64, WIDTH))
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=args.deepspeed)
    if args.resume:
        path, _ = engine.load_checkpoint(args.resume)
        if path is None:
            raise SystemExit(f"no checkpoint in {args.resume}")

    numbers = batches(engine.global_samples, engine.train_micro_batch_size_per_gpu())
    data = iter(DataLoader(Numbered(), batch_sampler=numbers, num_workers=args.workers))
    while engine.global_steps < args.steps:
        if args.leave_at == engine.global_steps + 1 and dist.get_rank() == 1:
            os._exit(0)
        time.sleep(args.pause)
        for _ in range(engine.gradient_accumulation_steps()):
            given, target = next(data)
            loss = torch.nn.functional.mse_loss(engine(given.bfloat16()).float(), target)
            engine.backward(loss)
            engine.step()
        if dist.get_rank() == 0:
            reached = f"step {engine.global_steps} loss {loss.item():.6f}"
            print(f"{reached} batch {engine.train_batch_size()} samples {engine.global_samples}", flush=True)
        if args.save and engine.global_steps % args.save_every == 0:
            engine.save_checkpoint(args.save)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
