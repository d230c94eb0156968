"""What gives the same numbers as an answer that no declared mistake explains.

Candidates are made from right answers alone: the reference with its arguments or its result changed
(`rewired`), and right answers with one slip in them (`slips`). One is told only if it gives the
answer's value and gradient on *every* case and if all that do are one and the same function on
other cases, too. It is a likeness, since the code is not read.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch

from rlcourse.checks.calling import Failure, Outcome, as_copies, as_data, call
from rlcourse.checks.case import Case, tensors_in
from rlcourse.checks.comparing import UNPROVEN, Tolerance, compare_anything, compare_values
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.failed import FailedCheck
from rlcourse.checks.half_declared import Pair, find_half_declared
from rlcourse.checks.naming import Named, Trial, attempts, begun
from rlcourse.checks.rewired import Rewiring
from rlcourse.checks.rewired_results import rewirings
from rlcourse.checks.several import Surroundings, edited, is_no_news, typical
from rlcourse.checks.show import WRONG, size_of
from rlcourse.checks.slips import Inside, Slip, slips_of
from rlcourse.checks.specs import Spec

MOST = 1_000  # candidates of an exercise, the likeliest first
MOST_OF_OBJECTS = 180  # where arguments are policies and generators, and a call takes long
MOST_DRAWN = 60  # where a call draws samples
FEW = 8  # numbers in a case that tells little
FITTING = 60  # candidates that fit one case and are held against all of them


@dataclass(frozen=True)
class Candidate:
    """A wrong answer that is not declared."""

    words: str  # they complete "The same numbers come out if …"
    function: Callable

    @property
    def mistake(self) -> Mistake:
        return Mistake(self.words, self.function, "")


@dataclass(frozen=True)
class Likeness(Named):
    """What gives an answer's numbers, without the claim that this is what was written."""

    known: Mistake | None = None  # a declared mistake, where it takes one
    besides: str = ""  # and what is wrong in addition
    same_words: tuple[Mistake, ...] = ()  # others, of which the sentence says the same

    def holds(self, trial: Trial) -> bool:
        """Where the answer is right, too: a likeness is one everywhere."""
        told = (self.mistake, *self.same_words)
        return any(trial.reproduces_all(m) and trial.is_everywhere(m) for m in told)

    def sentences(self) -> tuple[str, ...]:
        if self.known:
            return (
                "The same numbers come out if two things are wrong at once.",
                f"{WRONG}{begun(self.known.name)}. {self.known.diagnosis}",
                f"{WRONG}{begun(self.besides)}.",
            )
        return (f"The same numbers come out if {self.mistake.name}.",)


def candidates(exercise: Exercise, rewired: tuple[Rewiring, ...]) -> Iterator[Candidate]:
    """Those that can be called, the simplest first."""
    for rewiring in rewired:
        yield Candidate(rewiring.words, rewiring.of(exercise.reference))
    written = (exercise.reference, *edited_functions(exercise), *exercise.alternatives)
    found: list[Slip | Inside] = []
    for fn in dict.fromkeys(written):
        if len(found) < MOST:
            found += slips_of(fn)
    for slip in sorted(found, key=lambda slip: slip.rank):
        if slip.function is not None:
            yield Candidate(slip.words, slip.function)


def edited_functions(exercise: Exercise) -> list[Callable]:
    """The right answers that the exercise's mistakes edit."""
    return [sketch.fn for sketch in edited(exercise)]


