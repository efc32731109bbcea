"""Models that a program holds: only what they are called and how large they are is read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Iterable

import pytest

import zeropilot as zp

ENGINE = Path(os.environ.get("ZEROPILOT_ORACLE_HOME", "")) / "engine" / "bin" / "python"


class Sized:
    """What torch calls a parameter, without torch."""

    dtype = "torch.float32"

    def __init__(self, *shape: int, requires_grad: bool = True) -> None:
        self.shape, self.requires_grad = shape, requires_grad

    def __getattr__(self, name: str) -> object:
        if name == "ds_shape":
            raise AttributeError(name)
        raise AssertionError(f"{name} of a parameter was read")


class Net:
    """Two layers."""

    def __init__(self, frozen: bool = False) -> None:
        self.parameters = [
            ("embed.weight", Sized(1000, 64, requires_grad=not frozen)),
            ("layers.0.weight", Sized(64, 64)),
            ("layers.0.bias", Sized(64)),
        ]

    def named_parameters(self) -> Iterable[tuple[str, Sized]]:
        return self.parameters


def test_states_follow_from_names_and_shapes_alone() -> None:
    answer = zp.memory(Net(), gpus="1x24GB", stage=0, precision="fp32", seq_len=16)
    assert answer.model == "Net" and answer.activations.program == "stand_in"
    elements = 1000 * 64 + 64 * 64 + 64
    held = answer.tensors.after_step.device
    # Weights and two moments in 32 bits.
    assert held["parameters"] == 4 * elements
    assert held["first_moment"] == held["second_moment"] == 4 * elements
    assert "torch" not in sys.modules


def test_what_is_frozen_has_no_optimizer_states() -> None:
    answer = zp.memory(Net(frozen=True), gpus="1x24GB", stage=0, precision="fp32", seq_len=16)
    assert answer.tensors.after_step.device["first_moment"] == 4 * (64 * 64 + 64)


@pytest.mark.skipif(not ENGINE.is_file(), reason="the engine's environment is not here")
def test_transformers_models_are_answered_as_by_their_config() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.environ["ZEROPILOT_WHEEL_BESIDE"],
        "OMP_NUM_THREADS": "1",
        "DS_ACCELERATOR": "cpu",
    }
    program = Path(__file__).with_name("models_in_memory.py")
    done = subprocess.run([ENGINE, program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["llama", "gpt2", "qwen3", "t5", "bert", "frozen", "headless", "peft"]
