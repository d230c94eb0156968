"""What is wrong with an answer that no declared mistake explains.

Each question below looks at all failing cases and gives one sentence, or None. The first answer is
the diagnosis; where the failure is confined to some cases, a second sentence says to which.
"""

from collections.abc import Iterator
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.calling import TORCH_GENERATOR, Failure, Opaque, describe
from rlcourse.checks.asking.specs import MODE
from rlcourse.checks.exercise import Mistake
from rlcourse.checks.judging.failed import FailedCheck, as_tensor, is_numeric
from rlcourse.checks.judging.naming import begun
from rlcourse.checks.telling import patterns
from rlcourse.checks.telling.places import Place, suspected
from rlcourse.checks.telling.result import place_in_result
from rlcourse.checks.telling.show import shortened
from rlcourse.checks.telling.wording_errors import as_seen, in_words

LONGEST_LINE, LONGEST_MESSAGE = 100, 240  # characters of an error that are shown
MOST_FACTS = 2  # that are told of an answer
DIFFER = "The values differ from the expected ones."
IMPOSSIBLE = "It cannot be run"  # in this line, for a reason that is told
Answer = str | tuple[str, int] | None  # a sentence, and which case it speaks of


def last_resort(failed: FailedCheck, error: Exception) -> list[str]:
    """What to say when the questions below raise an error: no answer may end a check with one."""
    return [DIFFER]


def diagnose(failed: FailedCheck) -> tuple[list[str], int | None]:
    """The sentences that a student reads, and the case they are about if it is a particular one.

    If most failing cases have a result, these come first, and a crash on an extreme one after.
    """
    broken = frozenset(i for i in failed.wrong if failed.is_broken(i))
    aside = broken if 2 * len(broken) < len(failed.wrong) else frozenset()
    sentences, at = [], None
    for question in QUESTIONS:
        if failed.wrong and (answer := question(failed.without(aside))):
            first, at = answer if isinstance(answer, tuple) else (answer, None)
            sentences.append(first)
            break
    sentences += [*diagnose_broken(failed, aside), *besides(failed)]
    sentences += [*_only_case(failed, at), *_unread(failed)]
    facts = [said for said in sentences if said != DIFFER][:MOST_FACTS]
    none = not facts or facts[0].startswith("Also")
    return [DIFFER, *facts] if none else facts, at


def diagnose_rest(
    failed: FailedCheck, half: Mistake, explained: frozenset[int]
) -> tuple[list[str], int | None]:
    """The same where one mistake explains some of the failing cases, and something else others."""
    rest = failed.without(explained)
    sentences, at = diagnose(rest)
    at = rest.smallest if at is None else at
    count = f"{len(explained)} of the {len(failed.failing)} cases that fail"
    first = f"On {count}, your numbers are those of {half.name}. {half.diagnosis}"
    label, several = f"“{failed.cases[at].label}”", len(rest.failing) > 1
    others = f"The others, such as {label}, show" if several else f"The other, {label}, shows"
    return [first, f"{others} something else.", *(said for said in sentences if said != DIFFER)], at


def place_of(failed: FailedCheck, sentences: list[str]) -> Place | None:
    """Where the answer may be wrong, unless enough is said."""
    if len(sentences) >= MOST_FACTS:
        return None
    parameters = signature(failed.exercise.reference).parameters.values()
    usual = {p.name: p.default for p in parameters if p.default is not p.empty}
    place = suspected(failed.cases, failed.wrong or failed.failing, usual)
    said = any("padding" in sentence for sentence in sentences)
    return None if place is None or (said and "padding" in place.property.words) else place


def _only_case(failed: FailedCheck, at: int | None) -> Iterator[str]:
    failing = [*failed.failing, *failed.aside]
    if len(failing) == 1 < len(failed.cases) and at is None:
        yield f"Of all {len(failed.cases)} cases, only “{failed.cases[failing[0]].label}” fails."


def besides(failed: FailedCheck) -> list[str]:
    """Faults that any function can have in addition to wrong numbers."""
    return [sentence for fault in (_leaks, _changed, _dtype) if (sentence := fault(failed))]


def diagnose_broken(failed: FailedCheck, indices: frozenset[int]) -> Iterator[str]:
    """A sentence on cases that crash or give NaN when others are wrong in other ways."""
    for i in sorted(indices)[:1]:
        error, where = failed.outcomes[i].error, f"on the case “{failed.cases[i].label}”"
        if failed.cases[i].raises:
            yield f"Also, {_not_raised(failed, i)} {where}."
        else:
            what = as_seen(error) if error else "the result is not finite"
            yield f"Also, {what} {where}."


def _unread(s: FailedCheck) -> Iterator[str]:
    if all(s.outcomes[i].error for i in s.failing):
        return  # no call came to its end
    wanted = describe(s.exercise.reference).unused
    idle = [name for name in s.facts.unused if name not in wanted]
    if idle:
        yield f"Your function never reads {_code_list(idle)}."


