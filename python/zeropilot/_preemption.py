"""A scheduler's warning becomes a checkpoint: the signal is noted, and all ranks are told of it at the same step."""

import signal
from importlib import import_module
from types import FrameType
from typing import Any, Iterable, Optional


def _accelerator(torch: Any) -> Any:
    # PyTorch before 2.6 has no name for whatever it computes on.
    known = getattr(torch, "accelerator", None)
    return (known and known.current_accelerator()) or torch.device("cuda")


class Preemption:
    """Notes that a scheduler, or ``zeropilot run``, asks this run to end.

    Make it once, before the loop, and ask it after each optimizer step::

        preemption = zeropilot.Preemption()
        ...
        if preemption.is_announced():
            engine.save_checkpoint(directory)
            break

    With the HF Trainer, ``Trainer(..., callbacks=[preemption.callback()])`` does the same.
    """

    def __init__(self, signals: Iterable[int] = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)) -> None:
        #: The signal that this rank got, if it got one.
        self.signal: Optional[int] = None
        #: Whether ``is_announced`` was ever true.
        self.announced = False
        for number in signals:
            signal.signal(number, self._note)

    def _note(self, number: int, _frame: Optional[FrameType]) -> None:
        self.signal = self.signal or number

    def is_announced(self) -> bool:
        """Whether any rank was asked to end.

        All ranks get the same answer, so that all save at the same step. It is a collective: every rank must ask equally often.
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
        """A callback of the HF Trainer that saves a checkpoint and ends training once a rank was asked to end."""
        base: Any = import_module("transformers").TrainerCallback
        preemption = self

        class SaveAndStop(base):  # type: ignore[misc]
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if preemption.is_announced():
                    control.should_save = True
                    control.should_training_stop = True

        return SaveAndStop()
