"""Measure the speed of this machine and the memory of its processes, with your PyTorch and DeepSpeed.

`zeropilot calibrate` runs this program. It starts one process per rank, on this machine only, and downloads nothing. It reads
a question as one line of JSON on standard input, and prints the answer as one line on standard output:

    {"ranks": 2, "cases": [{"model": {<config.json>}, "config": {<DeepSpeed config>}, "seq_len": 128,
                            "grad_checkpointing": false}, ...]}
    {"device": {...}, "software": {...}, "memory": {...}, "kernels": {...}, "collectives": {...}, "copies": {...},
     "cases": [{"forward": s, "backward": s, "step": s, "total": s, "resident_bytes": n} or {"error": "..."}, ...]}

Every number comes from the slowest rank. All ranks measure at the same time, as in training. Each time is the median of
several measurements. Models are built from their config with random weights.
"""

import glob
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import socket
import statistics
import sys
import time

# Otherwise PyTorch counts devices by initializing CUDA, and a process that did cannot be forked.
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The compiler that DeepSpeed calls is driven by a ninja beside the interpreter.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")

TIMEOUT = 600
# Steps that warm up and steps that count, of which long ones need fewer; a kernel or call is repeated.
WARMUP, STEPS, SECONDS, REPEATS = 2, 9, 2.0, 7
COLLECTIVE_BYTES = [4096 << 2 * step for step in range(8)]
MIB = 1 << 20


def resident_bytes():
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


