"""Save a checkpoint when a scheduler sends a signal: all ranks learn of the signal at the same step."""

import signal
from importlib import import_module
from types import FrameType
from typing import Any, Iterable, Optional


def _accelerator(torch: Any) -> Any:
    # PyTorch before 2.6 has no `torch.accelerator`.
    known = getattr(torch, "accelerator", None)
    return (known and known.current_accelerator()) or torch.device("cuda")


class Preemption:
    """Detect a signal from a scheduler, or from ``zeropilot run``, that asks this run to stop.

    Create it once, before the loop, and call ``is_announced`` after each optimizer step::

        preemption = zeropilot.Preemption()
        ...
        if preemption.is_announced():
            engine.save_checkpoint(directory)
            break

    With the HF Trainer, ``Trainer(..., callbacks=[preemption.callback()])`` does the same.
    """

    def __init__(self, signals: Iterable[int] = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)) -> None:
        #: Signal that this rank received, or ``None``.
        self.signal: Optional[int] = None
        #: Whether ``is_announced`` has returned true.
        self.announced = False
        for number in signals:
            signal.signal(number, self._note)

    def _note(self, number: int, _frame: Optional[FrameType]) -> None:
        self.signal = self.signal or number

    def is_announced(self) -> bool:
        """Return whether any rank received a signal to stop.

        All ranks get the same answer, so they save at the same step. This is a collective call: every rank must call it
        equally often.
        """
        announced = self.signal is not None
        torch: Any = import_module("torch")
        dist: Any = import_module("torch.distributed")
        if dist.is_available() and dist.is_initialized():
            on_cpu = "gloo" in str(dist.get_backend())
            device = torch.device("cpu") if on_cpu else _accelerator(torch)
            flag = torch.tensor([int(announced)], dtype=torch.int32, device=device)
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
            announced = bool(flag.item())
        self.announced = self.announced or announced
        return announced

    def callback(self) -> Any:
        """Return an HF Trainer callback that saves a checkpoint and stops training after any rank receives a signal."""
        base: Any = import_module("transformers").TrainerCallback
        preemption = self

        class SaveAndStop(base):  # type: ignore[misc]
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if preemption.is_announced():
                    control.should_save = True
                    control.should_training_stop = True

        return SaveAndStop()
