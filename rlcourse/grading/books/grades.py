"""The grades of a course as its gradebook holds them, points given by hand included."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.coursedir import CourseDirectory

from rlcourse.courses import current
from rlcourse.courses.course import chosen as lesson_of
from rlcourse.errors import UserError
from rlcourse.grading.books.due import enter_due_dates
from rlcourse.grading.books.extensions import enter_extensions
from rlcourse.grading.books.gradebook import Course
from rlcourse.grading.books.late import Late
from rlcourse.grading.books.opening import file_of, is_absent, open_gradebook
from rlcourse.grading.books.people import Student, students_in
from rlcourse.grading.names import one_line, shown
from rlcourse.words import amount, points_of

LONGEST_REMARK = 2000  # characters


@dataclass(frozen=True)
class LessonGrade:
    """One student's grade for one lesson, in points."""

    lesson: str
    possible: float
    earned: float = 0.0  # before a penalty for being late
    penalty: float = 0.0
    handed_in: str = ""  # when, in UTC; "" if the time is unknown
    late: bool = False
    asks: bool = False  # for a person's points for a written answer
    review: bool = False  # for a look at what has points already
    missing: bool = False  # no submission in the gradebook: whether one was handed in is not known
    parts: tuple[tuple[str, float, float], ...] = ()  # (exercise or question, earned, possible)
    remarks: tuple[tuple[str, str], ...] = ()  # (exercise or question, a person's comment)

    @property
    def waiting(self) -> bool:
        """Whether a person still has something to grade or to look at."""
        return self.asks or self.review

    @property
    def points(self) -> float:
        """What counts: earned less the penalty, never below 0."""
        return max(0.0, self.earned - self.penalty)

    def sentence(self) -> str:
        """The grade in words, for a student to read."""
        found = [points_of(self.points, self.possible)]
        if self.penalty:
            found.append(f"late, {amount(self.penalty)} taken off")
        found += [f"{name} {amount(earned)}/{possible:g}" for name, earned, possible in self.parts]
        return "\n".join(["; ".join(found), *(f"{name}: {words}" for name, words in self.remarks)])


@dataclass(frozen=True)
class ClassGrades:
    """All students by id, all lessons in order, and the grade of each student in each lesson."""

    students: dict[str, Student]
    lessons: tuple[str, ...]
    grades: dict[tuple[str, str], LessonGrade]  # by student and lesson
    titles: Mapping[str, str] = field(default_factory=dict)  # of lessons, without their numbers

    def of(self, student: str, lesson: str) -> LessonGrade:
        return self.grades[student, lesson]

    def waiting(self, lesson: str) -> list[str]:
        """The students for whom a person still has something to grade or to look at in a lesson."""
        return [student for student in self.students if self.of(student, lesson).waiting]

    def notes(self) -> list[str]:
        """What to know before passing these grades on: who is missing or not fully graded."""
        found = []
        for lesson in self.lessons:
            grades = {student: self.grades[student, lesson] for student in self.students}
            for what, names in (
                ("nothing graded for", [s for s, g in grades.items() if g.missing]),
                ("answers still to be graded by hand:", [s for s, g in grades.items() if g.asks]),
                ("to review in Formgrader:", [s for s, g in grades.items() if g.review]),
            ):
                if names:
                    found.append(f"{lesson}: {what} {', '.join(map(shown, names))}")
        return found


def read_grades(course: Path, lessons: Sequence[str] = ()) -> ClassGrades:
    """The grades in the gradebook of the course in `course`, of all lessons or of those named.

    Extensions and late penalties are brought up to date there: points may have been given by hand
    since the submission was graded, which a penalty counts.

    Raises:
        UserError: there is no gradebook, or it has no such lesson.
    """
    opened = Course.open(course)
    if is_absent(opened.directory):
        raise UserError(
            f"{course} has no gradebook yet: grade a lesson first, as in `rlcourse grade 02`"
        )
    taught = current(course)
    with open_gradebook(opened.directory) as gradebook:
        enter_due_dates(gradebook, course)
        enter_extensions(gradebook, course)
        late = Late(opened.config)
        known = taught.in_order(assignment.name for assignment in gradebook.assignments)
        if not known and any(opened.step(opened.directory.autograded_directory).glob("*/*/*")):
            raise UserError(
                f"{file_of(opened.directory)} is empty, though submissions were graded: put the "
                "copy from your last backup in its place, or run `rlcourse grade` for each lesson, "
                "which enters what is in autograded/"
            )
        chosen = tuple(_chosen(wanted, known) for wanted in lessons) or tuple(known)
        students = {student.id: student for student in students_in(gradebook, course)}
        grades = {
            (student, lesson): _grade(gradebook, late, student, lesson)
            for student in students
            for lesson in chosen
        }
        gradebook.db.commit()
    titles = {lesson.name: lesson.title for lesson in taught.lessons if lesson.name in chosen}
    return ClassGrades(students, chosen, grades, titles)


def waiting_in(directory: CourseDirectory) -> list[str]:
    """The students for whom a person still has something to grade or to look at, in the lesson and
    of the students that an nbgrader command is for."""
    lesson, student = directory.assignment_id, directory.student_id
    with suppress(UserError):  # nothing was graded, which nbgrader says itself
        found = read_grades(Path(directory.root), [lesson]).waiting(lesson)
        return [s for s in found if student in ("*", s)]
    return []


def _untagged(text: str) -> str:
    """Words for a platform's page, which may take them for HTML."""
    return text.replace("<", "‹").replace(">", "›")


def _remarks(found: SubmittedAssignment) -> Iterator[tuple[str, str]]:
    """(exercise or question, comment) of what a person wrote in Formgrader."""
    for comment in (comment for notebook in found.notebooks for comment in notebook.comments):
        if words := " ".join((comment.manual_comment or "").split()):
            yield comment.name, one_line(_untagged(words), LONGEST_REMARK)


def _chosen(wanted: str, known: list[str]) -> str:
    if name := lesson_of(known, wanted):
        return name
    raise UserError(f"the gradebook has no lesson {wanted!r}; it has {', '.join(known) or 'none'}")


def _grade(gradebook: Gradebook, late: Late, student: str, lesson: str) -> LessonGrade:
    assignment = gradebook.find_assignment(lesson)
    possible = float(assignment.max_score)
    try:
        found = gradebook.find_submission(lesson, student)
    except MissingEntry:
        return LessonGrade(lesson, possible, missing=True)
    grades = [grade for notebook in found.notebooks for grade in notebook.grades]
    return LessonGrade(
        lesson,
        possible,
        earned=float(found.score),
        penalty=late.penalize(gradebook, student, found),
        handed_in=f"{found.timestamp:%Y-%m-%d %H:%M:%S}" if found.timestamp else "",
        late=found.total_seconds_late > 0,
        review=any(g.needs_manual_grade and g.auto_score is not None for g in grades),
        asks=any(g.needs_manual_grade and g.auto_score is None for g in grades),
        parts=tuple(
            (g.name.removeprefix("check_"), float(g.score), float(g.max_score)) for g in grades
        ),
        remarks=tuple(_remarks(found)),
    )
