"""Defects of engines that advisories report, each shown on real ranks.

Greeting: {"deepspeed": "0.19.8"}
Request:  {"id": 1, "advisory": "deepspeed-7981"}
Answer:   {"id": 1, "shows": true, "seen": "…"}: whether this engine has the defect, and what the ranks saw.

Every case runs on two ranks of its own, on gloo over loopback. What is right comes from the same engine without the
feature that is broken, or from arithmetic on plain PyTorch; a rank that raises an error which the case does not expect
fails the request.
"""

import json
import os
import tempfile
import traceback

# The gates of MoE layers are compiled by a PyTorch older than the one here expects.
os.environ["TORCHDYNAMO_DISABLE"] = "1"

import start_server
import engine
import json_lines

import deepspeed
import torch
from deepspeed.accelerator import get_accelerator

RANKS = 2
RATE = 0.1
CASES = {}


def case(advisory):
    def register(function):
        CASES[advisory] = function
        return function

    return register


def layers(*sizes):
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])))


def build(config, model, optimizer="sgd", **more):
    if optimizer == "sgd":
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=RATE)
    base = {"train_micro_batch_size_per_gpu": 1, "steps_per_print": 10**9, "zero_force_ds_cpu_optimizer": False,
            "zero_allow_untested_optimizer": True, "gradient_clipping": 0.0}
    return deepspeed.initialize(model=model, model_parameters=[p for p in model.parameters() if p.requires_grad],
                                optimizer=optimizer, config={**base, **config}, **more)[0]


def inputs(rank, count, size):
    """Different samples on each rank."""
    generator = torch.Generator().manual_seed(100 + rank)
    return [torch.randn(1, size, generator=generator) for _ in range(count)]


def weights(runner):
    return torch.cat([p.detach().float().flatten() for p in runner.module.parameters()])


def trained(config, rank, steps=1):
    """Weights after some optimizer steps."""
    runner = build(config, layers(4, 4, 4))
    for batch in inputs(rank, steps * config["gradient_accumulation_steps"], 4):
        runner.backward(runner(batch).pow(2).sum())
        runner.step()
    return weights(runner)


def as_on_a_full_gpu():
    """0.18 flattens parameters on the device if they fit twice, which fails on CPUs (deepspeed-7948)."""
    get_accelerator().available_memory = lambda *_: 0


def zero(stage, offload=False, steps=1, **more):
    section = {"stage": stage, **more}
    if offload:
        section["offload_optimizer"] = {"device": "cpu", "pin_memory": False}
    return {"gradient_accumulation_steps": steps, "zero_optimization": section}


def compared(wrong, right, what):
    difference = (wrong - right).abs().max().item()
    return difference > 1e-4 * max(right.abs().max().item(), 1e-6), f"{what} differ by {difference:.3g}"


@case("deepspeed-7509")
def last_micro_batch_only(rank):
    as_on_a_full_gpu()
    return compared(trained(zero(2, steps=2), rank), trained(zero(1, steps=2), rank), "weights after one step")


@case("deepspeed-7967")
def offloaded_accumulation(rank):
    as_on_a_full_gpu()
    offloaded = trained(zero(2, offload=True, steps=3), rank, steps=2)
    return compared(offloaded, trained(zero(2, steps=3), rank, steps=2), "weights after two steps")


@case("deepspeed-7948")
def flat_buffer_with_graph(rank):
    return raises(RuntimeError, lambda: trained(zero(2), rank))


@case("deepspeed-7981")
def several_backwards(rank):
    as_on_a_full_gpu()

    def after(offload):
        runner = build(zero(2, offload=offload), layers(4, 4, 4))
        first, second = inputs(rank, 2, 4)
        runner.set_gradient_accumulation_boundary(False)
        runner.backward(runner(first).pow(2).sum())
        runner.set_gradient_accumulation_boundary(True)
        runner.backward(runner(second).pow(2).sum())
        runner.step()
        return weights(runner)

    return compared(after(True), after(False), "weights after one step of two backward passes")


