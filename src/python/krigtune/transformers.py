"""Reports the steps of a Hugging Face Trainer to krigtune.

    from krigtune.transformers import ReportStepsCallback

    trainer = Trainer(..., callbacks=[ReportStepsCallback()])

Then `krigtune tune --vary ... --metric tokens_per_second -- torchrun train.py ...` measures the steps without reading what the
program prints. Outside of such a trial the callback does nothing.
"""
from __future__ import annotations

import sys
from typing import Any, Dict, Optional

import transformers

from ._steps import StepReporter


class ReportStepsCallback(transformers.TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Reports each optimizer step: its time, samples, tokens and loss, and the peak of torch's memory on the GPU of rank 0.

    A step lasts from the end of the one before, so that waiting for data counts; evaluation and saving do not. Tokens are those
    that the Trainer counts (`--include_num_input_tokens_seen`), or `tokens_per_sample` for each sample, if that is given.
    """

    def __init__(self, tokens_per_sample: Optional[int] = None) -> None:
        self._tokens_per_sample = tokens_per_sample
        self._reporter = StepReporter()
        self._reports = False
        self._tokens_before = 0
        self._layout: _Layout

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> None:
        self._reports = self._reporter.active and state.is_world_process_zero
        if not self._reports:
            return
        self._layout = _Layout(args, model)
        self._tokens_before = _tokens_seen(state)
        self._reporter.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if not self._reports:
            return
        samples = (getattr(state, "train_batch_size", None) or args.train_batch_size) * args.gradient_accumulation_steps * self._layout.data_parallel
        seen = _tokens_seen(state)
        tokens: Optional[float] = (seen - self._tokens_before) / self._layout.counts_of_a_token
        self._tokens_before = seen
        if not tokens:
            tokens = None if self._tokens_per_sample is None else samples * self._tokens_per_sample
        self._reporter.step(samples=samples, tokens=tokens)

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **others: Any) -> None:
        loss = (logs or {}).get("loss")
        if loss is not None and self._reports:
            self._reporter.loss(float(loss))

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self._reports:
            self._reporter.begin()

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self._reports:
            self._reporter.begin()

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._reporter.close()


class _Layout:
    """How the ranks share the batch, which the arguments, the model and Accelerate's state say together."""

    def __init__(self, args: Any, model: Any) -> None:
        state = sys.modules.get("accelerate.state")
        shared = getattr(state, "AcceleratorState", None)
        known = getattr(shared, "_shared_state", {}).get("parallelism_config") or getattr(args, "parallelism_config", None)
        deepspeed = getattr(getattr(args, "hf_deepspeed_config", None), "config", None) or {}
        tensor = (getattr(model, "_tp_size", None) or deepspeed.get("tensor_parallel", {}).get("autotp_size") or
                  getattr(known, "tp_size", None) or 1)
        context = getattr(known, "cp_size", None) or 1
        sequence = getattr(known, "sp_size", None) or 1
        self.data_parallel = max(1, args.world_size // (tensor * context * sequence))
        # The Trainer sums what all ranks count, and these count the same tokens. Ranks of a sequence count their own parts.
        self.counts_of_a_token = tensor * context


def _tokens_seen(state: Any) -> int:
    return int(getattr(state, "num_input_tokens_seen", 0) or 0)
