"""What a training program reports of its steps while it is a trial of `krigtune tune --metric throughput -- COMMAND`."""
from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Dict, Optional, TextIO

# The file that trials append to, a JSON object a line; not set outside of such a trial (docs/measure.md).
_VARIABLE = "KRIGTUNE_STEPS_FILE"
# Each launcher tells a process its rank in a variable of its own: torchrun, Open MPI, MPICH and Slurm.
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


def _rank() -> int:
    for name in _RANKS:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def _torch_cuda() -> Any:
    """torch.cuda if this program has used a GPU with it, else None. torch is not imported for it."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized() else None


class StepReporter:
    """Reports the steps of your own training loop to krigtune. Outside of a trial it does nothing.

        reporter = krigtune.StepReporter()
        for batch in batches:
            loss = train(batch)
            reporter.step(samples=batch.size(0) * world_size)

    Each rank may have one; only rank 0 reports. krigtune leaves the first steps out (`--warmup-steps`) and takes the median of the
    others.
    """

    def __init__(self) -> None:
        self._path = os.environ.get(_VARIABLE) if _rank() == 0 else None
        self._file: Optional[TextIO] = None
        self._begun_s: Optional[float] = None
        self._steps = 0

    @property
    def active(self) -> bool:
        """Whether this process is rank 0 of a trial that is measured by what it reports."""
        return self._path is not None

    def begin(self) -> None:
        """Says that a step begins now: what came before, such as an evaluation, is no part of it."""
        if self.active:
            self._begun_s = self._now_s()

    def step(self, *, samples: Optional[float] = None, tokens: Optional[float] = None, loss: Optional[float] = None) -> None:
        """Reports that an optimizer step has ended. It began where the last one ended, or with `begin`.

        samples, tokens: how many this step had, over all ranks. loss: if it is not a number, krigtune ends the trial as failed.

        The time is taken when the GPU has finished the step. The peak of torch's memory on this GPU is reported too.
        """
        if not self.active:
            return
        now_s = self._now_s()
        begun_s, self._begun_s = self._begun_s, now_s
        self._steps += 1
        if begun_s is None:  # the first call of a loop without begin(): how long it took is not known
            return
        cuda = _torch_cuda()
        self._write(iteration=self._steps, step_time_s=now_s - begun_s, samples=samples, tokens=tokens, loss=loss,
                    peak_memory_bytes=None if cuda is None else cuda.max_memory_reserved())

    def loss(self, loss: float) -> None:
        """Reports the loss of the last step, if it is known only now."""
        if self.active and self._steps > 0:
            self._write(iteration=self._steps, loss=loss)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _now_s(self) -> float:
        cuda = _torch_cuda()
        if cuda is not None:
            cuda.synchronize()
        return time.perf_counter()

    def _write(self, **numbers: Optional[float]) -> None:
        if self._file is None:
            assert self._path is not None
            self._file = open(self._path, "a", encoding="utf-8")
        line: Dict[str, Any] = {name: number for name, number in numbers.items() if number is not None}
        if "loss" in line:
            line["loss"] = str(float(line["loss"]))  # as text, because JSON has no NaN
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
