"""What supervision costs: step time under `zeropilot run` against the bare launcher, and a gigabyte of log.

    python3 benches/run_cost.py target/release/zeropilot ~/.cache/zeropilot/engine/bin [ROUNDS]

Both ways take turns, and each pair in the other order than the one before, so that whatever else the machine does
meets both. One run differs from the next by several percent even when nothing is supervised, so the ratio is the median
over the pairs, and its spread is printed; what the supervisor computes itself is printed too. Ends with 1 if a limit
is broken.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS, STEPS, WARM_UP = int((sys.argv[3:] or [8])[0]), 160, 30
MOST_RATIO, MOST_RESIDENT, LOG_BYTES, MOST_LOG_SECONDS, LOG_ROUNDS = 1.02, 30_000_000, 1_000_000_000, 4.0, 3
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


def computed(pid: int) -> float:
    """Seconds of processor time of a process itself; 0 once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def steps(command: list[str], environment: dict[str, str], directory: str) -> tuple[float, int, float]:
    """The median seconds of a step after the first ones; the most resident bytes of the command itself, and the share
    of one processor that it took."""
    process = subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    times, most, share, began = [], 0, 0.0, time.perf_counter()
    for line in process.stdout:
        if line.startswith("step "):
            times.append(time.perf_counter())
            if len(times) % 20 == 0:
                most = max(most, resident(process.pid))
                share = computed(process.pid) / (time.perf_counter() - began)
    assert process.wait() == 0 and len(times) == STEPS, f"{command}: {process.returncode}, {len(times)} steps"
    median = statistics.median(after - before for before, after in zip(times[WARM_UP:], times[WARM_UP + 1 :]))
    return median, most, share


def step_cost(zeropilot: str, binaries: str, directory: str) -> tuple[float, int]:
    environment = dict(os.environ, PATH=f"{binaries}:{os.environ['PATH']}", DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1")
    Path(directory, "ds.json").write_text(CONFIG)
    ratios, most, shares = [], 0, []
    for number in range(ROUNDS):
        pair = {}
        for is_supervised in (False, True) if number % 2 == 0 else (True, False):
            port = str(29800 + 2 * number + is_supervised)
            launch = ["torchrun", "--nproc-per-node", "2", "--master-port", port, str(EXAMPLE)]
            launch += ["--deepspeed", "ds.json", "--steps", str(STEPS), "--layers", "4", "--width", "256"]
            record = [zeropilot, "run", "--record", f"record-{number}", "--"] if is_supervised else []
            pair[is_supervised], reached, share = steps([*record, *launch], environment, directory)
            if is_supervised:
                most = max(most, reached)
                shares.append(share)
        ratios.append(pair[True] / pair[False])
        print(f"median step: bare {pair[False] * 1e3:.2f} ms, supervised {pair[True] * 1e3:.2f} ms", flush=True)
    print(f"ratio of {ROUNDS} pairs: {min(ratios):.4f} to {max(ratios):.4f}; {max(shares):.2%} of a processor at most")
    return statistics.median(ratios), most


def log_cost(zeropilot: str, directory: str) -> tuple[float, int]:
    """Seconds of processor time that a log costs with all that reads and writes it, the least of some rounds, since another
    program only adds to it; and the most resident bytes."""
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
    rounds = [spent([zeropilot, "run", "--record", f"record-log-{n}", "--", "cat", "log"]) for n in range(LOG_ROUNDS)]
    supervised, most = min(seconds for seconds, _ in rounds), max(reached for _, reached in rounds)
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
