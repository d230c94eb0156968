"""From an exercise's page and module, the ``Exercise`` that the checks use.

The module holds what is code, under names of its own: ``cases``, a generator; ``alternatives``,
other right answers; and where an exercise has them ``sketch``, the written-out answer that the
page's edits change, ``observe``, ``oracle``, ``suspects``. See ``rlcourse.checks.exercise``.
"""

import importlib
import inspect
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from types import FunctionType, ModuleType

from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.judging.sketch import Sketch
from rlcourse.courses.course import Course, LessonFolder
from rlcourse.courses.exercise_page import SHARED, Code, Edits, Entry, read_page
from rlcourse.courses.finding import shipped
from rlcourse.courses.modules import load_module
from rlcourse.errors import UserError, first_line

OPTIONAL = ("observe", "oracle", "suspects", "contest", "boundaries")
NEW_LINE = "⏎"  # within an edit


def load_exercise(course: Course, lesson: LessonFolder, name: str) -> Exercise:
    """The exercise `name` of a lesson, with the course's own points.

    Raises:
        UserError: its files are missing or contain a mistake; with file and, for a page, line.
    """
    for path in (lesson.directory / f"{name}.md", lesson.directory / f"{name}.py"):
        if not path.is_file():
            raise UserError(f"{lesson.cell(name)}: exercise {name!r} has no {path}.")
    page = read_page(lesson.directory / f"{name}.md")
    module = load_module(lesson.directory / f"{name}.py")
    _verify(module)
    sketch = getattr(module, "sketch", None)
    alternatives = tuple(module.alternatives)
    if sketch is not None and sketch.fn not in alternatives:
        alternatives += (sketch.fn,)
    facts = dict(page.facts)
    reference = _reference(str(facts.pop("function", "")), module, name, page.path)
    _verify_arguments(facts, reference, page.path)
    pages = (lesson.home / "lessons" / SHARED, shipped().directory / "lessons" / SHARED)
    return Exercise(
        reference=reference,
        lesson=lesson.name,
        cases=module.cases,
        alternatives=alternatives,
        hints=page.hints,  # type: ignore[arg-type]  # the page has three
        mistakes=tuple(
            _mistake(entry.filled_in(pages), sketch, {**vars(module), name: reference})
            for entry in page.mistakes
        ),
        **(facts | {"points": course.points.get(name, facts["points"])}),
        **{key: getattr(module, key) for key in OPTIONAL if hasattr(module, key)},
        name=name,
    )


def _verify(module: ModuleType) -> None:
    others = getattr(module, "alternatives", None)
    if not isinstance(others, tuple | list) or not callable(getattr(module, "cases", None)):
        raise UserError(
            f"{module.__file__}: an exercise's module defines `cases`, a function, and "
            "`alternatives`, functions as in (by_loop,)."
        )


def _reference(function: str, module: ModuleType, name: str, page: Path) -> Callable:
    """What the page names as a dotted path; without it, the module's own function."""
    home, _, attribute = function.rpartition(".")
    what = function or f"{name} in {module.__file__}"
    try:
        found = getattr(importlib.import_module(home) if home else module, attribute or name)
    except Exception as error:  # whatever importing it runs into
        raise UserError(f"{page}: there is no function {what} ({first_line(error)}).") from error
    if not isinstance(found, FunctionType):
        raise UserError(f"{page}: {what} is not a function.")
    return found


def _verify_arguments(facts: dict, reference: Callable, page: Path) -> None:
    parameters = list(inspect.signature(reference).parameters)
    for key in ("differentiable", "constants"):
        for name in facts.get(key, ()):
            if name not in parameters:
                close = get_close_matches(name, parameters, n=1)
                hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(parameters)}."
                raise UserError(f"{page}: {key} names no argument, {name!r}; {hint}")


def _mistake(entry: Entry, sketch: Sketch | None, namespace: dict) -> Mistake:
    def made(code: Code) -> Callable:
        return _implementation(entry, *code, sketch, namespace)

    return Mistake(
        entry.name,
        made((entry.edits, entry.expression)),
        entry.diagnosis,
        paraphrases=tuple(map(made, entry.paraphrases)),
        neighbors=tuple(map(made, entry.neighbors)),
        **entry.options,  # type: ignore[arg-type]  # `telling` is whole
    )


def _implementation(
    entry: Entry, edits: Edits, expression: str, sketch: Sketch | None, namespace: dict
) -> Callable:
    if expression:
        return _value(entry, expression, namespace)
    if not edits:
        raise entry.error(f"“{entry.name}” needs an edit, `old` → `new`, or a function.")
    if sketch is None:
        raise entry.error(f"an edit needs a `sketch` in {namespace['__file__']}.")
    texts = [text.replace(NEW_LINE, "\n") for edit in edits for text in edit]
    try:
        if entry.decision:
            return sketch.edit(entry.decision, *texts)
        return sketch.alone(*texts)
    except (ValueError, SyntaxError) as error:
        raise entry.error(f"{error}.") from error


def _value(entry: Entry, expression: str, namespace: dict) -> Callable:
    try:
        found = eval(expression, namespace)
    except Exception as error:
        said = f"{type(error).__name__}: {first_line(error)}"
        raise entry.error(f"`{expression}` has no value ({said}).") from error
    if not callable(found):
        raise entry.error(f"`{expression}` is not a function.")
    if getattr(found, "__name__", "") == "<lambda>":
        found.text = expression  # Python keeps no source of it
    return found
