"""A bank of quiz questions: one Markdown file for each lesson, ``teaching/quiz/NN_topic.md``.

    ## A token's weight

    How much does a token of a completion of 10 tokens weigh, against one of 20?

    - [x] twice as much
    - [ ] the same
      > A mean over all tokens would do that.
    - [ ] half as much
      > The mean divides by the length.

    ## A group of four

    Two of four are right. What is the advantage of a right one?

    = 0.866 ± 0.001
    `group_normalized_advantages(tensor([1.0, 0, 0, 1]), 4)[0]`
    != 1
      > That is the population's standard deviation.

A question has either options, of which one is right, or a number with its tolerance, the code that
gives it, and wrong numbers that people find. What stands behind ``>`` is said to whoever answers
so. A test evaluates the code, with the functions of ``rlcourse.algorithms``.

Nothing but the subject may give the right option away. Write wrong options that are mistakes
students make, in as many words as the right one and with a reason where it has one, and put the
right one at any place. A test guesses by length, place and reason over the whole bank.
"""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from rlcourse.courses import LessonFolder
from rlcourse.errors import UserError

QUESTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"- \[([ x])\] (.+)")
NUMBER = re.compile(r"= (-?[\d.]+) ± ([\d.]+)")
WRONG = re.compile(r"!= (-?[\d.]+)")


@dataclass
class Option:
    """One answer that may be chosen, or a wrong number; ``feedback`` is said to who gives it."""

    text: str
    right: bool = False
    feedback: str = ""


@dataclass
class Quiz:
    """One question. ``number`` is (value, tolerance) where a number is asked for."""

    title: str
    stem: str
    options: list[Option] = field(default_factory=list)
    number: tuple[float, float] | None = None
    code: str = ""


def path_of(lesson: LessonFolder) -> Path:
    """Where the questions of a lesson are."""
    return lesson.home / "teaching" / "quiz" / f"{lesson.name}.md"


def bank(lesson: LessonFolder) -> list[Quiz]:
    """The questions of a lesson; none if it has no file.

    Raises:
        UserError: a question is incomplete; the message names file and question.
    """
    path = path_of(lesson)
    if not path.is_file():
        return []
    found = QUESTION.findall(path.read_text("utf-8"))
    return [_read(path, title.strip(), body) for title, body in found]


def _read(path: Path, title: str, body: str) -> Quiz:
    quiz, stem = Quiz(title, ""), []
    for line in body.splitlines():
        text = line.strip()
        if option := OPTION.fullmatch(text):
            quiz.options.append(Option(option[2], option[1] == "x"))
        elif number := NUMBER.fullmatch(text):
            quiz.number = float(number[1]), float(number[2])
        elif wrong := WRONG.fullmatch(text):
            quiz.options.append(Option(wrong[1]))
        elif text.startswith("> ") and quiz.options:
            quiz.options[-1].feedback = f"{quiz.options[-1].feedback} {text[2:]}".strip()
        elif quiz.number and text.startswith("`"):
            quiz.code = text.strip("`")
        else:
            stem.append(line)
    quiz.stem = "\n".join(stem).strip()
    if lacking := _lacking(quiz):
        raise UserError(f"{path}: the question '{title}' {lacking}")
    return quiz


def _lacking(quiz: Quiz) -> str:
    if not quiz.stem:
        return "has no text"
    wrong = [option for option in quiz.options if not option.right]
    if any(not option.feedback for option in wrong):
        return "has a wrong answer without a line '> …' that says why it is wrong"
    if quiz.number:
        value, tolerance = quiz.number
        near = [o for o in wrong if math.isclose(float(o.text), value, abs_tol=tolerance)]
        if near:
            return f"calls {near[0].text} wrong, which is within the tolerance"
        return "" if quiz.code else "has a number, but no line `code` that gives it"
    if sum(option.right for option in quiz.options) != 1 or len(wrong) < 2:
        return "needs one right option, [x], and two wrong ones or more"
    return ""
