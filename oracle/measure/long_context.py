"""Sequences that ranks share (Ulysses), drawn at random and measured: what is alive in each phase, and every call.

    python -m measure.long_context [count] [seed]         in `oracle/`: one case per line

A case has the shape of those in `knowledge/measured/long-context.json`: "world" ranks, "sequence_ranks" of which share a
sequence of "sequence" tokens, "model" by its lengths, "config", "checkpointing" (null, "re" for reentrant, "no" for the
other kind), "mlp_tiles" (null, a number, or "auto" as DeepSpeed's documentation computes them) and "loss": "trainer" (the
Trainer's), or DeepSpeed's `sequence_tiled_compute` ("stc") and `TiledFusedLogitsLoss` ("tfl") in "loss_shards" shards, called
as its documentation does it, on what the model's body returns. The last of three steps is recorded. Checkpoints on the host are not drawn: here host and device are one.
"""

import json
import math
import random
import sys

STEPS = 3
HEADS = [(8, 8), (8, 4), (8, 2), (8, 1), (4, 4), (4, 2), (4, 1)]


def is_cut(tokens, micro_batch, count):
    """Whether each tile has tokens: DeepSpeed waits for the last one."""
    is_whole = lambda length: math.ceil(length / math.ceil(length / count)) == count
    return is_whole(tokens) and is_whole(tokens * micro_batch)


def tiles(draw, tokens, micro_batch):
    count = draw.choice([None, None, 2, 3, "auto"])
    return count if not isinstance(count, int) or is_cut(tokens, micro_batch, count) else None


def zero(draw):
    stage = draw.choice([0, 1, 2, 3, 3, 3])
    section = {
        "stage": stage,
        "reduce_bucket_size": draw.choice([3000, 6000, 20_000, 100_000]),
        "allgather_bucket_size": draw.choice([10_000, 100_000]),
    }
    if stage == 3:
        section["stage3_param_persistence_threshold"] = draw.choice([0, 100, 100_000])
        section["stage3_prefetch_bucket_size"] = draw.choice([0, 5000, 50_000_000])
        section["stage3_max_reuse_distance"] = draw.choice([0, 3000, 1_000_000_000])
    return section


def case(draw):
    world = draw.choice([2, 2, 4])
    ranks = draw.choice([size for size in (2, 4) if size <= world])
    heads, kv_heads = draw.choice([pair for pair in HEADS if pair[0] % ranks == 0])
    tokens, micro_batch = draw.randint(4, 33), draw.choice([1, 1, 2, 3])
    config = {
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": draw.choice([1, 1, 2]),
        "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}},
        "zero_optimization": zero(draw),
    }
    precision = draw.choice(["bf16", "bf16", "fp16", "fp32"])
    if precision != "fp32":
        config[precision] = {"enabled": True, **({"loss_scale": 8} if precision == "fp16" else {})}
        if draw.random() < 0.3:
            config["seq_parallel_communication_data_type"] = precision
    # transformers' loss views the labels of a shard as a row, which those of several sequences are not.
    loss = draw.choice(["trainer", "trainer", "tfl"] + ["stc"] * (micro_batch == 1))
    return {
        "world": world,
        "sequence_ranks": ranks,
        "sequence": ranks * tokens,
        "model": {
            "arch": draw.choice(["llama", "qwen2", "qwen3"]), "h": draw.choice([24, 32]), "a": heads, "k": kv_heads, "d": 8,
            "i": draw.choice([48, 56, 80]), "v": draw.choice([101, 131, 211]), "L": draw.choice([1, 2, 3]),
            # A tiled loss reduces the gradient of its weight before the embedding has added its own.
            "tie": draw.random() < 0.2 and loss == "trainer",
        },
        "config": config,
        "checkpointing": draw.choice([None, "re", "no"]),
        "mlp_tiles": tiles(draw, tokens, micro_batch),
        "loss": loss,
        "loss_shards": draw.choice([count for count in (1, 2, 3, 4) if is_cut(tokens, micro_batch, count)]),
    }


def modeling(name):
    import importlib

    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def tile_mlps(architecture, count):
    """As DeepSpeed documents it: every rank takes as many tiles as the one that needs most."""
    import deepspeed.comm as dist
    import torch
    from deepspeed.runtime.sequence_parallel.ulysses_sp import TiledMLP

    def plain(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))

    def forward(self, x):
        shards = count
        if count == "auto":
            most = torch.tensor(math.ceil(x.shape[-2] / x.shape[-1]))
            dist.all_reduce(most, op=dist.ReduceOp.MAX)
            shards = most.item()
        return TiledMLP.apply(plain, self, x, shards, [self.down_proj.weight, self.gate_proj.weight, self.up_proj.weight])

    next(member for name, member in vars(modeling(architecture)).items() if name.endswith("MLP")).forward = forward


def build(case):
    import torch
    import transformers

    lengths = case["model"]
    name = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[lengths["arch"]]
    config = getattr(transformers, f"{name}Config")(
        hidden_size=lengths["h"], intermediate_size=lengths["i"], num_hidden_layers=lengths["L"],
        num_attention_heads=lengths["a"], num_key_value_heads=lengths["k"], head_dim=lengths["d"],
        vocab_size=lengths["v"], tie_word_embeddings=lengths["tie"], attn_implementation="sdpa", use_cache=False,
    )
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForCausalLM")(config)
    if case["checkpointing"]:
        model.gradient_checkpointing_enable({"use_reentrant": case["checkpointing"] == "re"})
    return model.train()


