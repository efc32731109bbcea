"""Starting must not be felt. The best of several runs counts, so that a busy machine does not decide."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from conftest import COMMAND

RUNS = 25
pytestmark = pytest.mark.skipif(
    os.environ.get("ZEROPILOT_WHEEL_PROFILE", "release") != "release",
    reason="an unoptimised build is slower",
)

IMPORT = """
import time
start = time.perf_counter()
import zeropilot
{use}
print((time.perf_counter() - start) * 1000)
"""


def _milliseconds_to_import(use: str) -> float:
    program = IMPORT.format(use=use)
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(RUNS)
    ]
    return min(float(run.stdout) for run in runs)


def test_import_takes_less_than_30_ms() -> None:
    assert _milliseconds_to_import("") < 30


def test_import_with_everything_takes_less_than_100_ms() -> None:
    assert _milliseconds_to_import("zeropilot.memory; zeropilot.ZeroConfig; zeropilot.__version__") < 100


def test_help_takes_less_than_10_ms() -> None:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([COMMAND, "--help"], stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - start) * 1000)
    assert min(times) < 10
