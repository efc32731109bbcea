"""What ranks that share sequences allocate and send: a long-lived process. The protocol is `json_lines`'s.

Greeting: {"deepspeed": "0.19.8"}
Request:  {"id": 1, <a case as in `measure/long_context.py`>}
Answer:   {"id": 1, "calls": [[phase, kind, elements in, elements out, bytes per element, ranks, 1 if asynchronous], ...],
           "ranks": [{"rank", "batch", "measured": {"fwd", "bwd", "step", "rest"}}, ...]}
          or {"id": 1, "error": "AssertionError", "message": "...", "rank", "place"}
"""

import json_lines

OUTPUT = json_lines.claim_output()

import engine  # noqa: E402
import operators  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from measure import long_context, ranks  # noqa: E402

transformers.logging.set_verbosity(transformers.logging.CRITICAL + 10)
torch.set_num_threads(1)


def main():
    operators.lend()
    ranks.load_operators()
    json_lines.serve(long_context.measured, {"deepspeed": engine.VERSION}, OUTPUT)


if __name__ == "__main__":
    main()
