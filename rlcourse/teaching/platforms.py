"""A lesson's quiz as text that learning platforms import.

``text2qti`` is the format of the program of that name, which makes a QTI package of it for Canvas
(``text2qti FILE``). ``gift`` is read by Moodle's *Question bank → Import → GIFT format*.
"""

import re
from textwrap import indent

from rlcourse.courses import LessonFolder
from rlcourse.errors import UserError
from rlcourse.teaching.html import for_moodle, html
from rlcourse.teaching.quiz import Quiz, bank, path_of


def _asked(lesson: LessonFolder) -> list[Quiz]:
    if found := bank(lesson):
        return found
    raise UserError(
        f"there are no quiz questions in {path_of(lesson)}; they are in the course's repository, "
        "and not in the package that students install"
    )


def text2qti(lesson: LessonFolder) -> str:
    """The questions of a lesson as Markdown for text2qti, which has formulas between dollars."""
    head = f"Quiz title: {lesson.heading}\nshuffle answers: true"
    questions = (_for_text2qti(i, quiz) for i, quiz in enumerate(_asked(lesson), start=1))
    return "\n\n".join([head, *questions]) + "\n"


def _for_text2qti(number: int, quiz: Quiz) -> str:
    lines = [f"Title: {_plain(quiz.title)}", _item(f"{number}.", quiz.stem)]
    if quiz.number:
        value, tolerance = quiz.number
        # it says nothing about single wrong numbers
        wrong = " ".join(f"{option.text}: {option.feedback}" for option in quiz.options)
        lines += [_item("-", wrong)] if wrong else []
        return "\n".join([*lines, f"= {value!r} +- {tolerance!r}"])
    for letter, option in zip("abcdefghij", quiz.options, strict=False):
        lines.append(_item(f"{'*' * option.right}{letter})", option.text))
        lines += [_item("...", option.feedback)] if option.feedback else []
    return "\n".join(lines)


def _item(mark: str, text: str) -> str:
    """What stands behind a mark; all further lines are indented alike."""
    return f"{mark:4}{indent(text, '    ').lstrip()}" if len(mark) < 4 else f"{mark} {text}"


def gift(lesson: LessonFolder) -> str:
    """The questions of a lesson in Moodle's GIFT format, in a category of the lesson's name."""
    category = f"$CATEGORY: $course$/top/{lesson.heading.replace('/', '//')}"
    return "\n\n".join([category, *map(_for_moodle, _asked(lesson))]) + "\n"


def _for_moodle(quiz: Quiz) -> str:
    answers = [f"={quiz.number[0]!r}:{quiz.number[1]!r}"] if quiz.number else []
    for option in quiz.options:
        said = f"#{_escaped(option.feedback)}" if option.feedback else ""
        if quiz.number:
            answers.append(f"=%0%{option.text}:{quiz.number[1]!r}{said}")
        else:
            answers.append(f"{'=' if option.right else '~'}{_escaped(option.text)}{said}")
    opening = "{#" if quiz.number else "{"
    name = re.sub(r"([~=#{}:\\])", r"\\\1", _plain(quiz.title))
    return "\n".join([f"::{name}::[html]{_escaped(quiz.stem)}{opening}", *answers, "}"])


def _escaped(markdown: str) -> str:
    """HTML in one paragraph of GIFT, in which these signs would mean something."""
    text = " ".join(html(markdown, for_moodle).split("\n"))
    return re.sub(r"([~=#{}:\\])", r"\\\1", text)


def _plain(markdown: str) -> str:
    """The words alone, for titles."""
    return re.sub(r"[*`$\\]", "", markdown)
