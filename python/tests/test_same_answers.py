"""The module and the command give one answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest

import zeropilot as zp

MEMORY: list[tuple[dict[str, Any], list[str]]] = [
    ({"gpus": "5x44GB"}, []),
    ({"gpus": "8xA100-80G", "stage": 2, "offload": "optimizer"}, ["--stage", "2", "--offload", "optimizer"]),
    ({"gpus": "4x8xH100", "rank": 31, "seq_len": 512}, ["--rank", "31", "--seq-len", "512"]),
    (
        {"gpus": "8", "method": "lora", "lora_rank": 8, "lora_targets": ["q_proj", "v_proj"]},
        ["--method", "lora", "--lora-rank", "8", "--lora-targets", "q_proj,v_proj"],
    ),
    (
        {"gpus": "2x24GB", "method": "qlora", "grad_checkpointing": True, "fused_loss": True},
        ["--method", "qlora", "--grad-checkpointing", "--fused-loss"],
    ),
    (
        {"gpus": "2x80GB", "precision": "fp16", "optimizer": "adamw8bit", "attention": "eager", "host_ram": "512GiB"},
        ["--precision", "fp16", "--optimizer", "adamw8bit", "--attention", "eager", "--host-ram", "512GiB"],
    ),
    (
        {"gpus": "2x80GB", "deepspeed_version": "0.16.9", "transformers_version": "4.44.2"},
        ["--deepspeed-version", "0.16.9", "--transformers-version", "4.44.2"],
    ),
]


@pytest.mark.parametrize(("arguments", "flags"), MEMORY, ids=lambda it: "")
def test_memory(command: Callable[..., Any], arguments: dict[str, Any], flags: list[str]) -> None:
    said = command("memory", "--json", "--model", "qwen3-0.6b", "--gpus", arguments["gpus"], *flags)
    assert zp.memory("qwen3-0.6b", **arguments).to_dict() == said.json()


def test_memory_of_a_config(command: Callable[..., Any], ds: Path) -> None:
    said = command("memory", "--json", "--model", "gpt2", "--gpus", "2x24GB", "--config", str(ds))
    assert zp.memory("gpt2", gpus="2x24GB", config=ds).to_dict() == said.json()
    as_dictionary = zp.memory("gpt2", gpus="2x24GB", config=json.loads(ds.read_text()))
    assert as_dictionary.to_dict() == said.json()


def test_compare(command: Callable[..., Any]) -> None:
    said = command("memory", "--json", "--compare", "--model", "gpt2", "--gpus", "2x24GB")
    compared = zp.compare("gpt2", gpus="2x24GB")
    assert compared.to_dict() == said.json()
    assert [way.stage for way in compared.strategies] == [0, 1, 2, 2, 3, 3, 3]


def test_simulate(command: Callable[..., Any]) -> None:
    flags = ["--stage", "2", "--seq-len", "1024", "--scale", "8..16", "--tokens", "1B", "--cost", "2.5"]
    said = command("simulate", "--json", "--model", "qwen3-0.6b", "--gpus", "8xA100-80G", *flags)
    asked = {"stage": 2, "seq_len": 1024, "scale": (8, 16), "tokens": "1B", "cost": "2.5"}
    step = zp.simulate("qwen3-0.6b", gpus="8xA100-80G", **asked)
    assert step.to_dict() == said.json()
    assert step.cost_estimate is not None and step.scaling[-1].gpus == 16


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_diagnose(command: Callable[..., Any], tmp_path: Path, lang: str) -> None:
    log = "  File \"torch/optim/adamw.py\", line 2, in step\nCUDA out of memory. Tried to allocate 2.00 GiB\n"
    (tmp_path / "<text>").write_text(log)
    said = command("diagnose", "<text>", "--json", "--lang", lang)
    found = zp.diagnose(log, lang=lang)
    assert found.to_dict() == said.json()
    assert (found.cause, found.phase) == ("model_states", "step")
    assert zp.diagnose("loss 1.0").cause is None


@pytest.mark.parametrize("target", ["deepspeed", "hf-trainer"])
def test_plan(command: Callable[..., Any], target: str) -> None:
    flags = ["--seq-len", "1024", "--global-batch", "64", "--for", target]
    said = command("plan", "--json", "--model", "qwen3-0.6b", "--gpus", "2x24GB", *flags)
    planned = zp.plan("qwen3-0.6b", gpus="2x24GB", seq_len=1024, global_batch=64, target=target)
    assert planned.to_dict() == said.json()
    assert planned.recommended is not None and planned.recommended.launch is not None
    assert planned.recommended.config["zero_optimization"]["stage"] == planned.recommended.strategy.stage


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_check(command: Callable[..., Any], ds: Path, refused: Path, lang: str) -> None:
    for path in (ds, refused):
        said = command("check", "--output-format", "json", "--world-size", "4", "--lang", lang, str(path))
        assert [zp.check(path, world_size=4, lang=lang).to_dict()] == said.json()


def test_check_with_what_the_script_is_told(command: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "auto.json"
    path.write_text('{"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}')
    flags = ["--per-device-train-batch-size", "4", "--bf16", "--learning-rate", "1e-4", "--ignore", "Z"]
    said = command("check", "--output-format", "json", *flags[:-2], str(path))
    found = zp.check(path, per_device_train_batch_size=4, bf16=True, learning_rate=1e-4)
    assert [found.to_dict()] == said.json()
    assert found.accepted and found.front_end.name == "hf-trainer"


@pytest.mark.parametrize("topic", ["zero3", "stage3_max_live_parameters", "aio.queue_depth", "enabled"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_explain(command: Callable[..., Any], topic: str, lang: str) -> None:
    said = command("explain", "--json", "--lang", lang, topic)
    assert [zp.explain(topic, lang=lang).to_dict()] == said.json()


def test_explain_of_everything_else(command: Callable[..., Any], ds: Path, tmp_path: Path) -> None:
    assert [zp.explain().to_dict()] == command("explain", "--json").json()
    assert [zp.explain(ds).to_dict()] == command("explain", "--json", str(ds)).json()
    other = tmp_path / "other.json"
    other.write_text('{"train_batch_size": 8, "zero_optimization": {"stage": 2}}')
    said = command("explain", "--json", "diff", str(ds), str(other))
    assert [zp.diff(ds, other).to_dict()] == said.json()


NEW: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"micro_batch_size": 2, "gradient_accumulation": 32, "offload": True, "world_size": 4},
        ["--stage", "3", "--micro-batch", "2", "--grad-accum", "32", "--offload", "--world-size", "4"],
    ),
    ({"preset": "zero2", "target": "hf-trainer"}, ["zero2", "--for", "hf-trainer"]),
    (
        {"preset": "zero3", "model": "qwen3-8b", "world_size": 8, "global_batch": 256, "micro_batch_size": 2},
        ["zero3", "--model", "qwen3-8b", "--world-size", "8", "--global-batch", "256", "--micro-batch", "2"],
    ),
    (
        {"preset": "zero3_nvme", "nvme_path": "/disk", "fp16": True, "initial_scale_power": 12, "aio_queue_depth": 16},
        ["zero3_nvme", "--nvme-path", "/disk", "--fp16", "--initial-scale-power", "12", "--aio-queue-depth", "16"],
    ),
    (
        {"stage": 2, "reduce_bucket_size": 2e8, "overlap_comm": False, "optimizer": "adamw", "learning_rate": 1e-4},
        ["--stage", "2", "--reduce-bucket-size", "2e8", "--overlap-comm", "false", "--optimizer", "adamw", "--lr", "1e-4"],
    ),
    (
        {"stage": 3, "offload": True, "offload_optimizer_ratio": 0.5, "scheduler": "WarmupLR", "warmup_steps": 10},
        ["--stage", "3", "--offload", "--offload-optimizer-ratio", "0.5", "--scheduler", "WarmupLR", "--warmup-steps", "10"],
    ),
]


@pytest.mark.parametrize(("arguments", "flags"), NEW, ids=lambda it: "")
def test_new(command: Callable[..., Any], arguments: dict[str, Any], flags: list[str]) -> None:
    said = command("new", "--json", "-o", "-", *flags).json()
    made = zp.create(zp.ZeroConfig(**arguments))
    assert made.to_dict() == said
    assert zp.build_config(zp.ZeroConfig(**arguments)) == said["config"]
