"""What a class made of a lesson: counts, groups of the same mistake, what they cost, who is behind.

A wrong answer that uses another wrong function is not counted as a mistake of its own: it may be
right once that one is.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rlcourse.grading.books.grades import ClassGrades, LessonGrade
from rlcourse.grading.insight.recorded import Answer, Recorded
from rlcourse.grading.judging.finding import BLANK, IMPORTED, NAMED, RAISES, RIGHT, SYNTAX, UNNAMED
from rlcourse.words import points_of

WORTH = 3  # mistakes that five minutes of a lecture are enough for
LATELY = 2  # lessons by which one sees who falls behind
SHARE = 0.5  # of their points: who has less falls behind
FEWEST_LINES = 4  # of code that two students do not write alike by chance so easily
KINDS = {  # what is counted, in the order in which it is shown
    "right": "right",
    "named": "with a named mistake",
    "unnamed": "wrong, without a name",
    "raises": "raising an exception",
    "syntax": "with a syntax error",
    "follows": "using a wrong function",
    "blank": "blank",
    "other": "not judged",
}


@dataclass(frozen=True)
class Group:
    """Answers with one mistake, or with the same outputs."""

    exercise: str
    kind: str
    name: str
    answers: tuple[Answer, ...]

    @property
    def count(self) -> int:
        return len(self.answers)

    @property
    def cost(self) -> float:
        """Points that the class lost by it."""
        return sum(answer.lost for answer in self.answers)

    @property
    def example(self) -> Answer:
        """The answer whose case is the shortest to read."""
        return min(self.answers, key=lambda a: (not a.case, sum(len(v) for _, v in a.case), a.text))

    @property
    def codes(self) -> list[tuple[str, int]]:
        """The different ways in which it was written, and by how many; the most frequent first.

        Without comments, in which people write their names.
        """
        written = Counter(answer.text for answer in self.answers if answer.text)
        return sorted(written.items(), key=lambda item: (-item[1], len(item[0]), item[0]))


@dataclass(frozen=True)
class OfExercise:
    """What a class made of one exercise."""

    name: str
    answers: tuple[Answer, ...]

    @property
    def possible(self) -> float:
        return sum(answer.possible for answer in self.answers)

    @property
    def cost(self) -> float:
        return sum(answer.lost for answer in self.answers)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many answers of each of ``KINDS``; those that do not occur are left out."""
        found = Counter(kind_of(answer) for answer in self.answers)
        return {kind: found[kind] for kind in KINDS if found[kind]}

    @property
    def right_once(self) -> int:
        """Of the right ones, those that are right only with a right function below them."""
        return sum(bool(a.once) and a.state == RIGHT for a in self.answers)

    def groups(self, kind: str) -> list[Group]:
        """The answers of a kind, those that made the same mistake together; the largest first."""
        found: dict[str, list[Answer]] = defaultdict(list)
        for answer in self.answers:
            if kind_of(answer) == kind:
                found[_key(answer)].append(answer)
        ordered = sorted(found.values(), key=lambda some: (-len(some), some[0].outputs))
        return [
            Group(self.name, kind, _name(kind, some[0], i), tuple(some))
            for i, some in enumerate(ordered, 1)
        ]

    @property
    def follows(self) -> dict[str, int]:
        """{wrong function: how many answers use it and are wrong}."""
        return dict(Counter(b for a in self.answers if kind_of(a) == "follows" for b in a.because))


@dataclass(frozen=True)
class Same:
    """Submissions that have the same code in one exercise. What that means is for a person."""

    exercise: str
    code: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class Behind:
    """A student who falls behind, and by what."""

    student: str
    why: str