class Candidates:
    """The candidates of an exam, and what they give on the cases that tell the most."""

    KEPT = 3  # cases whose results are remembered

    def __init__(self, exercise: Exercise, cases: tuple[Case, ...], results: list):
        self.cases = cases
        self.objects = any(isinstance(a, Spec) for c in cases for a in c.arguments.values())
        most = MOST_DRAWN if exercise.observe else MOST_OF_OBJECTS if self.objects else MOST
        self.results = results
        self.rewirings = rewirings(exercise.reference, cases, results)
        found = islice(candidates(exercise, self.rewirings), most)
        self.mistakes = [candidate.mistake for candidate in found]
        self.rewired = self.mistakes[: len(self.rewirings)]
        self._outcomes: dict[int, list[Outcome]] = {}

    def outcomes(self, i: int) -> list[Outcome]:
        """What each of them does on case i, without gradients."""
        if i not in self._outcomes:
            if len(self._outcomes) == self.KEPT:
                del self._outcomes[next(iter(self._outcomes))]
            case = replace(self.cases[i], tracked=False)
            run = call if self.objects else _value
            with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._outcomes[i] = [run(m.implementation, case) for m in self.mistakes]
        return self._outcomes[i]

    def that_fit(self, i: int, outcome: Outcome, observe) -> list[Mistake]:
        """Those with an answer's value on case i, whatever the gradient."""
        case = replace(self.cases[i], differentiable=(), constants=())
        expected, rule = self.results[i], Tolerance.of(case)
        if observe and any(compare_values(expected, outcome.value, rule, "", types_only=True)):
            return []  # statistics are taken of answers in the right form only
        near, dtypes = Surroundings(outcome.value, case), _dtypes(outcome.value)
        return [
            mistake
            for mistake, theirs in zip(self.mistakes, self.outcomes(i), strict=True)
            if _dtypes(theirs.value) == dtypes  # or a comparison would be a loose one
            and not near.exclude(typical(theirs.value))
            and all(d.kind in UNPROVEN for d in compare_anything(theirs, outcome, case, observe))
        ]


def _dtypes(value: Any) -> list[torch.dtype]:
    return [tensor.dtype for tensor in tensors_in(value)]


def _has_floats(value: Any) -> bool:
    return isinstance(value, float) or any(t.is_floating_point() for t in tensors_in(value))


def _value(fn: Callable, case: Case) -> Outcome:
    """As `call`, of plain arguments, with nothing but the value."""
    try:
        return Outcome(as_data(fn(**as_copies(case.arguments))))
    except Exception as error:
        return Outcome(error=Failure(type(error).__name__, ""))


def find_likeness(exam, failed: FailedCheck) -> Likeness | None:
    """What gives the same numbers as the answer on every case, if anything does."""
    if exam.exercise.suspects:
        return None
    for attempt in attempts(failed):
        if attempt.negated or attempt.without_derived:
            continue
        trial = Trial(exam, failed, attempt)
        probe = None if is_no_news(trial) else _probe(trial)
        if probe is None:
            continue
        if found := _explaining(trial, probe):
            if not _are_alike(exam, found):
                return None
            same = tuple(m for m in found[1:] if m.name == found[0].name)
            return Likeness(found[0], True, attempt, same_words=same)
        if pairs := find_half_declared(trial, probe):
            return _of_pairs(trial, pairs)
    return None


def _of_pairs(trial: Trial, pairs: list[Pair]) -> Likeness | None:
    """The first of several that amount to the same; None if they blame different mistakes."""
    first = pairs[0]
    one_name = all(pair.declared is first.declared for pair in pairs)
    if one_name and _are_alike(trial.exam, [pair.whole for pair in pairs]):
        return Likeness(first.whole, True, trial.attempt, known=first.declared, besides=first.words)
    return None


def _probe(trial: Trial) -> int | None:
    """The case on which candidates are tried first; None if most calls crash."""
    failed = trial.failed
    telling = [i for i in trial.attempt.failing if not failed.outcomes[i].error]
    if 2 * len(telling) <= len(trial.attempt.failing):
        return None  # what crashes is told by its error
    return min(telling, key=lambda i: _burden(trial.exam.exercise.reference, failed.cases[i]))


def _explaining(trial: Trial, probe: int) -> list[Mistake]:
    """The candidates that give the answer's numbers wherever they count."""
    exam, outcome = trial.exam, trial.failed.outcomes[probe]
    fitting = exam.candidates.that_fit(probe, outcome, exam.exercise.observe)
    if len(trial.attempt.failing) == 1 and not _has_floats(outcome.value):
        # One yes or no is a coincidence for what nobody would write; a slip is still likely.
        rewired = exam.candidates.rewired
        fitting = [m for m in fitting if m not in rewired]
    found = [m for m in fitting if trial.reproduces_all(m) and trial.is_everywhere(m)]
    return found[:FITTING]


def _burden(reference: Callable, case: Case) -> tuple[bool, bool, int]:
    """What a call costs; what has too few numbers tells too little."""
    parameters = inspect.signature(reference).parameters.values()
    given = {p.name: p.default for p in parameters} | case.arguments
    whole = sum(abs(v) for v in given.values() if type(v) is int)
    return case.edge, size_of(case.arguments) < FEW, size_of(case.arguments) + whole


def _are_alike(exam, found: list[Mistake]) -> bool:
    first, *others = found
    return all(exam.other_drawing.same(first, other) for other in others)