class Probe:
    """One rank."""

    def __init__(self):
        import deepspeed
        import torch

        self.torch, self.deepspeed = torch, deepspeed
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.is_cuda = torch.cuda.is_available() and os.environ.get("DS_ACCELERATOR") != "cpu"
        self.device = torch.device("cuda", self.rank) if self.is_cuda else torch.device("cpu")
        self.memory = {"process_bytes": resident_bytes()}
        if self.is_cuda:
            torch.cuda.set_device(self.device)
            torch.zeros(1, device=self.device)
            self.memory["context_bytes"] = self.outside_allocator()
        deepspeed.init_distributed("nccl" if self.is_cuda else "gloo", auto_mpi_discovery=False, verbose=False)
        self.wait()
        if self.is_cuda:
            self.memory["communicator_bytes"] = self.outside_allocator() - self.memory["context_bytes"]

    def outside_allocator(self):
        """Bytes of the device that are neither free nor PyTorch's. Other processes on it would count."""
        free, total = self.torch.cuda.mem_get_info(self.device)
        return total - free - self.torch.cuda.memory_reserved(self.device)

    def grows(self, name, work):
        """Kernels are loaded when they are first used."""
        before = self.outside_allocator() if self.is_cuda else 0
        answer = work()
        if self.is_cuda:
            self.torch.cuda.empty_cache()
            self.memory[name] += max(0, self.outside_allocator() - before)
        return answer

    def synchronize(self):
        if self.is_cuda:
            self.torch.cuda.synchronize(self.device)

    def wait(self):
        self.torch.distributed.all_reduce(self.torch.zeros(1, device=self.device))
        self.synchronize()

    def seconds(self, work, repeats=REPEATS):
        """The median; a short work is repeated inside, so that the clock does not matter."""
        work()
        self.wait()
        begin = time.perf_counter()
        work()
        self.synchronize()
        inner = max(1, min(200, int(0.02 / max(time.perf_counter() - begin, 1e-7))))
        inner = self.slowest(inner, least=True)
        times = []
        for _ in range(repeats):
            self.wait()
            begin = time.perf_counter()
            for _ in range(int(inner)):
                work()
            self.synchronize()
            times.append((time.perf_counter() - begin) / int(inner))
        return statistics.median(times)

    def slowest(self, value, least=False):
        tensor = self.torch.tensor([float(value)], dtype=self.torch.float64, device=self.device)
        how = self.torch.distributed.ReduceOp
        self.torch.distributed.all_reduce(tensor, op=how.MIN if least else how.MAX)
        return tensor.item()

    def collectives(self):
        import torch.distributed as dist

        if self.world == 1:
            return {}
        zeros = lambda count: self.torch.zeros(count, dtype=self.torch.bfloat16, device=self.device)
        answer = {"all_gather": [], "reduce_scatter": [], "all_reduce": [], "reduce": []}
        for size in COLLECTIVE_BYTES:
            whole, part = zeros(size // 2), zeros(size // 2 // self.world)
            whole = whole[: part.numel() * self.world]
            calls = {
                "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
                "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
                "all_reduce": lambda: dist.all_reduce(whole),
                "reduce": lambda: dist.reduce(whole, 0),
            }
            for name, call in calls.items():
                answer[name].append([size, self.slowest(self.seconds(call))])
        return answer

    def kernels(self):
        """Rates of single kernels on a GPU. Where kernels run on the host itself the cases say it better."""
        if not self.is_cuda:
            return {}
        torch, answer = self.torch, {}
        formats = {"fp32": torch.float32, "fp16": torch.float16}
        if torch.cuda.is_bf16_supported(including_emulation=False):
            formats["bf16"] = torch.bfloat16
        side, length = 8192, 4096
        scalar = torch.zeros(1, device=self.device)
        for name, dtype in formats.items():
            matrix = torch.randn(side, side, device=self.device).to(dtype)
            heads = [torch.randn(1, 16, length, 128, device=self.device).to(dtype) for _ in range(3)]
            attend = lambda: torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
            flat = torch.zeros(256 * MIB // dtype.itemsize, dtype=dtype, device=self.device)
            other = torch.empty_like(flat)
            answer[name] = {
                "products": 1 / self.slowest(self.seconds(lambda: matrix @ matrix) / (2 * side**3)),
                # A causal mask leaves half of 4·b·h·s²·d operations.
                "attention": 1 / self.slowest(self.seconds(attend) / (2 * 16 * length**2 * 128)),
                "memory": 1 / self.slowest(self.seconds(lambda: other.copy_(flat)) / (512 * MIB)),
                "kernel": self.slowest(self.seconds(lambda: scalar.add_(1))),
            }
            del matrix, heads, flat, other
        torch.cuda.empty_cache()
        return answer

    def copies(self):
        """Bytes per second between host and device, all ranks at once; nothing where they are one."""
        if not self.is_cuda:
            return None
        torch, size = self.torch, 256 * MIB
        there = torch.empty(size, dtype=torch.uint8, device=self.device)
        pinned, pageable = torch.empty(size, dtype=torch.uint8).pin_memory(), torch.zeros(size, dtype=torch.uint8)
        rate = lambda work: 1 / self.slowest(self.seconds(work, repeats=3) / size)
        return {
            "to_device": rate(lambda: there.copy_(pinned, non_blocking=True)),
            "to_host": rate(lambda: pinned.copy_(there, non_blocking=True)),
            "pageable": rate(lambda: there.copy_(pageable)),
        }

    def case(self, case):
        """Steps of the real engine. A phase is added up over the micro steps of a step."""
        import transformers

        torch = self.torch
        torch.manual_seed(0)
        arguments = {key: value for key, value in case["model"].items() if key != "model_type"}
        config = transformers.AutoConfig.for_model(case["model"]["model_type"], **arguments)
        config.use_cache = False
        with self.device:
            model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").train()
        if case.get("grad_checkpointing"):
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        engine, *_ = self.deepspeed.initialize(
            model=model, model_parameters=model.parameters(), config=case["config"]
        )
        batch = case["config"]["train_micro_batch_size_per_gpu"]
        ids = torch.randint(0, config.vocab_size, (batch, case["seq_len"])).to(self.device)
        steps, wanted = [], WARMUP + STEPS
        while len(steps) < wanted:
            phases = {"forward": 0.0, "backward": 0.0, "step": 0.0}
            self.wait()
            first = time.perf_counter()
            for _ in range(engine.gradient_accumulation_steps()):
                marks = [time.perf_counter()]
                loss = engine(input_ids=ids, labels=ids).loss
                marks.append(time.perf_counter())
                engine.backward(loss)
                marks.append(time.perf_counter())
                engine.step()
                marks.append(time.perf_counter())
                for name, one, other in zip(phases, marks, marks[1:]):
                    phases[name] += other - one
            self.synchronize()
            steps.append({**phases, "total": time.perf_counter() - first})
            if len(steps) == WARMUP:
                enough = int(SECONDS / self.slowest(steps[-1]["total"]))
                wanted = WARMUP + max(3, min(STEPS, enough))
        answer = {name: statistics.median(step[name] for step in steps[WARMUP:]) for name in steps[0]}
        # The slowest rank's forward may end early and its backward late: a step is what all of them take.
        answer = {name: self.slowest(seconds) for name, seconds in answer.items()}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {**answer, "resident_bytes": int(self.slowest(peak))}

    def software(self):
        names = {"torch": self.torch.__version__, "deepspeed": self.deepspeed.__version__}
        try:
            import transformers

            names["transformers"] = transformers.__version__
        except ImportError:
            pass
        return names

    def about(self):
        if self.is_cuda:
            properties = self.torch.cuda.get_device_properties(self.device)
            return {"kind": "cuda", "name": properties.name, "memory_bytes": properties.total_memory}
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return {"kind": "cpu", "name": "cpu", "memory_bytes": pages}


def rank_main(question, output):
    """All of it, or one case: a process that ran a case is no measure of the memory of the next."""
    try:
        probe = Probe()
        if "case" in question:
            answer = probe.case(question["case"])
        else:
            answer = {
                "device": probe.about(),
                "software": probe.software(),
                "kernels": probe.grows("context_bytes", probe.kernels),
                "collectives": probe.grows("communicator_bytes", probe.collectives),
                "copies": probe.copies(),
                "memory": {name: int(probe.slowest(value)) for name, value in probe.memory.items()},
            }
    except BaseException as problem:  # the engine raises whatever it likes, SystemExit too
        answer = {"error": f"{type(problem).__name__}: {problem}"[:500]}
    output.send(answer)
    output.close()
    # No destructors: peers may be gone already.
    os._exit(0)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def run(ranks, question):
    """The answer of the first rank, or the first error."""
    # Forks find the libraries imported. Nothing here has touched a GPU.
    context = multiprocessing.get_context("fork")
    port = free_port()
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(ranks))
    processes, outputs = [], []
    for rank in range(ranks):
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), LOCAL_SIZE=str(ranks))
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=rank_main, args=(question, writer), daemon=True)
        process.start()
        writer.close()
        processes.append(process)
        outputs.append(reader)
    answers = []
    try:
        while len(answers) < ranks:
            ready = multiprocessing.connection.wait(outputs, timeout=TIMEOUT)
            if not ready:
                return {"error": f"no answer from the ranks for {TIMEOUT} seconds"}
            for reader in ready:
                outputs.remove(reader)
                try:
                    answers.append(reader.recv())
                except EOFError:
                    return {"error": "a rank ended without an answer"}
                if "error" in answers[-1]:
                    return answers[-1]
    finally:
        for process in processes:
            process.kill()
            process.join()
        # DeepSpeed's CPU communicator leaves its buffers, 66 MiB a rank.
        for left in glob.glob(f"/dev/shm/deepspeed_allreduce_buffer_*_127.0.0.1_{port}_*"):
            os.unlink(left)
    return answers[0]


def load_operators():
    """Where no GPU is involved, what DeepSpeed builds and loads on first use: once for all ranks."""
    from deepspeed.accelerator import get_accelerator
    from deepspeed.ops import op_builder

    if get_accelerator().device_name() != "cpu":
        return
    for name in ("CPUAdam", "FusedAdam", "ShareMemComm"):
        try:
            getattr(op_builder, f"{name}Builder")().load(verbose=False)
        except Exception as problem:  # without a compiler: PyTorch's own optimizer runs instead, or a case says so
            print(f"{name}: {problem}", file=sys.stderr)


def main():
    # The engine prints to standard output; only the answer may.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    question = json.loads(sys.stdin.read())
    import deepspeed  # noqa: F401
    import transformers

    transformers.logging.set_verbosity_error()
    load_operators()
    answer = run(question["ranks"], {})
    cases = question["cases"] if "error" not in answer else []
    answer["cases"] = []
    for number, case in enumerate(cases):
        print(f"probe {number + 1} of {len(cases)}", file=sys.stderr, flush=True)
        answer["cases"].append(run(question["ranks"], {"case": case}))
    print(json.dumps(answer), file=output, flush=True)


if __name__ == "__main__":
    main()
