"""Answers that no declared mistake explains, written as the draft of one, to be completed.

Both files are in the form that a course reads: the Markdown goes to the end of ``EXERCISE.md``,
the Python to the end of ``EXERCISE.py``. They hold students' code. Nothing here runs it, and
``rlcourse prove`` will: read it first.
"""

import re
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained, write_text
from rlcourse.grading.insight.summing import Group, Insight
from rlcourse.grading.judging.finding import UNNAMED


def write(insight: Insight, directory: Path) -> list[Path]:
    """Write two files for every exercise with unnamed answers; the paths of those written.

    Raises:
        UserError: a file of that name is there already, or nobody's answer is without a name.
    """
    texts = {}
    for exercise in insight.exercises:
        if groups := exercise.groups(UNNAMED):
            place = directory / insight.recorded.lesson / exercise.name
            texts[place.with_suffix(".md")] = words(groups)
            texts[place.with_suffix(".py")] = code(groups)
    if not texts:
        raise UserError("every wrong answer has a name: there is nothing to draft")
    if existing := [path for path in texts if path.exists()]:
        raise UserError(f"{existing[0]} exists: choose another --draft, or remove it")
    for path, text in texts.items():
        with write_errors_explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return list(texts)


def words(groups: list[Group]) -> str:
    """What goes to the end of the exercise's page: a mistake for each group, to be named."""
    return "".join(
        f"\n**TODO: what {_answers(group.count)} did, {i}**\n"
        f"`{_called(group, i)}`\n"
        "TODO: say in one sentence why it is wrong.\n"
        for i, group in enumerate(groups, 1)
    )


def code(groups: list[Group]) -> str:
    """What goes to the end of the exercise's module: the functions, as students wrote them."""
    parts = ["# Written by students: read it before anything runs it.\n"]
    for i, group in enumerate(groups, 1):
        source = group.codes[0][0] if group.codes else f"def {group.exercise}(): ..."
        name = rf"\b{re.escape(group.exercise)}\b"
        parts.append(re.sub(name, _called(group, i), source).strip() + "\n")
    return "\n\n".join(parts)


def _called(group: Group, i: int) -> str:
    return f"{group.exercise}_unnamed_{i}"


def _answers(count: int) -> str:
    return "one answer" if count == 1 else f"{count} answers"
