"""A stand-in for a training program: it prints steps, writes parts of checkpoints as the engine names them, and fails on demand.

No engine and no torch, so that it starts at once. It has the ranks of a launcher, which do not wait for each other unless told to.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

# What PyTorch's archives end with.
END = b"PK\x05\x06" + bytes(18)
RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))


class OutOfMemoryError(RuntimeError):
    """PyTorch's, by name."""


OutOfMemoryError.__module__ = "torch"


def save(directory: str, tag: str, stage: int) -> None:
    parts = pathlib.Path(directory) / tag
    parts.mkdir(parents=True, exist_ok=True)
    content = f"stage {stage} of {os.getpid()}".encode() + END
    (parts / f"bf16_zero_pp_rank_{RANK}_mp_rank_00_optim_states.pt").write_bytes(content)
    if stage == 3:
        (parts / f"zero_pp_rank_{RANK}_mp_rank_00_model_states.pt").write_bytes(content)
    elif RANK == 0:
        (parts / "mp_rank_00_model_states.pt").write_bytes(content)
    wait_for(lambda: len(list(parts.glob("*_optim_states.pt"))) == WORLD)
    if RANK == 0:
        (pathlib.Path(directory) / "latest").write_text(tag)


def wait_for(is_so) -> None:
    end = time.monotonic() + 120
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)


def fail(fault: str) -> None:
    print(f"rank {RANK}: {fault}", flush=True)
    if fault == "oom":
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    if fault == "key":
        raise KeyError("labels_typo")
    if fault in ("SIGKILL", "SIGTERM", "SIGSEGV"):
        os.kill(os.getpid(), getattr(signal, fault))
        time.sleep(60)
    if fault == "watchdog":
        print(f"[rank{RANK}]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", file=sys.stderr, flush=True)
        os.abort()
    if fault == "sleep":
        time.sleep(3600)
    if fault == "unreadable":
        raise RuntimeError("PytorchStreamReader failed reading zip archive: invalid header")


def heartbeat() -> None:
    while True:
        print("still here", flush=True)
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--deepspeed")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds of a step")
    parser.add_argument("--compute", type=float, default=0.0, help="seconds of a step that are spent computing")
    parser.add_argument("--save")
    parser.add_argument("--save-every", type=int, default=5)
    parser.add_argument("--tag", default="global_step{}")
    parser.add_argument("--resume")
    parser.add_argument("--output_dir")
    parser.add_argument("--fault", default="")
    parser.add_argument("--fault-rank", type=int, default=0)
    parser.add_argument("--fault-step", type=int, default=0)
    parser.add_argument("--once", help="a file that says that the fault has been")
    parser.add_argument("--warn-step", type=int, default=0, help="a step at which --warning is printed")
    parser.add_argument("--warning", default="")
    parser.add_argument("--unreadable", default="", help="a tag that cannot be resumed from")
    parser.add_argument("--nan-from", type=int, help="a loss that is no number from this step on")
    parser.add_argument("--inf-norm-from", type=int, help="a norm of gradients that is infinite from this step on")
    parser.add_argument("--stop-after", type=int, help="a step after which it ends by itself")
    parser.add_argument("--helper", action="store_true", help="start a process that outlives the rank")
    parser.add_argument("--heartbeat", action="store_true", help="a thread that always prints")
    parser.add_argument("--save-on-usr1", action="store_true")
    parser.add_argument("--save-on-term", type=float, help="seconds that saving takes, after which the rank ends")
    parser.add_argument("--local_rank", type=int, default=-1)
    args = parser.parse_args()
    if args.helper:
        subprocess.Popen(["setsid", "sh", "-c", "sleep 600 & exec true"], start_new_session=True).wait()
    stage = json.loads(pathlib.Path(args.deepspeed).read_text())["zero_optimization"]["stage"] if args.deepspeed else 2
    step = 0
    if args.resume:
        tag = (pathlib.Path(args.resume) / "latest").read_text().strip()
        if tag == args.unreadable:
            fail("unreadable")
        step = int("".join(filter(str.isdigit, tag)))
    if args.save_on_usr1:
        signal.signal(signal.SIGUSR1, lambda *_: save(args.save, args.tag.format(0), stage))
    asked = []
    if args.save_on_term is not None:
        signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    if args.heartbeat and RANK == 0:
        threading.Thread(target=heartbeat, daemon=True).start()
    while step < args.steps:
        if asked:
            time.sleep(args.save_on_term)
            save(args.save, args.tag.format(1000), stage)
            return
        step += 1
        time.sleep(args.pause)
        computed = time.process_time() + args.compute
        while time.process_time() < computed:
            pass
        if args.fault and step == args.fault_step and args.fault_rank == RANK and not (args.once and os.path.exists(args.once)):
            if args.once:
                pathlib.Path(args.once).touch()
            fail(args.fault)
        if step == args.warn_step and RANK == 0:
            print(args.warning.replace("_", " "), file=sys.stderr, flush=True)
        if RANK == 0:
            loss = "tensor(nan)" if args.nan_from and step >= args.nan_from else f"{4 / step:.4f}"
            norm = " grad_norm inf" if args.inf_norm_from and step >= args.inf_norm_from else ""
            print(f"step {step}/{args.steps} loss {loss}{norm}", flush=True)
        if args.save and step % args.save_every == 0:
            save(args.save, args.tag.format(step), stage)
        if step == args.stop_after:
            return


if __name__ == "__main__":
    main()