@dataclass(frozen=True)
class Insight:
    """A lesson's report."""

    recorded: Recorded

    @cached_property
    def exercises(self) -> list[OfExercise]:
        """What cost the class most first."""
        found: dict[str, list[Answer]] = defaultdict(list)
        for answer in self.recorded.answers:
            found[answer.exercise].append(answer)
        ordered = [OfExercise(name, tuple(some)) for name, some in found.items()]
        return sorted(ordered, key=lambda exercise: -exercise.cost)

    @property
    def handed_in(self) -> int:
        return len(self.recorded.students)

    @cached_property
    def worth_telling(self) -> list[Group]:
        """The mistakes that the next lecture should begin with, by what they cost."""
        wrong = [g for e in self.exercises for kind in (NAMED, UNNAMED) for g in e.groups(kind)]
        return sorted(wrong, key=lambda group: (-group.cost, -group.count))[:WORTH]

    @cached_property
    def same_code(self) -> list[Same]:
        """Code of several submissions, the longest first: short functions coincide by chance."""
        found: dict[tuple[str, str], list[Answer]] = defaultdict(list)
        for answer in self.recorded.answers:
            if answer.text.count("\n") + 1 >= FEWEST_LINES:
                found[answer.exercise, answer.text].append(answer)
        several = [some for some in found.values() if len(some) > 1]
        several.sort(key=lambda some: (-some[0].text.count("\n"), some[0].exercise))
        return [
            Same(some[0].exercise, some[0].text, tuple(a.student for a in some)) for some in several
        ]

    @cached_property
    def lessons(self) -> list[str]:
        """Those of which anything was graded, up to this one."""
        grades = self.recorded.grades
        if grades is None:
            return []
        done = [
            x for x in grades.lessons if any(not grades.of(s, x).missing for s in grades.students)
        ]
        return (
            done[: done.index(self.recorded.lesson) + 1] if self.recorded.lesson in done else done
        )

    @cached_property
    def absent(self) -> list[str]:
        """Who is in the gradebook without a submission of this lesson.

        It does not say why: nothing handed in, a file that was not collected, or excused.
        """
        grades = self.recorded.grades
        if grades is None or self.recorded.lesson not in grades.lessons:
            return []
        return [s for s in grades.students if grades.of(s, self.recorded.lesson).missing]

    @cached_property
    def ungraded(self) -> list[str]:
        """Who is in the gradebook without a single submission."""
        grades = self.recorded.grades
        if grades is None:
            return []
        return [s for s in grades.students if all(grades.of(s, x).missing for x in self.lessons)]

    @cached_property
    def behind(self) -> list[Behind]:
        """Of whom something was graded earlier, and of late nothing, or under half the points."""
        grades = self.recorded.grades
        if grades is None:
            return []
        found = ((s, _behind(grades, s, self.lessons)) for s in grades.students)
        return [Behind(s, why) for s, why in found if why and s not in self.ungraded]


def kind_of(answer: Answer) -> str:
    """One of ``KINDS``."""
    if answer.state in (RIGHT, BLANK):
        return answer.state
    if answer.because and answer.state != NAMED:
        return "follows"
    if answer.state == SYNTAX:
        return "syntax"
    return answer.state if answer.state in (NAMED, UNNAMED, RAISES) else "other"


def _key(answer: Answer) -> str:
    if answer.state == NAMED:
        return answer.mistake or ""
    if answer.state == UNNAMED:
        return answer.outputs
    return f"{answer.state}: {''.join(answer.sentences[:1])}"


def _name(kind: str, answer: Answer, i: int) -> str:
    if kind == NAMED:
        return answer.mistake or ""
    if kind == UNNAMED:
        return f"without a name, group {i}"
    names = {IMPORTED: "the library's own function", RAISES: "raises an exception"}
    return names.get(answer.state, answer.state)


def _behind(grades: ClassGrades, student: str, lessons: Sequence[str]) -> str:
    all_of_them = [grades.of(student, lesson) for lesson in lessons]
    first = next((i for i, grade in enumerate(all_of_them) if not grade.missing), 0)
    lately = all_of_them[first:][-LATELY:]  # who joined later did not miss what came before
    missing = [grade.lesson for grade in lately if grade.missing]
    if missing:
        return f"nothing graded for {', '.join(missing)}"
    low = [g for g in lately if not g.waiting and _share(g) < SHARE]
    few = [f"{points_of(g.points, g.possible)} in {g.lesson}" for g in low]
    return "; ".join(few) if len(low) == len(lately) else ""


def _share(grade: LessonGrade) -> float:
    return grade.points / grade.possible if grade.possible else 1.0
