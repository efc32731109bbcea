"""Training programs that hang, each in the way in which people write it: a small model on the real engine.

Lines with a mark such as `# HERE save` are the ones that must be named.
"""

import argparse
import time

import deepspeed
import torch
import torch.distributed as dist
import torch.utils.cpp_extension

WIDTH = 16
STEPS = 6
# The step at which something goes wrong.
WRONG = 3


class Model(torch.nn.Module):
    """A tower for images beside a model of text."""

    def __init__(self) -> None:
        super().__init__()
        self.text = torch.nn.Linear(WIDTH, WIDTH)
        self.tower = torch.nn.Sequential(torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.Linear(2 * WIDTH, WIDTH))
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, words: torch.Tensor, image: torch.Tensor | None) -> torch.Tensor:
        hidden = self.text(words)
        if image is not None:
            hidden = hidden + self.tower(image)
        return self.head(hidden).float().pow(2).mean()


class Samples(torch.utils.data.Dataset):
    """Samples of which one is never read to its end."""

    def __init__(self, count: int, stuck: int | None) -> None:
        self.count, self.stuck = count, stuck

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == self.stuck:
            time.sleep(3600)  # HERE data
        return torch.full((WIDTH,), index / self.count, dtype=torch.bfloat16)


def image() -> torch.Tensor:
    return torch.ones(1, WIDTH, dtype=torch.bfloat16)


class Training:
    def __init__(self, engine) -> None:
        self.engine = engine
        self.rank = dist.get_rank()
        self.is_last = self.rank == dist.get_world_size() - 1

    def told(self, step: int, loss: torch.Tensor) -> None:
        if self.rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)

    def step(self, step: int, words: torch.Tensor) -> None:
        loss = self.engine(words, image())
        self.engine.backward(loss)
        self.engine.step()
        self.told(step, loss)

    def loader(self, count: int = STEPS, stuck: int | None = None, workers: int = 0):
        return enumerate(torch.utils.data.DataLoader(Samples(count, stuck), num_workers=workers), 1)

    def save(self) -> None:
        for step, words in self.loader():
            self.step(step, words)
            if step == WRONG and self.rank == 0:
                self.engine.save_checkpoint("ckpt")  # HERE save

    def evaluate(self) -> None:
        for step, words in self.loader():
            self.step(step, words)
            if dist.get_rank() == 0 and step == WRONG:
                self.score()  # HERE one rank

    def score(self) -> float:
        with torch.no_grad():
            return self.engine(image(), None).item()  # HERE evaluate

    def text(self) -> None:
        for step, words in self.loader():
            seen = None if step == WRONG and self.is_last else image()
            loss = self.engine(words, seen)  # HERE text
            self.engine.backward(loss)
            self.engine.step()
            self.told(step, loss)

    def uneven(self) -> None:
        for step, words in self.loader(STEPS - 2 if self.is_last else STEPS):  # HERE loop
            self.step(step, words)
        dist.barrier()  # HERE uneven

    def skip(self) -> None:
        for step, words in self.loader():
            if step == WRONG and self.is_last:
                continue  # HERE continue
            self.step(step, words)
        dist.barrier()  # HERE skip

    def data(self) -> None:
        for step, words in self.loader(stuck=WRONG if self.is_last else None, workers=1):
            self.step(step, words)

    def sleep(self) -> None:
        for step, words in self.loader():
            self.step(step, words)
            if step == WRONG and self.is_last:
                time.sleep(3600)  # HERE sleep

    def ahead(self) -> None:
        """As on GPUs: the call returns at once, and the rank waits where its stack shows no collective."""
        for step, words in self.loader():
            self.step(step, words)
            if step == WRONG:
                work = None if self.is_last else dist.all_reduce(torch.ones(8), async_op=True)
                while work is None or not work.is_completed():
                    time.sleep(0.1)  # HERE ahead

    def group(self) -> None:
        other = dist.new_group()
        for step, words in self.loader():
            self.step(step, words)
            if step == WRONG:
                dist.all_reduce(torch.ones(8), group=other if self.is_last else None)  # HERE group

    def build(self) -> None:
        for step, words in self.loader():
            self.step(step, words)
            if step == WRONG:
                torch.utils.cpp_extension.load_inline("one", "int one() { return 1; }", functions=["one"])  # HERE build


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--deepspeed", required=True)
    parser.add_argument("--hang", required=True)
    parser.add_argument("--local_rank", type=int, default=-1)
    args = parser.parse_args()
    deepspeed.init_distributed()
    torch.manual_seed(0)
    stage = deepspeed.DeepSpeedConfig(args.deepspeed).zero_optimization_stage
    with deepspeed.zero.Init(config_dict_or_path=args.deepspeed, enabled=stage == 3):
        model = Model()
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=args.deepspeed)
    getattr(Training(engine), args.hang)()


if __name__ == "__main__":
    main()
