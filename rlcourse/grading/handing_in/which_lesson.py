"""Whose notebook was handed in: the lesson's, or by mistake that of another one."""

from collections import Counter
from collections.abc import Iterable, Mapping

from nbformat import NotebookNode

from rlcourse.courses import Course
from rlcourse.courses.course import QUESTION
from rlcourse.grading.handing_in.submission import Cells


def owners(*courses: Course) -> dict[str, str]:
    """The lesson that has it, by the id of every graded cell in the courses, and by its own name.

    Of cells with the same id, that of the first course counts.
    """
    found: dict[str, str] = {}
    for lesson in (lesson for course in reversed(courses) for lesson in course.lessons):
        found[lesson.name] = lesson.name
        for exercise in lesson.exercises:
            found |= {exercise: lesson.name, f"check_{exercise}": lesson.name}
        found |= dict.fromkeys(QUESTION.findall(lesson.text.read_text("utf-8")), lesson.name)
    found.pop("", None)  # code may hold a `question=""`
    return found


def other_lesson(release: NotebookNode, found: Cells, owners: Mapping[str, str]) -> str | None:
    """The other lesson whose notebook this is; None if it has a cell of the released lesson.

    What its metadata say counts only where no cell says anything: people copy notebooks.
    """
    own = {cell.metadata.get("nbgrader", {}).get("grade_id", "") for cell in release.cells} - {""}
    if _claimed(found) & own:
        return None
    return named_by_cells(found, owners) or _most(
        name for name in [owners.get(found.lesson, "")] if name != _lesson(release)
    )


def named_by_cells(found: Cells, owners: Mapping[str, str]) -> str | None:
    """The lesson that most of a notebook's graded cells are of; None if it has none."""
    return _most(owners[claim] for claim in _claimed(found) & owners.keys())


def _claimed(found: Cells) -> set[str]:
    return {claim for cell in found for claim in (cell.grade_id, cell.cell_id)}


def _most(names: Iterable[str]) -> str | None:
    counts = Counter(filter(None, names))
    return min(counts, key=lambda name: (-counts[name], name)) if counts else None


def _lesson(release: NotebookNode) -> str:
    return str(release.metadata.get("rlcourse", {}).get("lesson", ""))
