"""What supervision costs: step time under `zeropilot run` against the bare launcher, and a gigabyte of log.

    python3 benches/run_cost.py target/release/zeropilot ~/.cache/zeropilot/engine/bin [ROUNDS]

Both ways take turns, so that whatever else the machine does meets both. Ends with 1 if a limit is broken.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS, STEPS, WARM_UP = int((sys.argv[3:] or [4])[0]), 160, 30
MOST_RATIO, MOST_RESIDENT, LOG_BYTES, MOST_LOG_SECONDS = 1.02, 30_000_000, 1_000_000_000, 10.0
EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "engine_loop.py"
CONFIG = """{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
 "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": {"stage": 2}}"""


def resident(pid: int) -> int:
    """The most that was ever resident; 0 once the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) * 1024 if lines else 0


def steps(command: list[str], environment: dict[str, str], directory: str) -> tuple[list[float], int]:
    """The seconds of each step after the first ones, and the most resident bytes of the command itself."""
    process = subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    times, most = [], 0
    for line in process.stdout:
        if line.startswith("step "):
            times.append(time.perf_counter())
            if len(times) % 20 == 0:
                most = max(most, resident(process.pid))
    assert process.wait() == 0 and len(times) == STEPS, f"{command}: {process.returncode}, {len(times)} steps"
    return [after - before for before, after in zip(times[WARM_UP:], times[WARM_UP + 1 :])], most


def step_cost(zeropilot: str, binaries: str, directory: str) -> tuple[float, int]:
    environment = dict(os.environ, PATH=f"{binaries}:{os.environ['PATH']}", DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1")
    Path(directory, "ds.json").write_text(CONFIG)
    bare, supervised, most = [], [], 0
    for number in range(2 * ROUNDS):
        port = str(29800 + number)
        launch = ["torchrun", "--nproc-per-node", "2", "--master-port", port, str(EXAMPLE)]
        launch += ["--deepspeed", "ds.json", "--steps", str(STEPS), "--layers", "4", "--width", "256"]
        if number % 2 == 0:
            bare += steps(launch, environment, directory)[0]
        else:
            record = ["--record", f"record-{number}"]
            taken, reached = steps([zeropilot, "run", *record, "--", *launch], environment, directory)
            supervised += taken
            most = max(most, reached)
    medians = statistics.median(bare), statistics.median(supervised)
    print(f"median step: bare {medians[0] * 1e3:.2f} ms, supervised {medians[1] * 1e3:.2f} ms, {len(bare)} steps each")
    return medians[1] / medians[0], most


def log_cost(zeropilot: str, directory: str) -> tuple[float, int]:
    """Seconds of processor time that a log costs beyond `cat`, and the most resident bytes."""
    log = Path(directory, "log")
    ordinary = "".join(f"INFO worker {n}: tokenized shard {n} of 4096, 131072 rows in the cache\n" for n in range(200))
    block = (ordinary + "step 17 loss 2.3456 lr 1.0e-05\n") * 64
    with log.open("w") as file:
        for _ in range(LOG_BYTES // len(block) + 1):
            file.write(block)

    def spent(command: list[str]) -> tuple[float, int]:
        before, most = os.times(), 0
        process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            most = max(most, resident(process.pid))
            time.sleep(0.02)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system, most

    bare, _ = spent(["sh", "-c", "cat log | cat"])
    supervised, most = spent([zeropilot, "run", "--record", "record-log", "--", "cat", "log"])
    print(f"log of {log.stat().st_size / 1e9:.2f} GB: {supervised:.2f} s of processor time, through a pipe alone {bare:.2f} s")
    return supervised, most


def main() -> int:
    zeropilot, binaries = (str(Path(path).resolve()) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as directory:
        seconds, most_log = log_cost(zeropilot, directory)
        ratio, most = step_cost(zeropilot, binaries, directory)
    print(f"step time {ratio:.4f} of the bare launcher's; resident {most / 1e6:.1f} MB, {most_log / 1e6:.1f} MB with the log")
    is_cheap = ratio <= MOST_RATIO and max(most, most_log) <= MOST_RESIDENT and seconds <= MOST_LOG_SECONDS
    return 0 if is_cheap else 1


if __name__ == "__main__":
    sys.exit(main())
