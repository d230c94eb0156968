"""Answers that no declared mistake explains, written as the draft of one, to be completed.

Both files are in the form that a course reads: the Markdown goes to the end of ``EXERCISE.md``,
the Python to the end of ``EXERCISE.py``. They hold students' code. Nothing here runs it, and
``rlcourse prove`` will: read it first.
"""

import re
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained, write_text
from rlcourse.grading.judging.finding import UNNAMED
from rlcourse.words import counted

WORDS = """
**TODO: what {answers} did, {i}**
`{called}`
TODO: say in one sentence why it is wrong.
"""


def write(summary: dict, directory: Path) -> list[Path]:
    """Write two files for every exercise with unnamed answers; the paths of those written.

    Raises:
        UserError: a file of that name is there already, or nobody's answer is without a name.
    """
    texts: dict[Path, str] = {}
    for exercise in summary["exercises"]:
        name, words = exercise["exercise"], ""
        code = "# Written by students: read it before anything runs it.\n"
        unnamed = [mistake for mistake in exercise["mistakes"] if mistake["kind"] == UNNAMED]
        for i, mistake in enumerate(unnamed, 1):
            called = f"{name}_unnamed_{i}"
            answers = counted(mistake["answers"], "answer")
            words += WORDS.format(answers=answers, i=i, called=called)
            source = mistake["codes"][0]["code"] if mistake["codes"] else f"def {name}(): ..."
            code += "\n\n" + re.sub(rf"\b{name}\b", called, source).strip() + "\n"
        if words:
            place = directory / summary["lesson"] / name
            texts |= {place.with_suffix(".md"): words, place.with_suffix(".py"): code}
    if not texts:
        raise UserError("every wrong answer has a name: there is nothing to draft")
    if existing := [path for path in texts if path.exists()]:
        raise UserError(f"{existing[0]} exists: choose another --draft, or remove it")
    for path, text in texts.items():
        with write_errors_explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return list(texts)
