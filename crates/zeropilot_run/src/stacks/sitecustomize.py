"""Let a rank write its Python stack and the collectives that it called when zeropilot asks for them.

`zeropilot run` puts the directory of this file first in PYTHONPATH, so Python imports it at startup. In rank processes, it
registers a handler of Python's `faulthandler` for SIGURG, a signal that processes ignore by default. It also starts a thread
that sleeps until zeropilot asks for the records of PyTorch's flight recorder. Then it removes itself from the environment
and imports the original sitecustomize, if there is one. `--no-stack-handler` disables it.
"""

import os
import sys


def own_file():
    """Where this process writes; nothing if it is not a rank."""
    directory = os.environ.get("ZEROPILOT_STACKS")
    if directory and "RANK" in os.environ and "LOCAL_RANK" in os.environ:
        return os.path.join(directory, str(os.getpid()))
    return None


def write_stacks(path):
    import faulthandler
    import signal

    if signal.getsignal(signal.SIGURG) != signal.SIG_DFL:
        return
    # Stays open until the process ends.
    write_stacks.file = open(path, "a")
    faulthandler.register(signal.SIGURG, file=write_stacks.file, all_threads=True, chain=False)


def write_calls(path):
    import _thread

    os.mkfifo(path + ".asked")
    _thread.start_new_thread(answer, (path + ".asked", path + ".json"))


def answer(request, path):
    """Write the records of the flight recorders, as a JSON list, whenever zeropilot writes to `request`."""
    try:
        while True:
            with open(request) as asked:
                asked.read()
            with open(path + ".part", "w") as part:
                part.write("[" + ",".join(recorded()) + "]")
            os.replace(path + ".part", path)
    except OSError:  # The record was removed.
        pass


def recorded():
    # NCCL has a recorder of its own; all other backends share one.
    for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json"):
        dump = getattr(sys.modules.get("torch._C._distributed_c10d"), name, None)
        try:
            text = dump()
        except Exception:  # This PyTorch has no such recorder, or it failed.
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


def prepare():
    path = own_file()
    for step in (restore_signals, lambda: path and write_stacks(path), lambda: path and write_calls(path)):
        try:
            step()
        except Exception:  # A run must not fail because of a hook that only hangs need.
            pass


prepare()
step_aside()
import_theirs()
