"""A declared mistake together with an undeclared one.

The other half is a slip in the sketch whose edits the declared mistakes are (`slips`), or a change
of what the declared mistake is given (`rewired`). Both halves must show.
"""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

import torch

from rlcourse.checks.calling import Outcome, as_copies, as_data
from rlcourse.checks.comparing import UNPROVEN, compare_anything
from rlcourse.checks.exercise import Mistake
from rlcourse.checks.several import Surroundings, edit_of, edited, typical
from rlcourse.checks.sketch import RESULT, Edit, Sketch, Steps
from rlcourse.checks.slips import Text
from rlcourse.checks.specs import Spec

STEPS = 5_000  # statements run for one check
CALLS = 400  # of declared mistakes with other arguments
FITTING = 30  # pairs that fit one case and are held against all of them
SLIP = "an undeclared slip"  # the decision of all slips: one is enough
TELLING = 3  # cases on which each half shows


@dataclass(frozen=True)
class Pair:
    """A declared mistake, and what is wrong in addition."""

    declared: Mistake
    words: str
    whole: Mistake
    other: Mistake  # the undeclared half alone


def find_half_declared(trial, probe: int) -> list[Pair]:
    """The pairs that give an answer's numbers on every case."""
    exam = trial.exam
    case, outcome = trial.failed.cases[probe], trial.failed.outcomes[probe]
    objects = any(isinstance(value, Spec) for value in case.arguments.values())
    if exam.exercise.observe or objects or trial.failed.is_broken(probe):
        return []
    near = Surroundings(outcome.value, case)
    bare = replace(case, differentiable=(), constants=())
    fitting: list[Pair] = []
    # A warning would be about code that nobody wrote.
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        for pair, value in (*_edited(exam, case), *_rewired(exam, case)):
            if near.exclude(typical(value)):
                continue
            found = compare_anything(Outcome(as_data(value)), outcome, bare, None)
            if all(d.kind in UNPROVEN for d in found):
                fitting.append(pair())
    return [pair for pair in fitting[:FITTING] if _explains(trial, pair)]


def _explains(trial, pair: Pair) -> bool:
    """Whether the pair gives the answer's numbers everywhere, and each half of it shows."""
    if not (trial.reproduces_all(pair.whole) and trial.is_everywhere(pair.whole)):
        return False
    return all(
        len(list(islice((i for i in trial.seen() if trial.apart(half, pair.whole, i)), TELLING)))
        == TELLING
        for half in (pair.declared, pair.other)
    )


def _rewired(exam, case) -> Iterator[tuple[Any, Any]]:
    """(pair, value) of declared mistakes that are given other arguments."""
    reference = exam.exercise.reference
    ways = [r for r in exam.candidates.rewirings if r.is_likely]
    both = ((m, r) for r in ways for m in exam.exercise.mistakes)
    for mistake, rewiring in islice(both, CALLS):
        whole = rewiring.of(mistake.implementation)
        try:
            value = whole(**as_copies(case.arguments))
        except Exception:
            continue

        def pair(mistake=mistake, rewiring=rewiring, whole=whole) -> Pair:
            name = f"{mistake.name} + {rewiring.words}"
            other = Mistake(rewiring.words, rewiring.of(reference), "")
            whole = Mistake(name, whole, mistake.diagnosis, mistake.atol)
            return Pair(mistake, rewiring.words, whole, other)

        yield pair, value


def _edited(exam, case) -> Iterator[tuple[Any, Any]]:
    """(pair, value) of declared edits of a sketch together with one slip in it."""
    steps = Steps(STEPS)
    for sketch, mistakes in edited(exam.exercise).items():
        of = {edit_of(mistake): mistake for mistake in mistakes}
        words = slips_in(sketch)
        for edit, slip, value in _one_each(sketch, case.arguments, list(of), list(words), steps):

            def pair(edit=edit, slip=slip, sketch=sketch, of=of, words=words) -> Pair:
                declared = of[edit]
                name = f"{declared.name} + {words[slip]}"
                implementation = sketch.compiled((edit, slip))
                whole = Mistake(name, implementation, declared.diagnosis, declared.atol)
                return Pair(declared, words[slip], whole, Mistake(words[slip], slip.function, ""))

            yield pair, value


@lru_cache(maxsize=100)
def slips_in(sketch: Sketch) -> dict[Edit, str]:
    """The slips in a sketch, as edits, with their words."""
    text = Text(sketch.fn, sketch.source)
    if any(isinstance(node, ast.While) for node in ast.walk(text.tree)):
        return {}  # one might never end
    found = {}
    for slip in text.slips():
        if slip.rank == 0:
            start, end = (len(text.bytes[:place].decode()) for place in (slip.start, slip.end))
            touched = frozenset([sketch.statement_at(start)])
            found[Edit(sketch, SLIP, ((start, end, slip.new),), touched)] = slip.words
    return found


def _one_each(
    sketch: Sketch, arguments: dict, declared: list[Edit], slips: list[Edit], steps: Steps
) -> list[tuple[Edit, Edit, Any]]:
    """(declared edit, slip, result) of every way to make one of each, while `steps` last."""
    size = len(sketch.statements)
    ones, others = ([[] for _ in range(size)] for _ in range(2))  # type: ignore[var-annotated]
    for edits, places in ((declared, ones), (slips, others)):
        for edit in edits:
            places[min(edit.touched)].append(edit)
    last = [max((k for k in range(size) if places[k]), default=-1) for places in (ones, others)]
    found: list[tuple[Edit, Edit, Any]] = []

    def walk(k: int, state: dict, one: Edit | None, other: Edit | None) -> None:
        if k == size:
            if one and other:
                found.append((one, other, state[RESULT]))
            return
        for chosen in [one] if one else [None, *ones[k]]:
            if chosen is None and k >= last[0]:
                continue
            for slip in [other] if other else [None, *others[k]]:
                late = slip is None and k >= last[1]
                made = tuple(edit for edit in (chosen, slip) if edit)
                if late or (chosen and slip and not chosen.goes_with(slip)):
                    continue
                if not steps.take(k, made):
                    continue
                after = sketch.step(k, state, arguments, made)
                if after is not None:
                    walk(k + 1, after, chosen, slip)

    walk(0, {**sketch.fn.__globals__, **sketch.helpers}, None, None)
    return found
