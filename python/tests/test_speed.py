"""Starting must not be felt.

What is loaded is tested everywhere. How long it takes depends on the machine: on a quiet one, ZEROPILOT_SPEED=1 holds it
to its limits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from conftest import COMMAND

RUNS = 25
timed = pytest.mark.skipif(
    os.environ.get("ZEROPILOT_SPEED") != "1",
    reason="a busy machine is slower: ZEROPILOT_SPEED=1 measures on a quiet one",
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


def test_import_loads_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import zeropilot; print(*(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["zeropilot"]


@timed
def test_import_takes_less_than_30_ms() -> None:
    assert _milliseconds_to_import("") < 30


@timed
def test_import_with_everything_takes_less_than_100_ms() -> None:
    assert _milliseconds_to_import("zeropilot.memory; zeropilot.ZeroConfig; zeropilot.__version__") < 100


@timed
def test_help_takes_less_than_10_ms() -> None:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([COMMAND, "--help"], stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - start) * 1000)
    assert min(times) < 10
