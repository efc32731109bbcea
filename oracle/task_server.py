"""Runs steps of TRL's trainers on ranks and says what was alive when.

Protocol: one JSON object per line. The greeting names the versions.

    ask   a case as `measure/tasks.py` draws it
    answer {"id": 1, "roles": ["ref", "policy"], "ranks": [{"rank", "engines", "phases"}, ...]}
           or {"id": 1, "error": "AssertionError", "message": "...", "rank", "place"}
"""

import json_lines

OUTPUT = json_lines.claim_output()

import engine  # noqa: E402
import operators  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import trl  # noqa: E402
from measure import ranks, tasks  # noqa: E402

transformers.logging.set_verbosity(transformers.logging.CRITICAL + 10)
torch.set_num_threads(1)


def main():
    operators.lend()
    greeting = {
        "deepspeed": engine.VERSION,
        "transformers": transformers.__version__,
        "trl": trl.__version__,
        "operators": ranks.load_operators(),
    }
    json_lines.serve(tasks.measured, greeting, OUTPUT)


if __name__ == "__main__":
    main()