def _signature(s: FailedCheck) -> str | None:
    wanted = describe(s.exercise.reference).parameters
    errors = [s.outcomes[i].error for i in s.failing]
    if s.facts.parameters and all(e and e.type == "TypeError" and not e.line for e in errors):
        if all(e and "positional-only" in e.message for e in errors):
            return "It is called by name, which a `/` among its parameters forbids: take it out."
        return (
            f"It is called by name with {_code_list(wanted)}, "
            f"but your parameters are {_code_list(s.facts.parameters)}."
        )
    return None


def _should_raise(s: FailedCheck) -> Answer:
    if not all(s.cases[i].raises for i in s.wrong):
        return None
    i = s.wrong[0]
    return f"On the case “{s.cases[i].label}” {_not_raised(s, i)}.", i


def _not_raised(s: FailedCheck, i: int) -> str:
    error, wanted = s.outcomes[i].error, s.expected[i].error
    returned = "nothing" if s.outcomes[i].value is None else "a result"
    what = as_seen(error) if error else f"it returns {returned}"
    return f"{what} where {wanted.type if wanted else 'a result'} is expected"


def _errors(s: FailedCheck) -> list[tuple[int, Failure]]:
    """(case, error) of every call that should not have raised; the first is the one shown."""
    return [(i, e) for i in s.failing if (e := s.outcomes[i].error) and not s.cases[i].raises]


def _raises(s: FailedCheck) -> Answer:
    errors = _errors(s)
    if not errors:
        return None
    i, error = errors[0]
    line = shortened(error.line, LONGEST_LINE)
    at = f" In line {error.line_number} of {error.function}: `{line}`." if line else ""
    where = f" on the case “{s.cases[i].label}”" if len(errors) < len(s.cases) else ""
    if error.cause and not s.hidden:
        at += f" {error.cause}"
    if words := in_words(error):
        return f"{IMPOSSIBLE}{where}: {words}.{at}", i
    message = shortened(error.message.rstrip("."), LONGEST_MESSAGE)
    said = "" if s.hidden or not message else f": {message}"
    seen = as_seen(error)
    if not seen.endswith(error.type) and not error.line:
        return f"{begun(seen)}{where}.", i  # the message is that of who stopped it
    return f"{begun(seen)}{where}{said}.{at}", i


def _type(s: FailedCheck) -> str | None:
    found = s.found("type", "structure")
    if not found:
        return None
    _, d = found[0]
    if d.actual is None and not any(o.value is None and not o.error for o in s.expected):
        return f"It returns nothing where {_kind(d.expected)} is expected: does it end in `return`?"
    if d.actual == Opaque("coroutine"):
        return "It returns a coroutine, which nobody runs: write `def` in place of `async def`."
    if d.name:
        where = f"`{place_in_result(d.name)}`"
        return f"{where} is {_kind(d.actual)} where {_kind(d.expected)} is expected."
    return f"It returns {_kind(d.actual)} where {_kind(d.expected)} is expected."


def _shape(s: FailedCheck) -> Answer:
    found = s.found("shape")
    if not found:
        return None
    i, d = next((item for item in found if item[0] == s.smallest), found[0])
    given = ", ".join(
        f"`{name}` {_shape_of(value)}"
        for name, value in s.cases[i].arguments.items()
        if isinstance(value, Tensor)
    )
    if s.hidden:
        return "The result has another shape than expected."
    given = f" for {given}" if given else ""
    if d.actual.ndim == 2 and d.expected.shape == d.actual.shape[::-1]:
        return f"The result is transposed: its rows should be its columns{given}."
    return (
        f"It returns shape {_shape_of(d.actual)} where {_shape_of(d.expected)} is expected{given}."
    )


def _unrepeatable(s: FailedCheck) -> str | None:
    if not s.found("unrepeatable"):
        return None
    return "Called twice with the same arguments, it gives two different results."


def _unvaried(s: FailedCheck) -> str | None:
    if not s.found("unvaried"):
        return None
    return (
        "With another seed it makes exactly the same draws. Each draw should be a new one, taken "
        "from `generator`."
    )


def _changed(s: FailedCheck) -> str | None:
    names = list(dict.fromkeys(d.name for _, d in s.found("changed")))
    if TORCH_GENERATOR in names:
        return "It draws from torch's own generator, or seeds it, but that belongs to the caller."
    if not names:
        return None
    return (
        f"It changes its argument {_code_list(names)} in place. "
        "Work on a new tensor: the caller still needs the old one."
    )


def _dtype(s: FailedCheck) -> str | None:
    found = s.found("dtype")
    if not found:
        return None
    i, d = found[0]
    got, wanted = (str(t.dtype).removeprefix("torch.") for t in (d.actual, d.expected))
    why = ": a result takes the dtype of the arguments it is computed from"
    given = [x for x in s.cases[i].arguments.values() if isinstance(x, Tensor)]
    computed = d.expected.is_floating_point() and any(x.is_floating_point() for x in given)
    return f"The result is {got} where {wanted} is expected{why if computed else ''}."


