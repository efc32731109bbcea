"""Both sides of the speed comparison; see check_speed.sh."""

# The goals are 500 and 20. The floors are what a loaded two-core machine must still reach: below them
# something has become slower, not the machine busier. With ZEROPILOT_SPEED=1 that fails.

import os
import pathlib
import statistics
import subprocess
import sys
import time

WORLD_SIZE = "8"
GOALS = (500, 20)
FLOORS = (80, 4)
RUNS = 15
ORACLE = pathlib.Path(__file__).resolve().parent.parent / "oracle"

FRESH = """
import sys
sys.path.insert(0, sys.argv[1])
import engine
for path in sys.argv[3:]:
    try:
        engine.load(path, int(sys.argv[2]))
    except Exception:
        pass
"""


def seconds(action, runs):
    """The median time of `action`."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    binary, corpus = sys.argv[1:]
    files = sorted(str(path) for path in pathlib.Path(corpus).glob("*.json"))
    check = [binary, "check", "--front-end", "deepspeed", "--world-size", WORLD_SIZE, "--deepspeed-version", "0.19.8",
             "--output-format", "concise"]

    def ours(paths):
        subprocess.run([*check, *paths], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def fresh_python():
        command = [sys.executable, "-c", FRESH, str(ORACLE), WORLD_SIZE, *files]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    ours(files)
    whole = seconds(lambda: ours(files), RUNS)
    start_up = seconds(lambda: ours(files[:1]), RUNS)
    python = seconds(fresh_python, 3)

    sys.path.insert(0, str(ORACLE))
    import engine

    def in_process():
        for path in files:
            try:
                engine.load(path, int(WORLD_SIZE))
            except Exception:
                pass

    in_process()
    warm = seconds(in_process, 5)

    # What a file costs us beyond starting the process.
    per_file = max(whole - start_up, 1e-9) / (len(files) - 1)
    engine_per_file = warm / len(files)
    print(f"{len(files)} files, median of {RUNS} runs")
    fresh, in_warm = python / whole, engine_per_file / per_file
    print(f"fresh process:  zeropilot {whole * 1e3:8.2f} ms   python + engine {python * 1e3:8.0f} ms   "
          f"ratio {fresh:6.0f}  (goal {GOALS[0]}, floor {FLOORS[0]})")
    print(f"per file, warm: zeropilot {per_file * 1e6:8.1f} us   engine's loader {engine_per_file * 1e6:8.0f} us   "
          f"ratio {in_warm:6.0f}  (goal {GOALS[1]}, floor {FLOORS[1]})")
    if fresh < FLOORS[0] or in_warm < FLOORS[1]:
        print("slower than the floor", file=sys.stderr)
        sys.exit(os.environ.get("ZEROPILOT_SPEED") == "1")


if __name__ == "__main__":
    main()
