"""``results.json`` as Gradescope documents it, in the words that students see in their notebook.

Fields: https://gradescope-autograders.readthedocs.io/en/latest/specs/
"""

import json
from collections.abc import Iterator
from typing import Any

from rlcourse.grading.names import one_line
from rlcourse.grading.rejected import Rejected
from rlcourse.grading.running.steps import Incident

TEXT = {"output_format": "text", "visibility": "visible"}
BY_HAND = "A person grades this one"


def of_graded(found: dict, release: dict, settings: dict) -> dict:
    """The results of a submission that ran; `found` is what its reader said."""
    tests = [_test(mark) for mark in found["marks"].values()]
    cells = json.loads(found["notebook"])["cells"]
    tests += _questions(release, cells, settings["questions"])
    told = [one_line(str(Incident(**incident))) for incident in found["incidents"]]
    return _results(tests, [*told, *_points(settings)])


def of_rejected(rejected: Rejected, release: dict, settings: dict) -> dict:
    """The results of a submission that cannot be graded: no points, and the reason."""
    said = f"Not graded: {rejected.reason}."
    tests = [_scored(name, 0.0, possible, said) for name, possible in settings["exercises"].items()]
    return _results(tests, [said, "Hand in again once that is fixed."])


def _points(settings: dict) -> list[str]:
    """Who gives how many points, in lines."""
    by_program = sum(settings["exercises"].values())
    by_hand = sum(settings["questions"].values())
    lines = [f"{by_program:g} points are given by a program."]
    if by_hand:
        lines.append(f"{by_hand:g} more are given by a person, who reads your answers.")
    return lines


def _results(tests: list[dict], lines: list[str]) -> dict:
    return {
        "output": "\n".join(lines),
        "output_format": "text",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


def _test(mark: dict) -> dict:
    return _scored(mark["exercise"], mark["points"], mark["possible"], mark["message"])


def _scored(name: str, points: float, possible: float, said: str) -> dict:
    return {
        "name": name,
        "score": round(points, 4),
        "max_score": possible,
        "status": "passed" if points == possible else "failed",
        "output": said,
        **TEXT,
    }


def _questions(release: dict, cells: list[dict], points: dict[str, float]) -> Iterator[dict]:
    """The questions that a person grades: no score, and whether there is an answer."""
    released = {_grade_id(cell): _source(cell) for cell in release["cells"]}
    now = {_grade_id(cell): _source(cell) for cell in cells}
    for name, possible in points.items():
        answered = now.get(name, released[name]) != released[name]
        said = "your answer was handed in" if answered else "you left it as it was"
        yield {"name": name, "output": f"{BY_HAND}, {possible:g} points: {said}.", **TEXT}


def _grade_id(cell: dict) -> str | None:
    return cell["metadata"].get("nbgrader", {}).get("grade_id")


def _source(cell: dict) -> str:
    source: Any = cell["source"]
    return "".join(source) if isinstance(source, list) else source
