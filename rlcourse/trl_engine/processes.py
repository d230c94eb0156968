"""Several processes that work as one: rank zero speaks and writes, all of them stop together.

``accelerate launch`` starts a process for each GPU, and ends all of them as soon as one has ended.
So a process that fails just ends: if it is not rank zero it first waits for rank zero, which may
have met the same error, to say it for all.
"""

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta

import torch

from rlcourse.errors import UserError

# Rank zero evaluates, and runs the warm start, while the others wait for it.
PATIENCE = timedelta(hours=12)
TIME_TO_SPEAK = 15.0  # seconds


class Processes:
    """The processes of this run, of which this is number `rank` of `count`."""

    def __init__(self):
        from accelerate import PartialState

        launched = int(os.environ.get("WORLD_SIZE", "1")) > 1
        on_cpu = _is_set("ACCELERATE_USE_CPU")
        on_cpu |= launched and not torch.accelerator.is_available()
        state = PartialState(cpu=on_cpu, **({"timeout": PATIENCE} if launched else {}))
        if launched and state.num_processes == 1:
            raise UserError(f"TRL cannot share work among processes on {state.device}: start one")
        self.count: int = state.num_processes
        self.rank: int = state.process_index
        self.first = self.rank == 0
        self.use_cpu = on_cpu or state.device.type == "cpu"

    def each(self, job: Callable):
        """What `job()` returns here; if it raises ``UserError``, this process ends with it."""
        try:
            return job()
        except UserError as error:
            self.fail(error)

    def on_main(self, job: Callable):
        """What `job()` returns in rank zero, for which the others wait; None in them."""
        result = self.each(job) if self.first else None
        try:
            self.gathered(None)
        except RuntimeError:  # rank zero is gone, and has said why
            raise SystemExit(1) from None
        return result

    def from_first(self, value):
        """Rank zero's value, in all processes."""
        return self.gathered(value)[0]

    def fail(self, error: UserError, known: bool = False) -> None:
        """End with an error; where it is `known` to all processes, only rank zero says it."""
        if self.first:
            raise error
        time.sleep(TIME_TO_SPEAK)
        if not known:
            print(f"\nrlcourse (process {self.rank}): {error}", file=sys.stderr, flush=True)
        raise SystemExit(error.exit_code)

    def gathered(self, value) -> list:
        """The values of all processes, in all of them. To be called by all."""
        if self.count == 1:
            return [value]
        values = [None] * self.count
        torch.distributed.all_gather_object(values, value)
        return values

    def close(self) -> None:
        """Leave the group of processes in good order."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def weights_are_shared_out() -> bool:
    """Whether each process is to hold a part of the weights only: FSDP, or ZeRO-3."""
    deepspeed, stage = _is_set("ACCELERATE_USE_DEEPSPEED"), "ACCELERATE_DEEPSPEED_ZERO_STAGE"
    return _is_set("ACCELERATE_USE_FSDP") or (deepspeed and os.environ.get(stage) == "3")


def _is_set(variable: str) -> bool:
    """Whether accelerate's launcher has switched something on."""
    return os.environ.get(variable, "").lower() in ("1", "true", "yes")
