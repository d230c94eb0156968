"""Counts, tables and names of lessons that prose mentions: filled in, so that none can go stale.

In a lesson's text a place is ``{{ points }}``:

    points              15 points, of the lesson's exercises
    functions           five functions and one test; Functions begins a sentence
    questions           one question for 2 points
    question_points     2 points
    lessons             a table of the course's other lessons, with links

A colon and names restrict a place to these exercises, or questions: ``{{ points: gae whiten }}``,
``{{ question_points: applause }}``.

In a README it is the text between two comments, ``<!-- lessons --><!-- /lessons -->``, which
``rlcourse build`` rewrites: ``lessons``, ``lesson_count``, ``exercise_count``, ``mistake_count``
and ``alternative_count``, all of the whole course.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import jupytext

from rlcourse.checks.exercise import Exercise
from rlcourse.courses import Course, LessonFolder
from rlcourse.errors import UserError
from rlcourse.words import counted

PLACE = re.compile(r"\{\{ (?P<name>\w+)(?:: (?P<only>[\w ]+?))? \}\}")
REGION = re.compile(r"(<!-- (?P<name>\w+) -->)(?P<text>.*?)(<!-- /(?P=name) -->)", re.DOTALL)
PLACES = ("points", "functions", "Functions", "questions", "question_points", "lessons")
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Unfilled(UserError):
    """A place that nothing fills."""


def in_words(number: int, thing: str) -> str:
    """ "five functions", "one test"."""
    words = WORDS[number] if number < len(WORDS) else str(number)
    return f"{words} {thing}{'' if number == 1 else 's'}"


def fill(
    text: str, exercises: Mapping[str, Exercise], questions: Mapping[str, float], course: Course
) -> str:
    """A lesson's text with its places filled in, from its exercises and its questions' points.

    Raises:
        Unfilled: there is no such place, or no such exercise; the message names it.
    """

    def filled(place: re.Match) -> str:
        name, only = place["name"], (place["only"] or "").split()
        if name not in PLACES:
            raise Unfilled(f"nothing fills {place[0]}: use one of {', '.join(PLACES)}.")
        if name == "lessons":
            return lesson_table(course)
        kind, known = ("question", questions) if "question" in name else ("exercise", exercises)
        if missing := set(only) - set(known):
            raise Unfilled(f"{place[0]}: no {kind} {', '.join(sorted(missing))} here.")
        chosen = [key for key in known if not only or key in only]
        if name.lower() == "functions":
            said = _functions([exercises[key] for key in chosen])
            return said[:1].upper() + said[1:] if name == "Functions" else said
        points = [questions[k] if kind == "question" else exercises[k].points for k in chosen]
        total = counted(sum(map(float, points)), "point")
        return f"{in_words(len(chosen), 'question')} for {total}" if name == "questions" else total

    return PLACE.sub(filled, text)


def _functions(chosen: list[Exercise]) -> str:
    tests = sum(exercise.suspects is not None for exercise in chosen)
    parts = [(len(chosen) - tests, "function"), (tests, "test")]
    return " and ".join(in_words(n, thing) for n, thing in parts if n) or "no functions"


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
    if not course.pages:
        return {}
    known = list(exercises)
    facts = {
        "lessons": readme_table(course),
        "lesson_count": len(course.lessons),
        "exercise_count": len(known),
        "mistake_count": sum(len(e.mistakes) for e in known),
        "alternative_count": sum(len(e.alternatives) for e in known),
    }
    found = {}
    for path in course.pages:
        text = path.read_text("utf-8")
        for region in REGION.finditer(text):
            if region["name"] not in facts:
                raise UserError(f"{path}: nothing fills <!-- {region['name']} -->.")
        found[path] = REGION.sub(lambda r: f"{r[1]}{facts[r['name']]}{r[4]}", text)
    return found
