"""What an exercise's files must contain; ``rlcourse prove`` prints what is missing."""

import re
from collections.abc import Iterable, Iterator

from torch import Tensor

from rlcourse.checks.asking.calling import call
from rlcourse.checks.asking.specs import Spec
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.proving.boundaries import unshown
from rlcourse.courses.course import Course, LessonFolder

MISTAKES, ALTERNATIVES = 6, 2  # at least


def lacking(course: Course, exercise: Exercise, seeds: Iterable[int] = (0,)) -> Iterator[str]:
    """A sentence for each thing that is missing in the exercise's files, with the file.

    `seeds` draw the cases in which the reference's comparisons are looked for.
    """
    lesson = course.exercises[exercise.name]
    page, module = (lesson.directory / f"{exercise.name}.{end}" for end in ("md", "py"))
    yield from (f"{page}: {sentence}" for sentence in _of_the_page(lesson, exercise))
    yield from (f"{module}: {sentence}" for sentence in _of_the_module(exercise))
    yield from (f"{module}: {s}" for s in unshown(exercise, seeds, course.exercises))


def _of_the_page(lesson: LessonFolder, exercise: Exercise) -> Iterator[str]:
    names = [mistake.name for mistake in exercise.mistakes]
    if not (exercise.suspects or exercise.contest) and len(names) < MISTAKES:
        yield f"it has {len(names)} mistakes; name at least {MISTAKES} that students make."
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"the mistake “{name}” appears twice."
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


def _is_data(value) -> bool:
    """Whether it can be sent to the process in which a submission runs."""
    if isinstance(value, Spec):
        return _is_data(value.options)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_data(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_data, value))
    return value is None or type(value) in (Tensor, bool, int, float, str)
