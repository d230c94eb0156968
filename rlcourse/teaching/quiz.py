"""A lesson's quiz questions, ``teaching/quiz/NN_topic.md``, and the texts that platforms import.

    ## A token's weight

    How much does a token of a completion of 10 tokens weigh, against one of 20?

    - [x] twice as much
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
so. Tests evaluate the code, and guess at right options by their length, place and reason.
"""

import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from textwrap import indent

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from rlcourse.courses import LessonFolder
from rlcourse.errors import UserError

QUESTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(- \[[ x]\]|!=) (.+)")
NUMBER = re.compile(r"= (-?[\d.]+) ± ([\d.]+)")
GIFT_SIGNS = re.compile(r"([~=#{}:\\])")


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
    stem: str = ""
    options: list[Option] = field(default_factory=list)
    number: tuple[float, float] | None = None
    code: str = ""


def bank(lesson: LessonFolder) -> list[Quiz]:
    """The questions of a lesson.

    Raises:
        UserError: it has none, or one is incomplete; the message names file and question.
    """
    path = lesson.home / "teaching" / "quiz" / f"{lesson.name}.md"
    if not path.is_file():
        raise UserError(
            f"there are no quiz questions in {path}; they are in the course's repository, and not "
            "in the package that students install"
        )
    return [_read(path, title.strip(), body) for title, body in QUESTION.findall(path.read_text())]


def _read(path: Path, title: str, body: str) -> Quiz:
    quiz = Quiz(title)
    for line in body.splitlines(keepends=True):
        text = line.strip()
        if option := OPTION.fullmatch(text):
            quiz.options.append(Option(option[2], "x" in option[1]))
        elif number := NUMBER.fullmatch(text):
            quiz.number = float(number[1]), float(number[2])
        elif text.startswith("> ") and quiz.options:
            quiz.options[-1].feedback = f"{quiz.options[-1].feedback} {text[2:]}".strip()
        elif quiz.number and text.startswith("`"):
            quiz.code = text.strip("`")
        else:
            quiz.stem += line
    quiz.stem = quiz.stem.strip()
    right = 1 if quiz.code else sum(option.right for option in quiz.options)
    if not quiz.stem or right != 1 or any(not o.right and not o.feedback for o in quiz.options):
        raise UserError(
            f"{path}: the question '{title}' needs a text, one right option, [x], or a number with "
            "its `code`, and for each wrong answer a line '> …' that says why it is wrong"
        )
    return quiz


def text2qti(lesson: LessonFolder) -> str:
    """Markdown of which the program text2qti makes a QTI package for Canvas."""
    parts = [f"Quiz title: {lesson.heading}\nshuffle answers: true"]
    for i, quiz in enumerate(bank(lesson), start=1):
        lines = [f"Title: {_plain(quiz.title)}", _item(f"{i}.", quiz.stem)]
        if quiz.number:  # it says nothing about single wrong numbers
            wrong = " ".join(f"{option.text}: {option.feedback}" for option in quiz.options)
            lines += [_item("-", wrong)] if wrong else []
            lines.append(f"= {quiz.number[0]!r} +- {quiz.number[1]!r}")
        else:
            for letter, option in zip("abcdefghij", quiz.options, strict=False):
                lines.append(_item(f"{'*' * option.right}{letter})", option.text))
                lines += [_item("...", option.feedback)] if option.feedback else []
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _item(mark: str, text: str) -> str:
    """What stands behind a mark; all further lines are indented alike."""
    return f"{mark:4}{indent(text, '    ').lstrip()}"


def gift(lesson: LessonFolder) -> str:
    """What Moodle's *Question bank → Import → GIFT format* reads, in a category of its own."""
    parts = [f"$CATEGORY: $course$/top/{lesson.heading.replace('/', '//')}"]
    for quiz in bank(lesson):
        answers = [f"={quiz.number[0]!r}:{quiz.number[1]!r}"] if quiz.number else []
        for option in quiz.options:
            said = f"#{_escaped(option.feedback)}" if option.feedback else ""
            if quiz.number:
                answers.append(f"=%0%{option.text}:{quiz.number[1]!r}{said}")
            else:
                answers.append(f"{'=' if option.right else '~'}{_escaped(option.text)}{said}")
        title = GIFT_SIGNS.sub(r"\\\1", _plain(quiz.title))
        head = f"::{title}::[html]{_escaped(quiz.stem)}{'{#' if quiz.number else '{'}"
        parts.append("\n".join([head, *answers, "}"]))
    return "\n\n".join(parts) + "\n"


def _escaped(markdown: str) -> str:
    """HTML in one paragraph of GIFT, in which these signs would mean something."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    dollarmath_plugin(parser, allow_labels=False, double_inline=True, renderer=_for_mathjax)
    html = " ".join(parser.render(markdown).strip().split("\n"))
    return GIFT_SIGNS.sub(r"\\\1", html)


def _for_mathjax(tex: str, options: dict) -> str:
    """As Moodle's MathJax filter reads it."""
    return f"\\[{escape(tex)}\\]" if options["display_mode"] else f"\\({escape(tex)}\\)"


def _plain(markdown: str) -> str:
    """The words alone, for titles."""
    return re.sub(r"[*`$\\]", "", markdown)