@case("deepspeed-7985")
def last_micro_batch(rank):
    def gradient(of):
        model = layers(4, 4, 4).bfloat16()
        for batch in inputs(of, 2, 4):
            (model(batch.bfloat16()).pow(2).sum() / 2).backward()
        return torch.cat([p.grad.float().flatten() for p in model.parameters()])

    model = layers(4, 4, 4)
    before = torch.cat([p.detach().bfloat16().float().flatten() for p in model.parameters()])
    runner = build({**zero(1, steps=2), "bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}, model)
    assert type(runner.optimizer).__name__ == "BF16_Optimizer"
    for batch in inputs(rank, 2, 4):
        runner.backward(runner(batch.bfloat16()).pow(2).sum())
        runner.step()
    step = weights(runner) - before
    right = -RATE * (gradient(0) + gradient(1)) / 2
    difference = (step - right).norm().item() / right.norm().item()
    return difference > 0.1, f"the update is off by {difference:.1%} of its length"


def rates(config, groups, steps):
    model = layers(4, 4)
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD([{"params": [p], "lr": rate} for p, rate in zip(parameters, groups)])
    runner = build(config, model, optimizer)
    seen = [[group["lr"] for group in optimizer.param_groups]]
    for batch in inputs(0, steps, 4):
        runner.backward(runner(batch).pow(2).sum())
        runner.step()
        seen.append([group["lr"] for group in optimizer.param_groups])
    return seen


def schedule(kind, **params):
    return {"scheduler": {"type": kind, "params": params}}


@case("deepspeed-7360")
def warmup_ignores_rate(_):
    last = rates(schedule("WarmupLR", warmup_num_steps=2), [5e-5, 5e-5], 6)[-1][0]
    return abs(last - 5e-5) > 1e-9, f"the optimizer's rate is 5e-05, after warmup it is {last:g}"


@case("deepspeed-8171")
def warmup_one_rate_for_all(_):
    last = rates(schedule("WarmupLR", warmup_num_steps=2), [1e-3, 1e-4], 6)[-1]
    return abs(last[1] - 1e-4) > 1e-9, f"the groups' rates are 0.001 and 0.0001, after warmup {last[0]:g} and {last[1]:g}"


@case("deepspeed-7969")
def cosine_before_warmup(_):
    params = {"total_num_steps": 100, "warmup_num_steps": 10, "warmup_min_ratio": 0.0}
    first = rates(schedule("WarmupCosineLR", **params), [1e-3, 1e-3], 0)[0]
    return first[0] != first[1], f"before the first step the groups have the rates {first[0]:g} and {first[1]:g}"


@case("deepspeed-8179")
def one_cycle_stairs(_):
    params = {"cycle_min_lr": 0.0, "cycle_max_lr": 1.0, "cycle_first_step_size": 8}
    smooth = rates(schedule("OneCycle", **params), [RATE, RATE], 8)
    stairs = rates(schedule("OneCycle", cycle_first_stair_count=2, **params), [RATE, RATE], 8)
    count = len({round(step[0], 9) for step in stairs})
    return smooth == stairs, f"two stairs give {count} different rates in 8 steps"


@case("deepspeed-7986")
def top_k_gating(_):
    from deepspeed.moe.sharded_moe import topkgating
    torch.manual_seed(0)
    logits = torch.rand(16, 4) - 2
    _, _, dispatch, _ = topkgating(logits, 2, 1.0, 1, drop_tokens=True, drop_policy="probs")[:4]
    kept = int(dispatch.sum())
    chosen = torch.zeros(16, 4).scatter(1, logits.topk(2, dim=1).indices, 1).sum(0)
    # Each expert has room for top-k · tokens / experts · factor of the tokens that chose it.
    right = int(chosen.clamp(max=2 * 16 / 4).sum())
    return kept != right, f"{kept} of {right} routes that have room are kept"


@case("deepspeed-7645")
def fp16_never_steps(_):
    model = layers(4, 4)
    before = torch.cat([p.detach().half().float().flatten() for p in model.parameters()])
    config = {"fp16": {"enabled": True, "initial_scale_power": 4},
              "optimizer": {"type": "AdamW", "params": {"lr": RATE}}}
    # DeepSpeed asks for fp16 instructions; PyTorch also computes in fp16 on processors without them.
    get_accelerator().is_fp16_supported = lambda: True
    runner = build(config, model, None)
    assert type(runner.optimizer).__name__ == "FP16_Optimizer"
    for batch in inputs(0, 3, 4):
        runner.backward(runner(batch.half()).pow(2).sum())
        runner.step()
    moved = (weights(runner) - before).abs().max().item()
    return moved == 0, f"three steps move the weights by {moved:.3g}"


@case("deepspeed-7660")
def large_parameter(rank):
    config = {**zero(2, reduce_bucket_size=8, contiguous_gradients=True, overlap_comm=False),
              "bf16": {"enabled": True}, "communication_data_type": "fp32"}
    runner = build(config, layers(4, 4, 4))
    return raises((AttributeError, KeyError, AssertionError),
                  lambda: runner.backward(runner(inputs(rank, 1, 4)[0].bfloat16()).float().pow(2).sum()))


def raises(expected, action):
    try:
        action()
    except expected as error:
        return True, f"{type(error).__name__}: {error}"[:300]
    return False, "no error"


@case("deepspeed-8009")
def module_added_later(rank):
    runner = build(zero(3), layers(4, 4, 4))
    runner.module.add_module("adapter", torch.nn.Identity())
    return raises(AttributeError, lambda: runner(inputs(rank, 1, 4)[0]))


def pipeline_step(rank):
    """The share of the right update that the layer on this rank makes, as one of two pipeline stages."""
    from deepspeed.pipe import LayerSpec, PipelineModule

    def loss(output, target):
        return (output - target).pow(2).sum()

    samples = inputs(0, 2, 4)
    right = layers(4, 4, 4)
    for batch in samples:
        (loss(right(batch), torch.zeros(1, 4)) / 2).backward()
    model = PipelineModule([LayerSpec(torch.nn.Linear, 4, 4), LayerSpec(torch.nn.Linear, 4, 4)],
                           num_stages=2, loss_fn=loss, partition_method="uniform", seed_layers=False)
    own = next(layer for layer in model.forward_funcs if isinstance(layer, torch.nn.Linear))
    own.load_state_dict(right[rank].state_dict())
    before = own.weight.detach().clone()
    runner = build({"gradient_accumulation_steps": 2}, model)
    runner.train_batch(iter([(batch, torch.zeros(1, 4)) for batch in samples]))
    share = ((own.weight.detach() - before) / (-RATE * right[rank].weight.grad)).median().item()
    return share, f"stage {rank} takes {share:.3g} of the right step"


@case("deepspeed-6675")
def pipeline_without_scaling(rank):
    share, seen = pipeline_step(rank)
    return share > 1.01, seen


@case("deepspeed-8154")
def pipeline_scaled_twice(rank):
    share, seen = pipeline_step(rank)
    return share < 0.99, seen


@case("deepspeed-7585")
def universal_with_groups(rank):
    from argparse import Namespace

    from deepspeed.checkpoint import ds_to_universal
    place = os.path.join(os.getcwd(), "checkpoint")
    runner = build(zero(3, sub_group_size=16), layers(4, 4, 4), torch.optim.AdamW)
    runner.backward(runner(inputs(rank, 1, 4)[0]).pow(2).sum())
    runner.step()
    runner.save_checkpoint(place, tag="one")
    torch.distributed.barrier()
    if rank != 0:
        return False, "the other rank converts"
    arguments = Namespace(input_folder=os.path.join(place, "one"), output_folder=os.path.join(place, "universal"),
                          num_extract_workers=1, num_merge_workers=1, keep_temp_folder=False, strict=True,
                          inject_missing_state=False)
    return raises(Exception, lambda: ds_to_universal.main(arguments))


@case("deepspeed-8029")
def copies_of_frozen_weights(_):
    model = layers(4, 64, 4)
    model[0].requires_grad_(False)
    trainable = sum(p.numel() for p in model[1].parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    runner = build({"bf16": {"enabled": True}}, model, optimizer)
    held = runner.optimizer.fp32_groups if hasattr(runner.optimizer, "fp32_groups") else runner.optimizer.fp32_groups_flat
    count = sum(tensor.numel() for group in held for tensor in (group if isinstance(group, list) else [group]))
    return count > trainable, f"fp32 master weights of {count} elements for {trainable} trainable ones"


@case("deepspeed-7735")
def square_root_scaling(_):
    from deepspeed.runtime.data_pipeline.data_sampling.variable_batch_size_and_lr import scale_lr
    return raises(TypeError, lambda: scale_lr(8, 16, 1e-3, "sqrt"))


@case("deepspeed-7171")
def infinite_norm(rank):
    config = {**zero(2), "bf16": {"enabled": True}, "gradient_clipping": 1.0}
    model = layers(4, 4)
    runner = build(config, model)
    batch = torch.full((1, 4), 1e30).bfloat16()
    runner.backward(runner(batch).float().sum() * 1e30)
    runner.step()
    norm = runner.get_global_grad_norm()
    return bool(norm != norm), f"the gradient's norm is reported as {float(norm):g}"


@case("deepspeed-7707")
def stale_secondary_copy(rank):
    config = zero(3, zero_hpz_partition_size=RANKS, stage3_param_persistence_threshold=0)
    place = os.path.join(os.getcwd(), "checkpoint")
    batch = inputs(0, 1, 4)[0]
    first = build(config, layers(4, 4, 4))
    for sample in inputs(rank, 2, 4):
        first.backward(first(sample).pow(2).sum())
        first.step()
    right = first(batch).detach().clone()
    first.save_checkpoint(place)
    torch.distributed.barrier()
    second = build(config, layers(4, 4, 4))
    second(batch)
    second.load_checkpoint(place)
    return compared(second(batch).detach(), right, "outputs after the checkpoint is loaded")


@case("deepspeed-6546")
def expert_gradients(rank):
    from deepspeed.moe.layer import MoE
    from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer as split

    def update(ep_size):
        torch.manual_seed(0)
        model = torch.nn.Module()
        expert = torch.nn.Linear(4, 4, bias=False)
        model.moe = MoE(4, expert, num_experts=2, ep_size=ep_size, k=1, capacity_factor=1.0, min_capacity=8,
                        use_rts=False)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                generator = torch.Generator().manual_seed(7)
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        model.forward = lambda batch: model.moe(batch)[0]
        groups = split({"params": list(model.parameters()), "name": "all"})
        optimizer = torch.optim.SGD(groups, lr=RATE)
        runner = build({**zero(2), "fp16": {"enabled": False}, "bf16": {"enabled": True}}, model, optimizer)
        experts = [p for n, p in runner.module.named_parameters() if "experts" in n]
        before = [p.detach().float().clone() for p in experts]
        batch = torch.cat(inputs(rank, 8, 4)).bfloat16()
        runner.backward(runner(batch).float().pow(2).sum())
        runner.step()
        return sum((p.detach().float() - b).norm() ** 2 for p, b in zip(experts, before))

    whole = update(1)
    shared = update(2)
    torch.distributed.all_reduce(shared)
    share = (shared / whole).sqrt().item()
    return abs(share - 1) > 0.2, f"with expert parallelism experts move {share:.2f} times as far"


MUON = {"optimizer": {"type": "Muon", "params": {"lr": RATE, "momentum": 0.95, "weight_decay": 0.0, "torch_adam": True}}}


def newton_schulz_calls():
    """Counts the updates that Muon makes orthogonal, wherever the engine calls them from."""
    from deepspeed.runtime.zero import stage3, stage_1_and_2
    from deepspeed.runtime.zero.muon import muon_optimizer, original_muon
    real, calls = original_muon.muon_update, []

    def counted(*arguments, **options):
        calls.append(1)
        return real(*arguments, **options)

    for module in (original_muon, muon_optimizer, stage3, stage_1_and_2):
        if hasattr(module, "muon_update"):
            module.muon_update = counted
    return calls


def muon_step(config, model, rank, steps=1):
    calls = newton_schulz_calls()
    runner = build({**MUON, **config}, model, None)
    for batch in inputs(rank, steps * config.get("gradient_accumulation_steps", 1), 4):
        runner.backward(runner(batch).pow(2).sum())
        runner.step()
    return runner, len(calls)


@case("deepspeed-8442")
def muon_without_zero(rank):
    model = layers(4, 4, 4)
    gradients = []
    for of in range(RANKS):
        copy = layers(4, 4, 4)
        copy(inputs(of, 1, 4)[0]).pow(2).sum().backward()
        gradients.append(copy[0].weight.grad)
    before = model[0].weight.detach().clone()
    runner, _ = muon_step({}, model, rank)
    step = runner.module[0].weight.detach() - before
    plain = -RATE * sum(gradients) / RANKS
    difference = (step - plain).abs().max().item()
    return difference < 1e-5, f"the step differs from that of SGD by {difference:.3g}"


@case("deepspeed-8438")
def muon_under_init(rank):
    config = {**zero(3, reduce_scatter=False), "train_micro_batch_size_per_gpu": 1}
    with deepspeed.zero.Init(config_dict_or_path=config):
        model = layers(4, 4, 4)
    _, calls = muon_step(config, model, rank)
    return calls == 0, f"{calls} orthogonal updates for two matrices"


@case("deepspeed-8600")
def muon_every_micro_step(rank):
    config = zero(3, steps=4, reduce_scatter=False)
    _, calls = muon_step(config, layers(4, 4, 4), rank)
    _, once = muon_step({**config, "gradient_accumulation_steps": 1}, layers(4, 4, 4), rank)
    return calls > once, f"{calls} orthogonal updates with four micro-steps, {once} with one"


@case("deepspeed-8435")
def muon_after_overflow(rank):
    get_accelerator().is_fp16_supported = lambda: True
    config = {**zero(1, reduce_scatter=False), **MUON,
              "fp16": {"enabled": True, "initial_scale_power": 20, "hysteresis": 1}}
    runner = build(config, layers(4, 4), None)
    before = weights(runner)
    for batch in inputs(rank, 16, 4):
        runner.backward(runner(batch.half()).float().pow(2).sum())
        try:
            runner.step()
        except Exception as error:
            return "minimum" in str(error), str(error)
    moved = (weights(runner) - before).abs().max().item()
    return moved == 0, f"sixteen steps move the weights by {moved:.3g}"


@case("deepspeed-8382")
def buckets_without_reduction(rank):
    as_on_a_full_gpu()
    config = zero(1, contiguous_gradients=False, reduce_scatter=False, overlap_comm=False)
    return compared(trained(config, rank), trained(zero(1), rank), "weights after one step")


@case("deepspeed-8245")
def engine_and_module(rank):
    as_on_a_full_gpu()
    size, micro_steps = 4, 4
    right = layers(size, size)
    gradient = torch.zeros_like(right[0].weight)
    for of in range(RANKS):
        for batch in inputs(of, micro_steps, size):
            right.zero_grad()
            ((right(batch) + right(batch * 0.5)).pow(2).mean() / micro_steps).backward()
            gradient += right[0].weight.grad / RANKS
    model = layers(size, size)
    before = model[0].weight.detach().clone()
    runner = build(zero(2, steps=micro_steps), model)
    for batch in inputs(rank, micro_steps, size):
        runner.backward((runner(batch) + runner.module(batch * 0.5)).pow(2).mean())
        runner.step()
    step = runner.module[0].weight.detach() - before
    return compared(step, -RATE * gradient, "the update and that of plain PyTorch")


@case("deepspeed-8280")
def empty_parameter(rank):
    as_on_a_full_gpu()
    model = layers(4, 4)
    model.add_module("empty", torch.nn.Linear(4, 0, bias=False))
    model.forward = lambda batch: model[0](batch).pow(2).sum() + model.empty(batch).sum()
    runner = build(zero(1), model)
    return raises(KeyError, lambda: runner.backward(runner(inputs(rank, 1, 4)[0])))


def rank_main(rank, port, name, answer_path):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_WORLD_SIZE=str(RANKS),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    # What a case writes, such as a checkpoint, goes away with the answers.
    os.chdir(os.path.dirname(answer_path))
    try:
        deepspeed.init_distributed(dist_backend="gloo", verbose=False)
        shows, seen = CASES[name](rank)
        result = {"shows": bool(shows), "seen": seen}
    except BaseException:
        result = {"error": traceback.format_exc()[-1500:]}
    with open(answer_path, "w") as file:
        json.dump(result, file)


def answer(request):
    with tempfile.TemporaryDirectory(prefix="zeropilot-") as directory:
        answers = start_server.on_ranks(
            RANKS, lambda rank, port, place: rank_main(rank, port, request["advisory"], place), directory)
    failed = [one["error"] for one in answers if "error" in one]
    if failed:
        return {"shows": None, "seen": failed[0]}
    shown = [one for one in answers if one["shows"]]
    return (shown or answers)[0]


def main():
    json_lines.serve(answer, {"deepspeed": engine.VERSION}, json_lines.claim_output())


if __name__ == "__main__":
    main()
