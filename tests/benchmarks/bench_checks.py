"""How long a check takes on one core, in seconds of processor time.

    python tests/benchmarks/bench_checks.py             # every exercise
    python tests/benchmarks/bench_checks.py grpo_loss gae

Three answers to each exercise: the right one, one that no declared mistake and no pair of them
explains, and one that raises in every call. The first check in a process pays for its imports, so
one is made beforehand. Exits with 1 if 95 % of the failing checks do not take less than half a
second, or if any check takes more than two.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["RLCOURSE_HOME"] = tempfile.mkdtemp()  # no record of the reader's own

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # for who runs this without pytest

from shared import as_written

from rlcourse import check, exercises

ANSWERS = ("right", "wrong", "raising")


def spoiled(value: Any) -> Any:
    """Something of the same kind that is not a declared mistake."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value * 1.0371 + 0.0123 * value.detach().cos()
    if isinstance(value, torch.Tensor):
        return ~value if value.dtype == torch.bool else value + 1
    if isinstance(value, list | tuple):
        return type(value)(map(spoiled, value))
    if isinstance(value, bool) or value is None:
        return not value
    return value + "7" if isinstance(value, str) else value * 1.0371 + 0.0123


def answer(reference: Callable, kind: str) -> Callable:
    """A function to check, with the reference's name and parameters."""
    right = as_written(reference)

    @wraps(right)
    def answered(*args, **kwargs):
        if kind == "raising":
            raise IndexError("index 7 is out of range")
        value = right(*args, **kwargs)
        return spoiled(value) if kind == "wrong" else value

    return answered


def seconds(exercise, kind: str) -> float:
    """What one check costs, the larger of two: with the cases as they are shown and hidden ones."""
    check(exercise.reference, exercise.name, seed=1)
    fn, spent = answer(exercise.reference, kind), []
    for hidden in (False, True):
        began = time.process_time()
        check(fn, exercise.name, seed=0, hidden=hidden)
        spent.append(time.process_time() - began)
    return max(spent)


def main() -> int:
    torch.set_num_threads(1)
    names = sys.argv[1:]
    chosen = [exercises.get(name) for name in names] if names else exercises.all()
    rows = [(e.name, *(seconds(e, kind) for kind in ANSWERS)) for e in chosen]
    rows.sort(key=lambda row: -max(row[1:]))
    line = "{:<34}" + "{:>10}" * len(ANSWERS)
    print(line.format(f"seconds of a check, one core, {len(rows)}", *ANSWERS))
    for name, *spent in rows[:15]:
        print(line.format(name, *(f"{s:.2f}" for s in spent)))
    failing = sorted(s for _, _, *spent in rows for s in spent)
    usual, longest = failing[int(0.95 * (len(failing) - 1))], failing[-1]
    print(f"95 % of the checks that fail take less than {usual:.2f}, all at most {longest:.2f}")
    return int(longest > 2.0 or usual > 0.5)


if __name__ == "__main__":
    sys.exit(main())
