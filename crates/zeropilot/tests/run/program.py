"""A training program to which things happen: parameters and activations of a wanted size at little work, and faults on demand.

It trains on the real engine. `--tables` sets the parameters (a row is 64 of them), `--length` the activations of a sample.
"""

import argparse
import datetime
import os
import time

import deepspeed
import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

WIDTH = 64
ROWS = 1 << 16
LONG = 1 << 19


class Tables(torch.nn.Module):
    """Embeddings that are looked up one after the other, and activations that the backward pass needs."""

    def __init__(self, tables: int) -> None:
        super().__init__()
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(ROWS, WIDTH) for _ in range(tables))
        self.mix = torch.nn.Linear(WIDTH, WIDTH)
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, tokens: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        hidden = sum(table(tokens) for table in self.tables)
        for _ in range(4):
            hidden = torch.tanh(hidden)
        return torch.nn.functional.mse_loss(self.head(self.mix(hidden)).float(), target)


def samples(size: int, length: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    tokens = torch.randint(0, 256, (size, length), generator=generator)
    return tokens, (tokens[..., None] % 2).float()


def limit_waiting(timeout: datetime.timedelta) -> None:
    """The engine's own groups have PyTorch's default of half an hour, whatever the first group was given."""
    for group in list(c10d._world.pg_map):
        c10d._set_pg_timeout(timeout, group)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--deepspeed", required=True)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--long-from", type=int, help="samples have half a million tokens from this step on")
    parser.add_argument("--save")
    parser.add_argument("--save-every", type=int, default=2)
    parser.add_argument("--resume")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds that ranks wait for each other")
    parser.add_argument("--sleep-at", type=int, help="rank 1 sleeps from this step on")
    parser.add_argument("--infinite-at", type=int, help="a target that is not finite from this step on")
    parser.add_argument("--pause", type=float, default=0, help="seconds that each step takes longer")
    parser.add_argument("--slow-rank", type=int, help="a rank that takes --slow seconds longer in its forward pass")
    parser.add_argument("--slow-from", type=int, help="a step from which on all ranks take --slow seconds longer")
    parser.add_argument("--slow", type=float, default=0)
    parser.add_argument("--spike-at", type=int, help="a step with targets that are 100 times too large")
    parser.add_argument("--break-at", type=int, help="a step whose learning rate is 3000 times too large")
    parser.add_argument("--once", help="a file that says that this has been")
    parser.add_argument("--preemptible", action="store_true", help="save and end when a scheduler warns")
    parser.add_argument("--local_rank", type=int, default=-1)
    args = parser.parse_args()

    timeout = datetime.timedelta(seconds=args.timeout)
    deepspeed.init_distributed(timeout=timeout)
    torch.manual_seed(0)
    config = deepspeed.DeepSpeedConfig(args.deepspeed)
    with deepspeed.zero.Init(config_dict_or_path=args.deepspeed, enabled=config.zero_optimization_stage == 3):
        model = Tables(args.tables)
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=args.deepspeed)
    if args.resume:
        path, _ = engine.load_checkpoint(args.resume)
        if path is None:
            raise SystemExit(f"no checkpoint in {args.resume}")

    limit_waiting(timeout)
    if args.preemptible:
        from zeropilot import Preemption

        preemption = Preemption()
    size = engine.train_micro_batch_size_per_gpu()
    while engine.global_steps < args.steps:
        step = engine.global_steps + 1
        if args.sleep_at == step and dist.get_rank() == 1:
            time.sleep(3600)
        length = LONG if args.long_from and step >= args.long_from else args.length
        tokens, target = samples(size, length, step * 1000 + engine.micro_steps % 1000 + dist.get_rank())
        if args.infinite_at and step >= args.infinite_at:
            target = target / 0
        if args.spike_at == step:
            target = target * 100
        is_slow = args.slow_rank == dist.get_rank() or (args.slow_from is not None and step >= args.slow_from)
        time.sleep(args.pause + (args.slow if is_slow else 0))
        loss = engine(tokens, target)
        engine.backward(loss)
        is_update = engine.is_gradient_accumulation_boundary()
        is_broken = args.break_at == step and not os.path.exists(args.once)
        rate = 3000 if is_broken else 1
        for group in engine.optimizer.param_groups:
            group["lr"] *= rate
        engine.step()
        for group in engine.optimizer.param_groups:
            group["lr"] /= rate
        if is_update and dist.get_rank() == 0:
            print(f"step {engine.global_steps} loss {loss.item():.4f}", flush=True)
        if is_update and args.save and engine.global_steps % args.save_every == 0:
            engine.save_checkpoint(args.save)
        if is_broken and is_update:
            dist.barrier()
            open(args.once, "w").close()
        if is_update and args.preemptible and preemption.is_announced():
            engine.save_checkpoint(args.save)
            break


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
