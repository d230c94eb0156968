"""Where a run of several steps first leaves the right one: which update, which turn.

Updates are seen through the optimizer that the function is given, turns through the speaker.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from rlcourse.checks.asking.calling import arguments_of, as_data
from rlcourse.checks.asking.case import Case
from rlcourse.checks.asking.episodes import ScriptedSpeaker, in_pieces
from rlcourse.checks.asking.output import kept_output
from rlcourse.checks.judging.comparing import Difference, Tolerance, compare_values


@dataclass(frozen=True)
class FirstDifference:
    """The first thing that is not as expected: a sentence, and both sides."""

    sentence: str
    what: str
    expected: Any
    actual: Any


@dataclass(frozen=True)
class Seen:
    """Something that happened during a call: in which round, what, and its value."""

    round: int
    what: str
    value: Any


def find_first_difference(reference: Callable, fn: Callable, case: Case) -> FirstDifference | None:
    """Where `fn` departs from the reference on `case`; None if that cannot be observed."""
    right, theirs = (_watched(f, case) for f in (reference, fn))
    if not right:
        return None
    rule = Tolerance.of(case)
    noun = "turn" if right[0].what == "the contexts" else "update"
    for wanted, got in zip(right, theirs, strict=False):
        if got.what != wanted.what:
            break
        if found := next(iter(compare_values(wanted.value, got.value, rule, "")), None):
            return _in_words(noun, wanted, found)
    return _uneven(noun, right, theirs)


def _uneven(noun: str, right: list[Seen], theirs: list[Seen]) -> FirstDifference | None:
    """Too many rounds, or too few."""
    wanted, made = (max((seen.round for seen in run), default=-1) + 1 for run in (right, theirs))
    if wanted == made:
        return None
    call = "`speaker.write`" if noun == "turn" else "`optimizer.step`"
    sentence = f"{call} is called {_times(made)}; expected is {_times(wanted)}."
    return FirstDifference(sentence, f"calls of {call.strip('`')}", wanted, made)


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _in_words(noun: str, wanted: Seen, found: Difference) -> FirstDifference:
    number, what = wanted.round, wanted.what
    sentence = f"{noun.capitalize()} 1 differs already"
    if number:
        sentence = f"{noun.capitalize()} {number} agrees, {noun} {number + 1} does not"
    if noun == "turn" and found.name:
        what = f"context {int(found.name.strip('[]')) + 1}"
    return FirstDifference(
        f"{sentence}: {what}.", what.replace("`", ""), found.expected, found.actual
    )


def _watched(fn: Callable, case: Case) -> list[Seen]:
    """What happened, until the call ended or failed."""
    arguments = arguments_of(case)
    events: list[Seen] = []
    optimizer = arguments.get("optimizer")
    if isinstance(optimizer, torch.optim.Optimizer):
        _watch_updates(arguments["policy"], optimizer, events)
    speaker = arguments.get("speaker")
    # The steps before it fails are worth seeing.
    with kept_output(), suppress(Exception, SystemExit, GeneratorExit):
        fn(**arguments)
    if isinstance(speaker, ScriptedSpeaker):
        events += [
            Seen(k, "the contexts", [*map(in_pieces, contexts)])
            for k, contexts in enumerate(speaker.contexts)
        ]
    return events


def _watch_updates(policy, optimizer, events: list[Seen]) -> None:
    def before(*_) -> None:
        number = len(events) // 2
        gradients = {n: p.grad for n, p in policy.named_parameters()}
        events.append(Seen(number, "the gradient that `optimizer.step` finds", _all(gradients)))

    def after(*_) -> None:
        number = (len(events) - 1) // 2
        values = _all(dict(policy.named_parameters()))
        events.append(Seen(number, "the parameters afterwards", values))

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)


def _all(tensors: dict[str, Any]) -> Any:
    """Copies of them; one alone by itself."""
    copies = [torch.zeros(()) if t is None else as_data(t) for t in tensors.values()]
    return copies[0] if len(copies) == 1 else copies
