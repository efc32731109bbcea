"""What real ranks allocate and send: a long-lived process. The protocol is `json_lines`'s.

The ranks of a case are forked from this process, so a case costs about a second.

Greeting: {"deepspeed": "0.19.8", "torch": "...", "transformers": "...", "peft": "...", "operators": [...]}
Request:  {"id": 1, "hf_config": {<config.json>}, "config": {<DeepSpeed config>}, "world": 2, "seq": 16, ...}
          `measure/case.py` has all fields; "timeout" in seconds, 120 if absent.
Answer:   {"id": 1, "optimizer_class", "base_optimizer", "elements", "trainable_elements",
           "parameters": [[name, elements, 1 if trained], ...],
           "ranks": [{"rank", "init", "after_backward", "after_step" (bytes by category),
                      "misc" (what no category counts, after the backward pass), "misc_init", "misc_after_step",
                      "placed": {moment: {"pinned" or "host": {category: bytes}}} (the rest is on the device),
                      "peak": {"build", "init", "forward", "backward", "step"}, "skipped_steps" if any}, ...],
           "traffic": {"build", "init", "first_step", "second_step", "steady_step"}}   calls as in `measure/calls.py`
          or {"id": 1, "error": "AssertionError", "message": "...", "rank", "place"}; "Timeout" and "RankDied" when a
          rank hangs or is gone.
"""

import json_lines

OUTPUT = json_lines.claim_output()

import engine  # noqa: E402
import operators  # noqa: E402
import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from measure import ranks  # noqa: E402

transformers.logging.set_verbosity(transformers.logging.CRITICAL + 10)
torch.set_num_threads(1)


def main():
    operators.lend()
    greeting = {
        "deepspeed": engine.VERSION,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "peft": peft.__version__,
        "operators": ranks.load_operators(),
    }
    json_lines.serve(ranks.measured, greeting, OUTPUT)


if __name__ == "__main__":
    main()
