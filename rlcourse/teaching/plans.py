"""Plans of so many weeks: the course's lessons in order, what is done in class, in the lab and at
home, by the minutes that exercises declare."""

from collections.abc import Sequence

from rlcourse import exercises
from rlcourse.authoring.lesson import Lesson, read_lesson
from rlcourse.checks.exercise import Exercise
from rlcourse.courses import Course
from rlcourse.words import counted

LAB = 90  # minutes a week; exercises that do not fit are homework
READING = 180  # words a minute
SHORT = 5  # weeks or fewer are a short course


def minutes(lesson: Lesson) -> int:
    """Of a lesson: its exercises as they declare, and its prose at a reader's pace."""
    words = sum(len(c.source.split()) for c in lesson.cells if c.kind == "markdown")
    return round(sum(e.minutes for e in lesson.exercises.values()) + words / READING)


def split(costs: Sequence[int], weeks: int) -> list[int]:
    """How many of the lessons each week has, in order, so that the fullest week is least full."""
    best: dict[tuple[int, int], tuple[int, list[int]]] = {(0, 0): (0, [])}
    for week in range(1, weeks + 1):
        for end in range(len(costs) + 1):
            tried = [
                (max(best[week - 1, start][0], sum(costs[start:end])), start)
                for start in range(end + 1)
                if (week - 1, start) in best
            ]
            if tried:
                fullest, start = min(tried)
                best[week, end] = fullest, [*best[week - 1, start][1], end - start]
    return best[weeks, len(costs)][1]


def plan(course: Course, weeks: int) -> str:
    """A plan as Markdown. In a short course, the last lessons are named as optional
    where all of them would not fit into four hours a week."""
    lessons = [
        read_lesson(f.text, exercises.all(course, contests=True), course) for f in course.lessons
    ]
    taken, costs = list(lessons), [minutes(lesson) for lesson in lessons]
    while len(taken) > 1 and sum(costs[: len(taken)]) > weeks * (240 if weeks <= SHORT else 10**6):
        taken.pop()
    counts = split(costs[: len(taken)], weeks)
    lines, at = [f"# {course.title}: {weeks} weeks", ""], 0
    for week, count in enumerate(counts, start=1):
        chosen = taken[at : at + count]
        at += count
        if chosen:
            lines += [f"## Week {week}", "", *_week(chosen), ""]
    if optional := lessons[len(taken) :]:
        lines += ["## Optional, where there is time", ""]
        lines += [f"- {lesson.cells[0].source.partition(chr(10))[0][2:]}" for lesson in optional]
    return "\n".join(lines).rstrip() + "\n"


def _week(lessons: list[Lesson]) -> list[str]:
    lines, left = [], LAB
    for lesson in lessons:
        heading = lesson.cells[0].source.partition("\n")[0][2:]
        lab: list[Exercise] = []
        home: list[Exercise] = []
        for exercise in lesson.exercises.values():
            (lab if exercise.minutes <= left else home).append(exercise)
            left -= exercise.minutes if exercise in lab else 0
        said = {
            "In class": "the lesson's slides, with the question of each slide that asks one; "
            "the quiz of the week before",
            "In the lab": ", ".join(f"`{e.name}` ({e.minutes} min)" for e in lab),
            "At home": ", ".join(f"`{e.name}`" for e in home),
            "Graded by hand": ", ".join(
                f"`{c.name}` ({counted(c.points, 'point')})"
                for c in lesson.cells
                if c.kind == "question"
            ),
        }
        lines += [f"**{heading}**, about {minutes(lesson)} minutes", ""]
        lines += [f"- {what}: {text}." for what, text in said.items() if text] + [""]
    return lines
