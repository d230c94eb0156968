"""What an exercise's files must say and contain; ``rlcourse prove`` prints what is missing.

A check demands nothing that is not said. What holds for all exercises is said once, in the shipped
course's lesson on policies under “What all exercises agree on”. What a case at the edge asks for
beyond that is said in the function's docstring, and the page's ``# Demands`` say where.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import get_origin

from torch import Tensor

from rlcourse.checks.asking.calling import call, call_all
from rlcourse.checks.asking.case import Case
from rlcourse.checks.asking.specs import Spec, is_one_pass
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.proving.boundaries import unshown
from rlcourse.courses.course import Course, LessonFolder

MISTAKES, ALTERNATIVES = 6, 2  # at least
CONTRACT = {  # labels of cases, and the sentence of the contract that says what they ask for
    r"^an empty row|^every row empty": (
        "it counts as a row of 0, and a mean over nothing is 0, with a gradient of 0 and not NaN"
    ),
    r"^a float mask|^a mask of integers": "may be bool, integer or float",
    r"^float32|, float32": "the dtype of the floating-point tensors that came in",
    r"±\d{2,}|e⁻¹|far from 0|huge|^tiny weights|1000 times": (
        "that number is what comes out, and not NaN or infinity"
    ),
    r" with a graph$": "Gradient flows through `logprobs`",
}
# What is "a constant here", or which token "loses its gradient", does not say it of an argument.
SAYS_WHAT_IS_CONSTANT = (
    r"Gradient flows through `\w+` alone|Differentiable in `\w+` only|[Nn]o gradient (flows|into)"
    r"|, no gradient\.|A constant, through which no gradient|Nothing here carries gradient"
)


def lacking(course: Course, exercise: Exercise, seeds: Iterable[int] = (0,)) -> Iterator[str]:
    """A sentence for each thing that is missing in the exercise's files, with the file.

    `seeds` draw the cases in which the reference's comparisons are looked for.
    """
    lesson = course.exercises[exercise.name]
    page, module = (lesson.directory / f"{exercise.name}.{end}" for end in ("md", "py"))
    yield from (f"{page}: {sentence}" for sentence in _of_the_page(lesson, exercise))
    yield from (f"{module}: {sentence}" for sentence in _of_the_module(exercise))
    yield from (f"{module}: {sentence}" for sentence in _unpassed(exercise))
    yield from (f"{module}: {s}" for s in unshown(exercise, seeds, course.exercises))
    yield from (f"{page}: {sentence}" for sentence in _unsaid(exercise))


def _of_the_page(lesson: LessonFolder, exercise: Exercise) -> Iterator[str]:
    names = [mistake.name for mistake in exercise.mistakes]
    if not (exercise.suspects or exercise.contest) and len(names) < MISTAKES:
        yield f"it has {len(names)} mistakes; name at least {MISTAKES} that students make."
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"the mistake “{name}” appears twice."
    if not (1 <= exercise.difficulty <= 5 and exercise.minutes > 0):
        yield "difficulty is a number from 1 to 5, and minutes are more than 0."
    text = lesson.text.read_text("utf-8")
    headings = re.findall(r"^#+ (?:\d+\. )?(.+?)$", text, flags=re.MULTILINE)
    if exercise.section not in headings:
        yield f"its section “{exercise.section}” is not a heading of {lesson.text}."


def _of_the_module(exercise: Exercise) -> Iterator[str]:
    if not (exercise.suspects or exercise.contest) and len(exercise.alternatives) < ALTERNATIVES:
        count = len(exercise.alternatives)
        yield f"it has {count} right answers besides the reference; write at least {ALTERNATIVES}."
    cases = exercise.draw_cases(seed=0)
    labels = [case.label for case in cases]
    for label in sorted({label for label in labels if labels.count(label) > 1}):
        yield f"two cases have the label “{label}”."
    if cases[0].edge or sum(case.edge for case in cases) >= len(cases) / 2:
        yield "most cases, and the first, must be about the idea and not about care at its edge."
    for case in cases:
        outcome = call(exercise.reference, case)
        if not all(map(_is_data, (case.arguments, [outcome.value, outcome.gradients]))):
            yield f"“{case.label}” is not data: tensors, numbers, texts, Specs, and lists of these."
    yield from _impossible(exercise)


def _impossible(exercise: Exercise) -> Iterator[str]:
    """Cases that no policy can lead to; what holds on all others may not hold on them."""
    told = set()
    for seed, hidden in product(range(3), (False, True)):
        for case in exercise.draw_cases(seed, hidden):
            for name, value in case.arguments.items():
                logprobs = isinstance(value, Tensor) and name.endswith("logprobs")
                if logprobs and (value > 0).any() and case.label not in told:
                    told.add(case.label)
                    yield (
                        f"“{case.label}” has a log-prob above 0 in `{name}`: draw neighbors "
                        "with `CaseSampler.near`, or start lower."
                    )


def _unpassed(exercise: Exercise) -> Iterator[str]:
    """What is promised of an argument, and never passed."""
    cases = exercise.draw_cases(seed=0)
    for name, annotation in inspect.get_annotations(inspect.unwrap(exercise.reference)).items():
        given = [case.arguments[name] for case in cases if name in case.arguments]
        if get_origin(annotation) is Iterable and not any(map(is_one_pass, given)):
            yield (
                f"`{name}` may be any iterable, and no case passes one that can be gone through "
                'only once: Spec("iterator", {"items": [...]}) is one.'
            )


def _is_data(value) -> bool:
    """Whether it can be sent to the process in which a submission runs."""
    if isinstance(value, Spec):
        return _is_data(value.options)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_data(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_data, value))
    return value is None or type(value) in (Tensor, bool, int, float, str)


def _unsaid(exercise: Exercise) -> Iterator[str]:
    if exercise.suspects:
        return
    description = _plain(inspect.getdoc(exercise.reference) or "")
    if not description:
        yield "its function has no docstring, which is all that students are told."
    drawn = [*exercise.draw_cases(seed=0), *exercise.draw_cases(seed=0, hidden=True)]
    cases = list({case.label: case for case in drawn}.values())
    for case in cases:
        if case.edge and not case.raises and not _patterns_of(exercise, case):
            yield (
                f"nothing says what “{case.label}” asks for: add a line to # Demands with a "
                "sentence of the function's docstring."
            )
    for pattern, sentence in exercise.demands:
        if sentence not in description:
            yield f"the docstring does not say “{sentence}”, which # Demands quotes."
        if not any(re.search(pattern, case.label) for case in cases):
            yield f"the demand `{pattern}` matches no case."
    due = tuple(case for case in drawn if case.raises)
    for outcome in call_all(exercise.reference, due, repeat=False):
        if outcome.error and f"Raises {outcome.error.type}" not in description:
            yield f"the docstring does not say that it “Raises {outcome.error.type}”."
    if exercise.constants and not re.search(SAYS_WHAT_IS_CONSTANT, description):
        names = " and ".join(f"`{name}`" for name in exercise.constants)
        yield (
            f"the docstring does not say that {names} must get no gradient; for example, "
            "“Gradient flows through `logprobs` alone.”"
        )


def _patterns_of(exercise: Exercise, case: Case) -> list[str]:
    """The sentences about a case like this."""
    patterns = [*CONTRACT, *(pattern for pattern, _ in exercise.demands)]
    return [pattern for pattern in patterns if re.search(pattern, case.label)]


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)
