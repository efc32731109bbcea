"""How many instructions answers take, compared with the committed counts.

    python3 benches/instructions.py target/release/zeropilot            # fails if a count has grown by more than 10%
    python3 benches/instructions.py target/release/zeropilot --write    # writes benches/instructions.json

Valgrind counts what a release build of the command executes, so a busy machine changes nothing. Another compiler or
allocator does: then write the counts anew.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

COUNTS = Path(__file__).with_suffix(".json")
MOST_GROWTH = 1.10
# Costs must not depend on the number of ranks.
MOST_BY_SCALE = 1.5

CONFIG = """{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": "auto",
 "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
 "zero_optimization": {"stage": 3, "overlap_com": true, "stage3_gather_16bit_weights_on_model_save": true}}
"""

LARGE = ["--model", "llama-3.1-405b", "--seq-len", "8192", "--stage", "3", "--grad-checkpointing"]
QUESTIONS = {
    "version": ["--version"],
    "check one config": ["check", "ds.json", "--world-size", "8"],
    "memory, 8B": ["memory", "--model", "qwen3-8b", "--gpus", "8xA100-80G"],
    "memory, Whisper": ["memory", "--model", "whisper-large-v3", "--gpus", "8xA100-80G"],
    "memory, 405B on 8 GPUs": ["memory", *LARGE, "--gpus", "8xH100"],
    "memory, 405B on 131,072 GPUs": ["memory", *LARGE, "--gpus", "16384x8xH100"],
    "simulate, 405B on 8 GPUs": ["simulate", *LARGE, "--gpus", "8xH100"],
    "simulate, 405B on 131,072 GPUs": ["simulate", *LARGE, "--gpus", "16384x8xH100"],
    "plan, 8B": ["plan", "--model", "qwen3-8b", "--gpus", "5x44GB"],
    "plan, 1B with LoRA": ["plan", "--model", "llama-3.2-1b", "--gpus", "1x24GB", "--method", "lora"],
    "plan, 1B by cost": ["plan", "--model", "llama-3.2-1b", "--gpus", "2xA100-80G", "--objective", "cost"],
}
SAME_AT_ANY_SCALE = [
    ("memory, 405B on 8 GPUs", "memory, 405B on 131,072 GPUs"),
    ("simulate, 405B on 8 GPUs", "simulate, 405B on 131,072 GPUs"),
]


def keystrokes(count: int) -> bytes:
    """A session of an editor that changes one digit so many times."""
    uri = "file:///ds.json"
    digit = CONFIG.index("64")
    range_ = {"start": {"line": 0, "character": digit}, "end": {"line": 0, "character": digit + 1}}
    messages = [
        {"id": 1, "method": "initialize", "params": {"capabilities": {}, "initializationOptions": {"worldSize": 8}}},
        {"method": "initialized", "params": {}},
        {
            "method": "textDocument/didOpen",
            "params": {"textDocument": {"uri": uri, "languageId": "json", "version": 0, "text": CONFIG}},
        },
    ]
    for version in range(1, count + 1):
        change = {"range": range_, "text": "56"[version % 2]}
        document = {"uri": uri, "version": version}
        messages.append({"method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": [change]}})
        # A server may answer several changes at once, but not across a question.
        about = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 3}}
        messages.append({"id": version + 1, "method": "textDocument/hover", "params": about})
    messages += [{"id": count + 2, "method": "shutdown"}, {"method": "exit"}]
    texts = (json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages)
    return b"".join(b"Content-Length: %d\r\n\r\n" % len(text) + text for text in texts)


def counted(command: list[str], directory: str, given: bytes | None = None) -> int:
    # Nothing of this machine: no project file above, no cache, no settings.
    environment = {"PATH": os.environ["PATH"], "HOME": directory, "XDG_CACHE_HOME": directory, "LANG": "C.UTF-8"}
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--error-exitcode=99"]
    run = subprocess.run(
        [*valgrind, *command], cwd=directory, env=environment, input=given, capture_output=True, check=False
    )
    found = re.search(rb"Collected : (\d+)", run.stderr)
    if not found or run.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit code {run.returncode}\n{run.stderr.decode()[-2000:]}")
    return int(found[1])


def measure(zeropilot: str) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "ds.json").write_text(CONFIG)
        counts = {name: counted([zeropilot, *question], directory) for name, question in QUESTIONS.items()}
        few, many = (counted([zeropilot, "lsp"], directory, keystrokes(count)) for count in (10, 60))
        counts["a keystroke in an editor"] = (many - few) // 50
    return counts


def main() -> int:
    counts = measure(str(Path(sys.argv[1]).resolve()))
    if "--write" in sys.argv:
        COUNTS.write_text(json.dumps(counts, indent=2, ensure_ascii=False) + "\n")
    before = json.loads(COUNTS.read_text())
    faults = [f"{name}: no count is committed" for name in counts.keys() - before.keys()]
    for name, count in counts.items():
        growth = count / before.get(name, count)
        print(f"{name}: {count / 1e6:.1f} million instructions ({growth - 1:+.1%})")
        if growth > MOST_GROWTH:
            faults.append(f"{name}: {growth - 1:+.1%} over the committed count; the limit is {MOST_GROWTH - 1:+.0%}")
    for few, many in SAME_AT_ANY_SCALE:
        if counts[many] > counts[few] * MOST_BY_SCALE:
            faults.append(f"{many}: {counts[many] / counts[few]:.2f} times as many as {few}")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
