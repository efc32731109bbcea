"""What becomes of a whole job: files, and a command that is run beside them.

Greeting: {"deepspeed": "0.19.8"}
Request:  {"id": 1, "command": "torchrun --standalone --nproc_per_node 2 t.py", "files": {"t.py": "..."}, "seconds": 60}
          With "model": true there is a small Llama in the directory `m`.
Answer:   {"id": 1, "code": 0, "output": "..."}, the end of what was printed; the code is null if it took too long

Every request has a directory and a process group of its own. Launchers are those installed beside the interpreter.
"""

import os
import signal
import subprocess
import sys
import tempfile

import engine
import json_lines

# Stacks of several ranks may follow the line that matters.
PRINTED = 60_000

# Without a buffer, Python writes each argument of `print` by itself, and the lines of several ranks mix.
WHOLE_LINES = """import sys
for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(line_buffering=True, write_through=False)
"""


def write_model(directory):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                         num_key_value_heads=2, max_position_embeddings=64)
    LlamaForCausalLM(config).save_pretrained(directory)


def surroundings(modules):
    here = os.path.dirname(sys.executable)
    taken = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return {**taken, "PATH": here + os.pathsep + taken.get("PATH", ""), "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [modules, taken.get("PYTHONPATH")]))}


def answer(request):
    with tempfile.TemporaryDirectory(prefix="zeropilot-") as directory, \
            tempfile.TemporaryDirectory(prefix="zeropilot-") as modules:
        with open(os.path.join(modules, "sitecustomize.py"), "w") as file:
            file.write(WHOLE_LINES)
        for name, text in request["files"].items():
            path = os.path.join(directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        if request.get("model"):
            write_model(os.path.join(directory, "m"))
        run = subprocess.Popen(["bash", "-c", request["command"]], cwd=directory, env=surroundings(modules),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
        try:
            printed, _ = run.communicate(timeout=request.get("seconds", 120))
            return {"code": run.returncode, "output": printed[-PRINTED:]}
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            printed, _ = run.communicate()
            return {"code": None, "output": printed[-PRINTED:]}


def main():
    json_lines.serve(answer, {"deepspeed": engine.VERSION}, json_lines.claim_output())


if __name__ == "__main__":
    main()
