"""A class in the order of what its trained policies can do, from what grading recorded.

Everybody was measured on the same held-out problems, so two students are compared problem by
problem, as ``rlcourse compare`` does. A place is a range: from one more than the number of those
who are better and told apart, to the last place that is not worse than anybody told apart.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.evaluation.comparing import difference
from rlcourse.evaluation.scores import Interval
from rlcourse.grading.books.gradebook import Course, read_receipt
from rlcourse.grading.books.grades import read_grades
from rlcourse.grading.judging.judge import course_secret


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

    def as_json(self) -> dict:
        a = self.accuracy
        return {
            "name": self.name,
            "places": [self.first, self.last],
            "accuracy": a.value,
            "interval": [a.low, a.high],
            "greedy": self.greedy,
            "completions": self.completions,
        }


@dataclass(frozen=True)
class Leaderboard:
    """``entries`` by accuracy. ``unmeasured`` handed in a trainer that left nothing to measure;
    ``elsewhere`` were graded on another variant, before the course's secret changed."""

    lesson: str
    entries: tuple[Entry, ...]
    floor: float
    start: float
    problems: int
    together: int  # pairs that cannot be told apart
    unmeasured: int = 0
    elsewhere: int = 0

    @property
    def pairs(self) -> int:
        return len(self.entries) * (len(self.entries) - 1) // 2

    @property
    def remarks(self) -> list[str]:
        """What has to be known to read the table."""
        said = [
            f"Accuracy of 4 sampled answers to each of {self.problems} held-out problems, with the "
            f"95 % interval. Before training it was {self.start:.2f}; {self.floor:.2f} can be had "
            "without training."
        ]
        if self.pairs:
            said.append(
                f"Pairs: {self.pairs}, of which {self.together} cannot be told apart. A range of "
                "places says so: within it, the order is an accident of these problems and one "
                "run. By chance, one pair in twenty of equals looks different."
            )
        if self.unmeasured:
            said.append(f"{self.unmeasured} handed in a trainer that left nothing to measure.")
        if self.elsewhere:
            said.append(
                f"{self.elsewhere} were graded on another variant: rlcourse grade --force "
                "measures them again."
            )
        return said

    def as_json(self) -> dict:
        return {
            "lesson": self.lesson,
            "problems": self.problems,
            "start": self.start,
            "floor": self.floor,
            "pairs": self.pairs,
            "pairs_not_told_apart": self.together,
            "unmeasured": self.unmeasured,
            "graded_on_another_variant": self.elsewhere,
            "entries": [entry.as_json() for entry in self.entries],
        }

    def __str__(self) -> str:
        width = max([len("who"), *(len(entry.name) for entry in self.entries)])
        lines = [f"{'place':>7}  {'who':{width}}  {'accuracy':22}  greedy  completions"]
        for e in self.entries:
            lines.append(
                f"{e.places:>7}  {e.name:{width}}  {e.accuracy!s:22}  {e.greedy:6.3f}"
                f"  {e.completions:11,}"
            )
        return "\n".join([*lines, *self.remarks])


def read(
    root: Path, lesson: str, names: bool = False, aliases: dict[str, str] | None = None
) -> Leaderboard:
    """The leaderboard of a lesson from the course directory `root`.

    Students are called by their alias or, with `names`, by their directory, or else by a letter.

    Raises:
        UserError: there is no such lesson, or nothing in it was measured.
    """
    opened = Course.of(root)
    name = opened.lesson(lesson)
    grades, secret = read_grades(root), course_secret(root)
    found, unmeasured = {}, 0
    handed_in = [
        s for s in grades.students if name in grades.lessons and not grades.of(s, name).missing
    ]
    for student in handed_in:
        receipt = read_receipt(opened.autograded(student, name), secret)
        marks = receipt["row"]["exercises"].values() if receipt else ()
        measured = next((m["measured"] for m in marks if m.get("measured")), None)
        if measured and measured["sampled"]:
            found[student] = measured
        else:
            unmeasured += 1
    if not found:
        raise UserError(
            f"grading has measured no trainer of {name}: a lesson with a contest is needed, and "
            f"`rlcourse grade {lesson}` first"
        )
    worlds = [m["world"] for m in found.values()]
    world = max(sorted(set(worlds)), key=worlds.count)
    same = {s: m for s, m in found.items() if m["world"] == world}
    called = aliases or {}
    if unknown := sorted(set(called) - set(grades.students)):
        raise UserError(f"--aliases: nobody in the gradebook is called {unknown[0]!r}")
    entries, together = rank({s: shares(m) for s, m in same.items()})
    listed = []
    for i, (student, first, last) in enumerate(entries):
        m = same[student]
        greedy = sum(m["greedy"]) / len(m["greedy"])
        who = called.get(student) or (student if names else letters(i))
        interval = Interval.of(shares(m))
        listed.append(Entry(who, interval, greedy, m["completions"], first, last))
    some = next(iter(same.values()))
    return Leaderboard(
        name,
        tuple(listed),
        some["floor"],
        some["start"],
        len(some["sampled"]),
        together,
        unmeasured,
        len(found) - len(same),
    )


def shares(measured: dict) -> list[float]:
    """The share of right samples of each problem."""
    return [right / measured["samples"] for right in measured["sampled"]]


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
    text = ""
    while i >= 0:
        i, text = i // 26 - 1, chr(65 + i % 26) + text
    return text


def read_aliases(path: Path) -> dict[str, str]:
    """A table of two columns, student and alias."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"--aliases: {path} cannot be read ({error})") from error
    if rows and [cell.strip().lower() for cell in rows[0]] == ["student", "alias"]:
        rows = rows[1:]
    if wrong := [row for row in rows if len(row) != 2 or not all(cell.strip() for cell in row)]:
        raise UserError(f"--aliases: {path} needs two columns, student and alias: {wrong[0]}")
    found = {student.strip(): alias.strip() for student, alias in rows}
    if len(set(found.values())) < len(rows):
        raise UserError(f"--aliases: in {path} a student or an alias appears twice")
    return found
