"""Older engines beside the newest: `knowledge/measured/versions.json`.

    python -m measure.versions [version]     in `oracle/`: measures cases of the sweep on every older engine, or on one

A case that an engine cannot run is written with `refused` instead of what it measured.
"""

import json
import os
import pathlib
import sys

from measure.sweep import FILE as SWEEP
from measure.sweep import answers, asked, record

FILE = SWEEP.parent / "versions.json"
CASES = """
    base-llama-s0 base-llama-s1 base-llama-s2 base-llama-s3 acc32-s1 acc32-s2 acc32-s3 gas2-s1 gas2-s2 gas2-s3
    fp16-s0 fp16-s1 fp16-s2 fp16-s3 fp32-s0 fp32-s1 fp32-s2 fp32-s3 optimizer-pinned-s1 optimizer-pinned-s2
    optimizer-pinned-s3 optimizer-gas2-s2 overlap-s2 scattered-s2 scattered-s3 no-reduce-scatter-s1
    no-reduce-scatter-s3 rooted-s2 round-robin-s2 both-s3 sub-groups-s3 persist-0-s3 no-prefetch-s3 few-live-s3
    whole-s3 checkpointing-s3 tied-s3 two-groups-s0 two-groups-s2 two-groups-s3 frozen-s2 torch-adam-s1 hpz-s3
    acc32-gas3-s1 comm32-s2 built-16-s2 lora-0-llama-s2 lora-0-llama-s3
""".split()


def engines():
    """Directories of the older engines, which `oracle/setup.sh` installs beside the newest."""
    home = os.environ.get("ZEROPILOT_ORACLE_HOME", os.path.expanduser("~/.cache/zeropilot"))
    return sorted(pathlib.Path(home, "versions").iterdir(), key=lambda path: [int(part) for part in path.name.split(".")])


def written(version, case, answer):
    if "error" in answer:
        return {**case, "deepspeed": version, "refused": f"{answer['error']}: {answer['message'].splitlines()[0]}"}
    if isinstance(answer["traffic"], list):
        return {**case, "deepspeed": version, "refused": "ranks sent different calls"}
    return {**record(case, answer), "deepspeed": version}


def write(rows):
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    FILE.write_text(f"[\n{lines}\n]\n")
    print(f"{len(rows)} cases", file=sys.stderr)


def main():
    only = sys.argv[1:2]
    kept = json.loads(FILE.read_text()) if FILE.exists() else []
    by_name = {case["name"]: asked(case) for case in json.loads(SWEEP.read_text())}
    rows = []
    for engine in engines():
        if only and engine.name != only[0]:
            rows += [row for row in kept if row["deepspeed"] == engine.name]
        else:
            cases = [by_name[name] for name in CASES]
            rows += [written(engine.name, case, answer) for case, answer in answers(cases, engine)]
    write(rows)


if __name__ == "__main__":
    main()
