"""What all tests use: the command of the installed wheel, and files to ask about."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Callable

import pytest

import zeropilot

ROOT = Path(__file__).resolve().parents[2]
COMMAND = Path(sysconfig.get_path("scripts")) / "zeropilot"


def pytest_sessionstart() -> None:
    inside = Path(sysconfig.get_path("platlib"))
    assert Path(zeropilot.__file__).is_relative_to(inside), "the tests are for the installed wheel"


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)


class Said:
    """What the command said."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self) -> Any:
        assert self.code < 2, self.err
        return json.loads(self.out)


@pytest.fixture
def command() -> Callable[..., Said]:
    def run(*arguments: str) -> Said:
        done = subprocess.run(
            [COMMAND, *arguments], capture_output=True, text=True, env=dict(os.environ), check=False
        )
        return Said(done)

    return run


CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 8,
    "bf16": {"enabled": True},
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "cpu"},
        "stage3_prefetch_bucket_size": 1e7,
    },
}


@pytest.fixture
def ds(tmp_path: Path) -> Path:
    path = tmp_path / "ds.json"
    path.write_text(json.dumps(CONFIG))
    return path


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    path = tmp_path / "refused.json"
    path.write_text('{"train_batch_size": 7, "gradient_acumulation_steps": 2}')
    return path
