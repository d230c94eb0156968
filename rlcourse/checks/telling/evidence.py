"""What more calls of the function can add to a verdict: a small example, the first step at which it
goes wrong, and where it does not.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from rlcourse.checks.asking.calling import call, one_thread
from rlcourse.checks.asking.case import Case
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging.comparing import compare_anything
from rlcourse.checks.telling.diagnose import DIFFER
from rlcourse.checks.telling.first_difference import find_first_difference
from rlcourse.checks.telling.result import Result
from rlcourse.checks.telling.shrinking import with_smaller_example


def with_evidence(result: Result, exercise: Exercise, fn: Callable) -> Result:
    """The result of a failed check, with what `fn` does on more calls."""
    result = with_smaller_example(result, exercise, fn)
    with torch.random.fork_rng(devices=[]), one_thread():
        return _with_first_difference(_with_place(result, exercise, fn), exercise, fn)


def _with_place(result: Result, exercise: Exercise, fn: Callable) -> Result:
    if result.place is None or exercise.observe:
        return result

    def is_right(case: Case) -> bool:
        expected = call(exercise.reference, case)
        return not (expected.error or compare_anything(expected, call(fn, case), case))

    sentence = result.place.sentence(is_right)
    if not sentence:
        return result
    said = (other for other in result.sentences if other != DIFFER)
    return replace(result, sentences=(*said, sentence))


def _with_first_difference(result: Result, exercise: Exercise, fn: Callable) -> Result:
    if result.example is None:
        return result
    found = find_first_difference(exercise.reference, fn, result.example.case)
    if found is None:
        return result
    example = replace(result.example, first_difference=found)
    return replace(result, sentences=(*result.sentences, found.sentence), example=example)
