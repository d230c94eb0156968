"""A class in the order of what its trained policies can do, from what grading recorded.

Everybody was measured on the same held-out problems, so two students are compared problem by
problem, as ``rlcourse compare`` does. A place is a range: from one more than the number of those
who are better and told apart, to the last place that is not worse than anybody told apart.
"""

from dataclasses import dataclass
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.evaluation.comparing import difference
from rlcourse.evaluation.scores import Interval
from rlcourse.evaluation.tables import aligned
from rlcourse.grading.books.gradebook import Course, read_receipt
from rlcourse.grading.books.grades import read_grades
from rlcourse.grading.judging.secret import course_secret


@dataclass(frozen=True)
class Entry:
    """One student's policy. ``first`` to ``last`` are the places that it may have."""

    name: str
    accuracy: Interval  # sampled
    greedy: float
    completions: int
    first: int
    last: int

    @property
    def places(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"


@dataclass(frozen=True)
class Leaderboard:
    """``entries`` by accuracy. ``left_out`` handed in a trainer that left nothing to measure, or
    were graded on another variant, before the course's secret changed."""

    lesson: str
    entries: tuple[Entry, ...]
    floor: float
    start: float
    problems: int
    together: int  # pairs that cannot be told apart
    left_out: int = 0

    @property
    def remarks(self) -> list[str]:
        """What has to be known to read the table."""
        pairs = len(self.entries) * (len(self.entries) - 1) // 2
        said = [
            f"Accuracy of 4 sampled answers to each of {self.problems} held-out problems, with the "
            f"95 % interval. Before training it was {self.start:.2f}; at most {self.floor:.2f} can "
            "be had without training.",
            f"Pairs: {pairs}, of which {self.together} cannot be told apart. A range of places "
            "says so: within it, the order is an accident of these problems and one run. By "
            "chance, one pair in twenty of equals looks different.",
        ]
        if self.left_out:
            said.append(
                f"Not ranked: {self.left_out} whose trainer left nothing to measure, or who were "
                "graded on another variant; rlcourse grade --force measures them again."
            )
        return said

    def __str__(self) -> str:
        lines: list[tuple] = [("place", "who", "accuracy", "greedy", "completions")]
        for e in self.entries:
            lines.append((e.places, e.name, e.accuracy, f"{e.greedy:.3f}", f"{e.completions:,}"))
        return "\n".join([aligned(lines), *self.remarks])


def read(root: Path, lesson: str, names: bool = False) -> Leaderboard:
    """The leaderboard of a lesson from the course directory `root`; without `names`, students are
    letters.

    Raises:
        UserError: there is no such lesson, or nothing in it was measured.
    """
    opened = Course.of(root)
    name = opened.lesson(lesson)
    grades, secret = read_grades(root), course_secret(root)
    present = grades.students if name in grades.lessons else ()
    handed_in = [s for s in present if not grades.of(s, name).missing]
    found = {}
    for student in handed_in:
        receipt = read_receipt(opened.autograded(student, name), secret)
        marks = receipt["row"]["exercises"].values() if receipt else ()
        measured = next((m["measured"] for m in marks if m.get("measured")), None)
        if measured and measured["sampled"]:
            found[student] = measured
    if not found:
        raise UserError(
            f"grading has measured no trainer of {name}: a lesson with a contest is needed, and "
            f"`rlcourse grade {lesson}` first"
        )
    worlds = [m["world"] for m in found.values()]
    world = max(sorted(set(worlds)), key=worlds.count)
    same = {s: m for s, m in found.items() if m["world"] == world}
    shares = {s: [right / m["samples"] for right in m["sampled"]] for s, m in same.items()}
    places, together = rank(shares)
    entries = tuple(
        Entry(
            student if names else letters(i),
            Interval.of(shares[student]),
            sum(same[student]["greedy"]) / len(same[student]["greedy"]),
            same[student]["completions"],
            first,
            last,
        )
        for i, (student, first, last) in enumerate(places)
    )
    of_all = same[places[0][0]]
    facts = of_all["floor"], of_all["start"], len(of_all["sampled"])
    return Leaderboard(name, entries, *facts, together, len(handed_in) - len(same))


def rank(scores: dict[str, list[float]]) -> tuple[list[tuple[str, int, int]], int]:
    """(who, first place, last place) by mean score, and how many pairs cannot be told apart."""
    order = sorted(scores, key=lambda who: (-sum(scores[who]), who))
    above, below, together = dict.fromkeys(order, 0), dict.fromkeys(order, 0), 0
    for i, better in enumerate(order):
        for worse in order[i + 1 :]:
            if difference("sampled", scores[worse], scores[better]).told_apart:
                above[worse] += 1
                below[better] += 1
            else:
                together += 1
    return [(who, 1 + above[who], len(order) - below[who]) for who in order], together


def letters(i: int) -> str:
    """A, B, … Z, AA, AB, …"""
    return (letters(i // 26 - 1) if i >= 26 else "") + chr(65 + i % 26)
