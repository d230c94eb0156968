"""The report of a class for programs and spreadsheets."""

from rlcourse.grading.insight.summing import KINDS, Group, Insight, OfExercise
from rlcourse.grading.judging.finding import NAMED, RAISES, UNNAMED
from rlcourse.grading.names import one_line
from rlcourse.grading.table import Table

GROUPED = (NAMED, UNNAMED, RAISES, "syntax", "other")


def as_json(insight: Insight, names: bool = False) -> dict:
    """Everything on the page; students only with `names`."""
    recorded = insight.recorded
    found = {
        "lesson": recorded.lesson,
        "handed_in": insight.handed_in,
        "could_not_be_graded": len(recorded.unread),
        "nothing_recorded": len(recorded.unknown),
        "nothing_graded": len(insight.absent),
        "nothing_graded_in_any_lesson": len(insight.ungraded),
        "falling_behind": len(insight.behind),
        "five_minutes": [_group(group, names) for group in insight.worth_telling],
        "exercises": [_exercise(exercise, names) for exercise in insight.exercises],
        "questions": {
            name: {"answered": answered, "blank": blank}
            for name, (answered, blank) in recorded.questions.items()
        },
        "same_code": [
            {"exercise": same.exercise, "submissions": len(same.students), "code": same.code}
            | ({"students": list(same.students)} if names else {})
            for same in insight.same_code
        ],
    }
    if names:
        found["students"] = {
            "could_not_be_graded": recorded.unread,
            "nothing_recorded": list(recorded.unknown),
            "nothing_graded": insight.absent,
            "nothing_graded_in_any_lesson": insight.ungraded,
            "falling_behind": {behind.student: behind.why for behind in insight.behind},
        }
    return found


def _exercise(exercise: OfExercise, names: bool) -> dict:
    return {
        "exercise": exercise.name,
        "points_lost": round(exercise.cost, 4),
        "points_possible": exercise.possible,
        "counts": exercise.counts,
        "right_once_another_is": exercise.right_once,
        "uses_wrong": exercise.follows,
        "mistakes": [_group(g, names) for kind in GROUPED for g in exercise.groups(kind)],
    }


def _group(group: Group, names: bool) -> dict:
    example = group.example
    return {
        "exercise": group.exercise,
        "kind": group.kind,
        "name": group.name,
        "answers": group.count,
        "points_lost": round(group.cost, 4),
        "sentences": list(example.sentences),
        "case": [list(row) for row in example.case],
        "codes": [{"code": code, "answers": count} for code, count in group.codes],
    } | ({"students": [answer.student for answer in group.answers]} if names else {})


def as_table(insight: Insight, names: bool = False) -> Table:
    """A row for each mistake, and for each exercise one for what has no mistake to show."""
    header = ["exercise", "kind", "mistake", "answers", "points lost", "sentence"]
    rows = []
    for exercise in insight.exercises:
        groups = [group for kind in GROUPED for group in exercise.groups(kind)]
        for kind in [kind for kind in KINDS if kind not in GROUPED]:
            if count := exercise.counts.get(kind):
                rows.append([exercise.name, KINDS[kind], "", str(count), "", "", ""])
        for g in groups:
            said = one_line(" ".join(g.example.sentences))
            who = " ".join(a.student for a in g.answers)
            what = [KINDS[g.kind], g.name, str(g.count), f"{g.cost:g}", said]
            rows.append([exercise.name, *what, who])
    width = len(header) + names
    return Table([*header, "students"][:width], [row[:width] for row in rows])
