"""Notes for who teaches: what a lesson asks at its end "to think about", with answers.

Answers are in ``course/teaching/NN_topic.md``, in the repository like ``solutions/`` and in no
wheel. Each stands under a heading that is how its question begins, so that a question that was
changed, moved or added in the lesson is noticed.
"""

import re
from collections.abc import Iterable

from rlcourse.courses import LessonFolder
from rlcourse.errors import UserError

ASKED = re.compile(r"^\*\*To think about\*\*.*?\n\n(.*?)(?=\n\n)", re.MULTILINE | re.DOTALL)
NUMBERED = re.compile(r"^\d+\. (.*?)(?=^\d+\. |\Z)", re.MULTILINE | re.DOTALL)
ANSWER = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def questions(lesson: LessonFolder) -> list[str]:
    """What the lesson asks to think about, each on one line."""
    found = ASKED.search(lesson.text.read_text("utf-8"))
    return [" ".join(text.split()) for text in NUMBERED.findall(found[1])] if found else []


def answers(lesson: LessonFolder) -> list[tuple[str, str]]:
    """The questions of the lesson with their answers.

    Raises:
        UserError: there are no answers, or not one for each question; the message names the file.
    """
    asked = questions(lesson)
    if not asked:
        return []
    path = lesson.home / "teaching" / f"{lesson.name}.md"
    if not path.is_file():
        raise UserError(
            f"there is no {path}: teaching notes are in the course's repository, and not in the "
            "package that students install; run this command in a clone, or write the file."
        )
    written = [(begins, text.strip()) for begins, text in ANSWER.findall(path.read_text("utf-8"))]
    for question, (begins, _) in zip(asked, written, strict=False):
        if not question.startswith(begins):
            raise UserError(
                f"{path}: the answer under '{begins}' stands where the lesson asks "
                f"'{question[:40]}…': let each heading be the first words of its question, in order"
            )
    if len(asked) != len(written):
        raise UserError(
            f"{path}: {len(written)} answers, but the lesson asks {len(asked)} questions"
        )
    return [(question, text) for question, (_, text) in zip(asked, written, strict=True)]


def teaching_notes(lessons: Iterable[LessonFolder]) -> str:
    """Questions and answers of these lessons as one page of Markdown."""
    parts = [
        "# Teaching notes",
        "Answers to what each lesson asks to think about. Not for students.",
    ]
    for lesson in lessons:
        for number, (question, answer) in enumerate(answers(lesson), start=1):
            parts += [f"## {lesson.heading}"] if number == 1 else []
            parts += [f"**{number}. {question}**", answer]
    return "\n\n".join(parts) + "\n"