def _not_a_number(s: FailedCheck) -> Answer:
    for kind, what in (("value", "The result"), ("gradient", "The gradient")):
        for i, d in s.found(kind):
            if s.is_broken(i) and is_numeric(d.actual):
                actual = as_tensor(d.actual)
                if not actual.isfinite().all():
                    name = "NaN" if actual.isnan().any() else "infinite"
                    return f"{what} is {name}, first on the case “{s.cases[i].label}”.", i
    return None


def _leaks(s: FailedCheck) -> str | None:
    names = sorted({d.name for _, d in s.found("leak")})
    if not names:
        return None
    it = "it" if len(names) == 1 else "them"
    return (
        f"Gradient flows into {_code_list(names)}, which must be treated as constant: detach {it}."
    )


def _no_gradient(s: FailedCheck) -> str | None:
    found = s.found("gradient")
    if not found or s.found("value", "shape", "type"):
        return None
    right = s.right_pairs("gradient")
    if all(not d.actual.any() for _, d in found) and not any(p.actual.any() for p in right):
        return (
            f"The value is right but no gradient reaches `{found[0][1].name}`: "
            "something on the way is detached or converted to a number."
        )
    return None


def _same_everywhere(s: FailedCheck) -> str | None:
    values = [o.value for o in s.outcomes]
    if len(values) < 3 or not all(map(_is_number, values)):
        return None
    numbers = {float(as_tensor(v)) for v in values}
    # Where an error is expected there is no value, which is one more thing that is not a number.
    wanted = {float(as_tensor(o.value)) for o in s.expected if _is_number(o.value)}
    if len(numbers) == 1 and len(wanted) > 1:
        return f"It returns {numbers.pop():g} whatever the arguments."
    return None


def _pattern(s: FailedCheck) -> str | None:
    if s.exercise.observe:
        return None  # a statistic of the result is not the result
    if pairs := s.pairs("value"):
        places = {d.name for _, d in s.found("value")}
        only = places.pop() if len(places) == 1 else ""  # of a tuple, whose rest is right
        yours = f"`{place_in_result(only)}`" if only else "Your result"
        return patterns.explain(pairs, s.right_pairs("value"), yours, "the expected one")
    for name in s.exercise.differentiable:
        pairs, right = s.pairs("gradient", name), s.right_pairs("gradient", name)
        if pairs and (found := patterns.explain(pairs, right, "your gradient", "the expected one")):
            return f"The value is right, but {found}"
    return None


def _after(s: FailedCheck) -> str | None:
    found = s.found("after")
    if not found or s.found("value"):
        return None
    pairs = s.pairs("after")
    if all(d.name.endswith(MODE) for _, d in found):
        return (
            "The value is right, but the call switches the policy between training and evaluation."
        )
    if all(d.name.endswith("drawn from") for _, d in found):
        return (
            "The value is right, but the call did not draw from the generator that it was given "
            "(without one, from torch's own)."
        )
    if pairs and all(torch.isnan(p.actual).any() for p in pairs):
        return "After the call, the parameters are NaN."
    if all(d.name.endswith(".grad") for _, d in found):
        return "The value is right, but the call leaves gradients behind in `.grad`."
    if any(d.name.endswith(".told") for _, d in found):
        return (
            "The result is right, but an environment was given other turns, or more, than expected."
        )
    if any(d.name.endswith(".contexts") for _, d in found):
        return "The result is right, but the speaker was asked for more turns than necessary."
    return "The value is right, but the parameters are not what they should be after the step."


def _values(s: FailedCheck) -> str | None:
    if found := s.found("value"):
        if s.exercise.observe:
            names = list(dict.fromkeys(d.name.partition("[")[0] for _, d in found))
            return f"Your result differs in what is compared: {', '.join(names)}."
        return DIFFER
    if found := s.found("gradient"):
        names = dict.fromkeys(d.name for _, d in found)
        return f"The value is right, but the gradient in {_code_list(names)} is not."
    return DIFFER


QUESTIONS = (
    _signature,
    _should_raise,
    _raises,
    _type,
    _shape,
    _unrepeatable,
    _unvaried,
    _not_a_number,
    _no_gradient,
    _same_everywhere,
    _pattern,
    _after,
    _values,
)


def _is_number(value: Any) -> bool:
    return is_numeric(value) and as_tensor(value).numel() == 1


def _shape_of(value: Tensor) -> str:
    return str(tuple(value.shape)) if value.ndim else "() (a single number)"


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return "a tensor"
    if isinstance(value, Opaque):
        return f"a {value.type}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a Python {type(value).__name__}"


def _code_list(names) -> str:
    return ", ".join(f"`{name}`" for name in names)