def listen_beside(calls):
    """What PyTorch's differentiable functions call past the engine. For gloo they hand `scatter` the rank in the group."""
    import torch

    def wrap(kind, names, function):
        def wrapper(*positional, **keywords):
            if calls._inside:
                return function(*positional, **keywords)
            arguments = {**dict(zip(names, positional)), **keywords}
            if kind == "scatter":
                source = torch.distributed.get_global_rank(arguments["group"], arguments["src"])
                calls.add(kind, {"given": arguments["received"], "group": arguments["group"]})
                return function(arguments["received"], arguments["given"], source, group=arguments["group"])
            calls.add(kind, arguments)
            return function(*positional, **keywords)

        return wrapper

    for kind, names in {"all_gather": ["received", "given"], "scatter": ["received", "given", "src"]}.items():
        setattr(torch.distributed, kind, wrap(kind, names, getattr(torch.distributed, kind)))


class Rank:
    def __init__(self, case, rank):
        from measure import calls
        from measure.recorder import Recorder

        self.case, self.rank = case, rank
        self.calls, self.recorder = calls.listen(), Recorder()
        listen_beside(self.calls)
        self.measured, self.recorded = {}, []

    def batch(self, mpu):
        import torch

        case = self.case
        shape = (case["config"]["train_micro_batch_size_per_gpu"], case["sequence"])
        seed = torch.Generator().manual_seed(self.rank // case["sequence_ranks"])
        ids = torch.randint(0, case["model"]["v"], shape, generator=seed)
        labels = torch.nn.functional.pad(ids, (0, 1), value=-100)[:, 1:]
        positions = torch.arange(case["sequence"]).expand(shape)
        own = case["sequence"] // case["sequence_ranks"]
        begin = mpu.get_sequence_parallel_rank() * own
        mine = lambda tensor: tensor[:, begin : begin + own].clone()
        return {"input_ids": mine(ids), "position_ids": mine(positions), "shift_labels": mine(labels)}

    def own_loss(self, batch):
        """The loss of this rank's tokens; of the tiled ones their sum."""
        if self.case["loss"] == "trainer":
            return self.engine(**batch, labels=batch["shift_labels"]).loss
        from deepspeed.runtime.sequence_parallel.ulysses_sp import TiledFusedLogitsLoss, sequence_tiled_compute

        model, shards = self.engine.module, self.case["loss_shards"]
        labels = batch.pop("shift_labels")
        hidden = model.model(**batch).last_hidden_state
        batch["shift_labels"] = labels

        def compute(self, x, y):
            logits = self.lm_head(x)
            return self.loss_function(logits, None, self.config.vocab_size, num_items_in_batch=1, shift_labels=y)

        if self.case["loss"] == "tfl":
            return TiledFusedLogitsLoss.apply(compute, model, hidden, labels, None, shards, [model.lm_head.weight], "sum")
        return sequence_tiled_compute(
            compute, hidden.shape[1], shards, {"x": hidden, "y": labels}, {"self": model}, "x", [model.lm_head.weight],
            output_unshard_dimension=0, output_reduction="sum",
        )

    def forward(self, batch, group):
        """As the Trainer does it."""
        import torch
        from torch.distributed.nn.functional import all_gather

        loss = self.own_loss(batch)
        losses = all_gather(loss, group=group)
        counted = (batch["shift_labels"] != -100).view(-1).sum()
        counts = torch.stack(all_gather(counted, group=group))
        losses = torch.stack(losses)
        return (losses * counts).sum() / counts.sum()

    def phase(self, name, number, micro, work):
        self.recorder.restart()
        value = work()
        self.measured[name] = self.recorder.peak
        for count, kind, size, given, received, ranks, is_async in self.calls.take():
            if number == STEPS - 1:
                self.recorded += [[f"{name}2.{micro}", kind, given, received, size, ranks, is_async]] * count
        return value

    def run(self):
        import deepspeed
        from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF

        case = self.case
        if case["mlp_tiles"]:
            tile_mlps(case["model"]["arch"], case["mlp_tiles"])
        with self.recorder:
            model = build(case)
            mpu = UlyssesSPAttentionHF.register_with_transformers(
                model_name_or_path=model, core_attn_implementation="sdpa", sequence_parallel_size=case["sequence_ranks"],
                micro_batch_size=case["config"]["train_micro_batch_size_per_gpu"], seq_length=case["sequence"],
                seq_length_is_variable=True,
            )
            self.engine, *_ = deepspeed.initialize(
                model=model, model_parameters=model.parameters(), config=case["config"], mpu=mpu
            )
            del model
            group = mpu.get_sequence_parallel_group()
            for number in range(STEPS):
                self.calls.take()
                rest = self.recorder.total
                for micro in range(self.engine.gradient_accumulation_steps()):
                    batch = self.batch(mpu)
                    loss = self.phase("fwd", number, micro, lambda: self.forward(batch, group))
                    self.phase("bwd", number, micro, lambda: self.engine.backward(loss))
                    del loss
                    self.phase("step", number, micro, self.engine.step)
                size = sum(tensor.nbytes for tensor in batch.values())
                del batch
        return {"calls": self.recorded, "rank": {"rank": self.rank, "batch": size, "measured": {**self.measured, "rest": rest}}}


def measured(case):
    from measure import ranks

    answers = ranks.run(lambda case, rank: Rank(case, rank).run(), case)
    if isinstance(answers, dict):
        return answers
    return {"calls": answers[0]["calls"], "ranks": [answer["rank"] for answer in answers]}


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(seed)
    for _ in range(count):
        print(json.dumps(case(draw)))


if __name__ == "__main__":
    main()
