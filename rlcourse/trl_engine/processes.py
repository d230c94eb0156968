"""Several processes that work as one: rank zero speaks and writes, all of them stop together.

``accelerate launch`` starts a process for each GPU. What each of them reads and checks can fail in
one and not in another, and a process that continued alone would wait for the others until a
timeout. So before training every job is done `together`: all learn of a failure in one, rank zero
reports it, and all end with the same exit code. In training, where the others sit in a collective
operation, the process that fails speaks for itself, and the launcher ends the rest.
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
# A launcher ends all processes as soon as one has ended: rank zero needs time to speak first.
TIME_TO_SPEAK = 2.0


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

    def together(self, job: Callable):
        """What `job()` returns here, once no process has failed at it.

        Raises:
            UserError: in rank zero, where any process met one; the other processes end quietly.
        """
        failure, result = None, None
        try:
            result = job()
        except UserError as error:
            failure = error
        self._agree(failure)
        return result

    def on_main(self, job: Callable):
        """`together`, for a job that rank zero does alone; None in the others, which wait."""
        return self.together(job if self.first else lambda: None)

    def from_first(self, value):
        """Rank zero's value, in all processes."""
        return self.gathered(value)[0]

    def _agree(self, failure: UserError | None) -> None:
        failures = self.gathered(failure and (str(failure), failure.exit_code))
        failed = [what for what in failures if what]
        if failed:
            told = UserError(failed[0][0])
            told.exit_code = failed[0][1]
            self.end_together(failure if self.first and failure else told)

    def end_together(self, error: UserError) -> None:
        """End with an error that all processes know of: only rank zero reports it."""
        if self.first:
            raise error
        time.sleep(TIME_TO_SPEAK)
        raise SystemExit(error.exit_code)

    def fail(self, error: UserError) -> None:
        """End with an error of this process alone, which the others do not know of."""
        if self.count == 1:
            raise error
        print(f"\nrlcourse (process {self.rank}): {error}", file=sys.stderr, flush=True)
        raise SystemExit(1)

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
