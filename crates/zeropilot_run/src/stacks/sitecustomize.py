"""Lets a rank write its stack, and the collectives it called, when zeropilot asks for them.

`zeropilot run` puts this file's directory first in PYTHONPATH, so that Python imports it at its start. In processes that have
a rank it registers a handler of Python's own `faulthandler` for SIGURG, a signal that is ignored wherever nobody handles it,
starts a thread that sleeps until it is asked for what PyTorch's flight recorder holds, and takes itself out of the environment
again. Then the sitecustomize that would have been imported is. `--no-stack-handler` leaves it away.
"""

import os
import sys


def register():
    directory = os.environ.get("ZEROPILOT_STACKS")
    if not directory or "RANK" not in os.environ or "LOCAL_RANK" not in os.environ:
        return
    import _thread
    import faulthandler
    import signal

    own = os.path.join(directory, str(os.getpid()))
    os.mkfifo(own + ".asked")
    _thread.start_new_thread(answer, (own + ".asked", own + ".json"))
    if signal.getsignal(signal.SIGURG) != signal.SIG_DFL:
        return
    # Kept open as long as the process lives.
    register.file = open(own, "a")
    faulthandler.register(signal.SIGURG, file=register.file, all_threads=True, chain=False)


def answer(request, path):
    """Writes what the flight recorders hold, as a list, whenever something is written to `request`."""
    try:
        while True:
            with open(request) as asked:
                asked.read()
            with open(path + ".part", "w") as part:
                part.write("[" + ",".join(recorded()) + "]")
            os.replace(path + ".part", path)
    except OSError:  # The record is gone.
        pass


def recorded():
    # All backends but NCCL, whose events are of another kind, share one recorder.
    for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json"):
        dump = getattr(sys.modules.get("torch._C._distributed_c10d"), name, None)
        try:
            text = dump()
        except Exception:  # Not in this PyTorch, or it has nothing to say.
            continue
        yield text.decode() if isinstance(text, bytes) else text


def restore_signals():
    """Under Slurm, launchers are started with these ignored; programs look whether they are as usual before they handle them."""
    if "RANK" not in os.environ or "SLURM_JOB_ID" not in os.environ:
        return
    import signal

    for number in (signal.SIGUSR1, signal.SIGUSR2):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def step_aside():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    if "RANK" in os.environ:
        rest = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        rest = os.pathsep.join(path for path in rest if os.path.abspath(path) != here)
        os.environ.pop("PYTHONPATH", None)
        os.environ.pop("ZEROPILOT_STACKS", None)
        if rest:
            os.environ["PYTHONPATH"] = rest


def import_theirs():
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        sys.modules["sitecustomize"] = own
        if getattr(error, "name", None) != "sitecustomize":
            raise


try:
    restore_signals()
    register()
except Exception:  # A run must not fail for what is only needed when it hangs.
    pass
step_aside()
import_theirs()
