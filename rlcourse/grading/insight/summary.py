"""What a class made of a lesson: counts, groups of the same mistake, and what they cost.

All of it is one dictionary, which ``--json`` prints and the page shows. A wrong answer that uses
another wrong function is not counted as a mistake of its own: it may be right once that one is.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from rlcourse.grading.insight.graded_answers import Answer, Recorded
from rlcourse.grading.judging.finding import BLANK, NAMED, RAISES, RIGHT, SYNTAX, UNNAMED

WORTH = 3  # mistakes that five minutes of a lecture are enough for
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
MISTAKES = (NAMED, UNNAMED, RAISES, "syntax", "other")


def summarized(recorded: Recorded, names: bool = False) -> dict:
    """The report of a lesson; its exercises by what they cost the class. Students are in it only
    with `names`."""
    by_exercise = _grouped(recorded.answers, lambda answer: answer.exercise)
    exercises = [_exercise(name, some, names) for name, some in by_exercise.items()]
    exercises.sort(key=lambda exercise: -exercise["points_lost"])
    mistakes = [m for e in exercises for m in e["mistakes"] if m["kind"] in (NAMED, UNNAMED)]
    mistakes.sort(key=lambda mistake: (-mistake["points_lost"], -mistake["answers"]))
    people = {
        "could_not_be_graded": recorded.unread,
        "nothing_recorded": list(recorded.unknown),
        "nothing_graded": list(recorded.absent),
    }
    return {
        "lesson": recorded.lesson,
        "handed_in": len({answer.student for answer in recorded.answers}),
        **{what: len(who) for what, who in people.items()},
        "five_minutes": mistakes[:WORTH],
        "exercises": exercises,
        "questions": {
            name: {"answered": answered, "blank": blank}
            for name, (answered, blank) in recorded.questions.items()
        },
    } | ({"students": people} if names else {})


def _exercise(name: str, answers: list[Answer], names: bool) -> dict:
    by_kind = _grouped(answers, kind_of)
    return {
        "exercise": name,
        "points_lost": round(sum(a.possible - a.points for a in answers), 4),
        "points_possible": sum(a.possible for a in answers),
        "counts": {kind: len(by_kind[kind]) for kind in KINDS if kind in by_kind},
        "right_once_another_is": sum(bool(a.once) and a.state == RIGHT for a in answers),
        "uses_wrong": dict(Counter(b for a in by_kind.get("follows", ()) for b in a.because)),
        "mistakes": [
            _mistake(kind, some, i, names)
            for kind in MISTAKES
            for i, some in enumerate(_alike(by_kind.get(kind, ())), 1)
        ],
    }


def _alike(answers: Iterable[Answer]) -> list[list[Answer]]:
    """Those that made the same mistake, or are wrong alike on a case, together; the most first."""

    def said(a: Answer) -> str:
        told = {NAMED: a.mistake or "", UNNAMED: str(a.case)}
        return told.get(a.state, f"{a.state}: {''.join(a.sentences[:1])}")

    groups = _grouped(answers, said).values()
    return sorted(groups, key=lambda some: (-len(some), some[0].case))


def _mistake(kind: str, answers: list[Answer], i: int, names: bool) -> dict:
    # The example has the case that is the shortest to read
    shortest = min(answers, key=lambda a: (not a.case, sum(len(v) for _, v in a.case), a.text))
    written = Counter(answer.text for answer in answers if answer.text)
    told = {NAMED: shortest.mistake, UNNAMED: f"without a name, group {i}"}
    told[RAISES] = "raises an exception"
    return {
        "exercise": shortest.exercise,
        "kind": kind,
        "name": told.get(shortest.state, shortest.state),
        "answers": len(answers),
        "points_lost": round(sum(a.possible - a.points for a in answers), 4),
        "sentences": list(shortest.sentences),
        "heading": shortest.heading,
        "case": [list(row) for row in shortest.case],
        "codes": [
            {"code": code, "answers": count}
            for code, count in sorted(written.items(), key=lambda x: (-x[1], len(x[0]), x[0]))
        ],
    } | _who(answers, names)


def kind_of(answer: Answer) -> str:
    """One of ``KINDS``."""
    if answer.because and answer.state not in (RIGHT, BLANK, NAMED):
        return "follows"
    kind = "syntax" if answer.state == SYNTAX else answer.state
    return kind if kind in KINDS else "other"


def _who(answers: list[Answer], names: bool) -> dict[str, list[str]]:
    return {"students": [answer.student for answer in answers]} if names else {}


def _grouped(answers: Iterable[Answer], key: Callable[[Answer], Any]) -> dict[Any, list[Answer]]:
    found = defaultdict(list)
    for answer in answers:
        found[key(answer)].append(answer)
    return dict(found)
