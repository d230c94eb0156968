"""The grades of a course as its gradebook holds them, points given by hand included."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from rlcourse.errors import UserError
from rlcourse.grading.gradebook import Course, put_alembic_on_path


@dataclass(frozen=True)
class Student:
    """Somebody of the class. ``id`` is the name of their directory under ``submitted/``."""

    id: str
    last_name: str = ""
    first_name: str = ""
    email: str = ""

    @property
    def name(self) -> str:
        """First name, then last; the id where neither is known."""
        return " ".join(filter(None, [self.first_name, self.last_name])) or self.id


@dataclass(frozen=True)
class LessonGrade:
    """One student's grade for one lesson, in points."""

    lesson: str
    possible: float
    earned: float = 0.0  # before a penalty for being late
    penalty: float = 0.0
    handed_in: str = ""  # when, in UTC; "" where no time is known
    late: bool = False
    waiting: bool = False  # a person has something to grade, or to look at, still
    missing: bool = False  # nothing was handed in
    parts: tuple[tuple[str, float, float], ...] = ()  # (exercise or question, earned, possible)

    @property
    def points(self) -> float:
        """What counts: earned less the penalty, never below 0."""
        return max(0.0, self.earned - self.penalty)

    def sentence(self) -> str:
        """The grade in words, for a student to read."""
        found = [f"{self.points:g} of {self.possible:g} points"]
        if self.penalty:
            found.append(f"late, {self.penalty:g} taken off")
        found += [f"{name} {earned:g}/{possible:g}" for name, earned, possible in self.parts]
        return "; ".join(found)


@dataclass(frozen=True)
class ClassGrades:
    """All students by id, all lessons in order, and the grade of each student in each lesson."""

    students: dict[str, Student]
    lessons: tuple[str, ...]
    grades: dict[tuple[str, str], LessonGrade]  # by student and lesson

    def of(self, student: str, lesson: str) -> LessonGrade:
        return self.grades[student, lesson]

    def notes(self) -> list[str]:
        """What whoever passes these grades on should know: who is missing, who waits."""
        found = []
        for lesson in self.lessons:
            grades = {student: self.grades[student, lesson] for student in self.students}
            for what, names in (
                ("nothing handed in by", [s for s, g in grades.items() if g.missing]),
                ("points by hand still to come for", [s for s, g in grades.items() if g.waiting]),
            ):
                if names:
                    found.append(f"{lesson}: {what} {', '.join(names)}")
        return found


def read_grades(course: Path, lessons: Sequence[str] = ()) -> ClassGrades:
    """The grades in the gradebook of the course in `course`, of all lessons or of those named.

    Raises:
        UserError: there is no gradebook, or no such lesson in it.
    """
    opened = Course.open(course)
    url = opened.directory.db_url
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).is_file():
        raise UserError(f"{course} has no gradebook yet: grade a lesson first, `rlcourse grade 02`")
    put_alembic_on_path()
    with Gradebook(url, opened.directory.course_id) as gradebook:
        known = sorted(assignment.name for assignment in gradebook.assignments)
        chosen = tuple(_chosen(wanted, known) for wanted in lessons) or tuple(known)
        students = {
            s.id: Student(s.id, s.last_name or "", s.first_name or "", s.email or "")
            for s in sorted(gradebook.students, key=lambda s: s.id)
        }
        grades = {
            (student, lesson): _grade(gradebook, student, lesson)
            for student in students
            for lesson in chosen
        }
    return ClassGrades(students, chosen, grades)


def _chosen(wanted: str, known: list[str]) -> str:
    for name in known:
        if wanted in (name, *name.split("_", 1)):
            return name
    raise UserError(
        f"no lesson {wanted!r} is in the gradebook; it has {', '.join(known) or 'none'}"
    )


def _grade(gradebook: Gradebook, student: str, lesson: str) -> LessonGrade:
    possible = float(gradebook.find_assignment(lesson).max_score)
    try:
        found = gradebook.find_submission(lesson, student)
    except MissingEntry:
        return LessonGrade(lesson, possible, missing=True)
    grades = [grade for notebook in found.notebooks for grade in notebook.grades]
    return LessonGrade(
        lesson,
        possible,
        earned=float(found.score),
        penalty=float(found.late_submission_penalty or 0.0),
        handed_in=f"{found.timestamp:%Y-%m-%d %H:%M:%S}" if found.timestamp else "",
        late=found.total_seconds_late > 0,
        waiting=any(grade.needs_manual_grade for grade in grades),
        parts=tuple(
            (g.name.removeprefix("check_"), float(g.score), float(g.max_score)) for g in grades
        ),
    )
