"""Counts, tables and names of lessons that prose mentions: filled in, so that none can go stale.

In a lesson's text a place is ``{{ points }}``; in a README it is the text between two comments,
``<!-- points -->15 points<!-- /points -->``, which ``rlcourse build`` rewrites. Places are

    points              15 points, of the lesson's exercises
    functions           five functions and one test; Functions begins a sentence
    questions           one question for 2 points
    question_points     2 points
    lessons             a table of the course's other lessons, with links
    lesson_count, exercise_count, mistake_count, alternative_count      of the whole course
    links               in a README: where the course can be read, and opened without installing it

A colon and names restrict a place to these exercises, or questions: ``{{ points: gae whiten }}``,
``{{ question_points: applause }}``.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import jupytext

from rlcourse import published
from rlcourse.checks.exercise import Exercise
from rlcourse.courses import Course, LessonFolder
from rlcourse.errors import UserError
from rlcourse.words import counted

PLACE = re.compile(r"\{\{ (?P<name>\w+)(?:: (?P<only>[\w ]+?))? \}\}")
REGION = re.compile(r"(<!-- (?P<name>\w+) -->)(?P<text>.*?)(<!-- /(?P=name) -->)", re.DOTALL)
T = TypeVar("T")
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Unfilled(UserError):
    """A place that nothing fills."""


def in_words(number: int, thing: str) -> str:
    """ "five functions", "one test"."""
    words = WORDS[number] if number < len(WORDS) else str(number)
    return f"{words} {thing}{'' if number == 1 else 's'}"


class LessonFacts:
    """What can be filled in about a lesson: by name, a function of the exercises that are meant.

    ``questions`` maps names to points. What is said of them is a function of the points meant.
    """

    def __init__(self, exercises: Sequence[Exercise], questions: Mapping[str, float]):
        self.exercises, self.questions = {e.name: e for e in exercises}, questions
        self.of_exercises: dict[str, Callable[[list[Exercise]], str]] = {
            "points": lambda chosen: _total(e.points for e in chosen),
            "functions": self._functions,
            "Functions": lambda chosen: _capitalized(self._functions(chosen)),
        }
        self.of_questions: dict[str, Callable[[list[float]], str]] = {
            "questions": lambda points: f"{in_words(len(points), 'question')} for {_total(points)}",
            "question_points": _total,
        }

    def _functions(self, chosen: Sequence[Exercise]) -> str:
        tests = sum(exercise.suspects is not None for exercise in chosen)
        parts = [(len(chosen) - tests, "function"), (tests, "test")]
        return " and ".join(in_words(n, thing) for n, thing in parts if n) or "no functions"

    def fill(self, text: str, others: dict[str, Callable[[], str]]) -> str:
        """The text with its places filled in; `others` are those that are not about the lesson.

        Raises:
            Unfilled: there is no such place, or no such exercise; the message names it.
        """

        def filled(place: re.Match) -> str:
            name, only = place["name"], (place["only"] or "").split()
            if name in others and not only:
                return others[name]()
            if name in self.of_exercises:
                return self.of_exercises[name](_chosen(self.exercises, only, place[0], "exercise"))
            if name in self.of_questions:
                return self.of_questions[name](_chosen(self.questions, only, place[0], "question"))
            known = ", ".join(sorted({*self.of_exercises, *self.of_questions, *others}))
            raise Unfilled(f"nothing fills {place[0]}: use one of {known}.")

        return PLACE.sub(filled, text)


def course_facts(course: Course, exercises: Iterable[Exercise]) -> dict[str, Callable[[], str]]:
    """What can be filled in about the whole course, in a lesson's text."""
    known = list(exercises)
    return {
        "lessons": lambda: lesson_table(course),
        "lesson_count": lambda: str(len(course.lessons)),
        "exercise_count": lambda: str(len(known)),
        "mistake_count": lambda: str(sum(len(e.mistakes) for e in known)),
        "alternative_count": lambda: str(sum(len(e.alternatives) for e in known)),
    }


def lesson_table(course: Course) -> str:
    """All lessons but the first, with links from a notebook to its neighbors."""
    rows = ["| | lesson | what you will have written |", "|---|---|---|"]
    for lesson in course.lessons[1:]:
        about = about_lesson(lesson)
        link = f"[{about['name']}](../{lesson.name}/{lesson.name}.ipynb)"
        rows.append(f"| {lesson.number} | {link} | {about['write']} |")
    return "\n".join(rows)


def readme_table(course: Course) -> str:
    """All lessons, as a README lists them."""
    rows = ["| | lesson | you write | and see |", "|---|---|---|---|"]
    for lesson in course.lessons:
        about = about_lesson(lesson)
        rows.append(f"| {lesson.number} | {about['name']} | {about['write']} | {about['see']} |")
    return "\n" + "\n".join(rows) + "\n"


def links(course: Course) -> str:
    """What there is to look at before anything is installed: only what is there today."""
    first, site = course.lessons[0].name, published.site()
    if not site:
        return (
            "Read a lesson, solved and executed, in [solutions/](solutions/), or all of them as "
            "web pages,\nwith the report of a run: "
            "`make site`, then open `build/site/html/index.html`."
        )
    opened = published.launch_links(first)["Colab"]
    return (
        f"[Read it online]({site}) · [Open it in Colab]({opened}) · [See a report]({site}run.html)"
    )


def about_lesson(lesson: LessonFolder) -> dict[str, str]:
    """What a lesson's header says under ``about``: its short name, what you write and see."""
    about = jupytext.read(lesson.text).metadata.get("about", {})
    for key in ("name", "write", "see"):
        if not about.get(key):
            raise UserError(
                f"{lesson.text}:1: the header lacks about: {key}, for lists of lessons."
            )
    return about


def filled_pages(course: Course, exercises: Iterable[Exercise]) -> dict[Path, str]:
    """The texts that ``pages`` in course.toml names, with their regions filled in."""
    facts = course_facts(course, exercises)
    facts |= {"lessons": lambda: readme_table(course), "links": lambda: links(course)}
    found = {}
    for path in course.pages:
        text = path.read_text("utf-8")
        for region in REGION.finditer(text):
            if region["name"] not in facts:
                raise UserError(f"{path}: nothing fills <!-- {region['name']} -->.")
        found[path] = REGION.sub(lambda r: r[1] + facts[r["name"]]() + r[4], text)
    return found


def _chosen(things: Mapping[str, T], only: list[str], place: str, kind: str) -> list[T]:
    if missing := set(only) - set(things):
        raise Unfilled(f"{place}: no {kind} {', '.join(sorted(missing))} here.")
    return [thing for name, thing in things.items() if not only or name in only]


def _total(points: Iterable[float]) -> str:
    return counted(_sum(points), "point")


def _sum(numbers: Iterable[float]) -> float:
    return sum(map(float, numbers))


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
