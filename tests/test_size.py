"""How large the house may be: a budget of lines for each room, and one of commands.

A room over its budget has to take something out first. A number goes up only in a commit that says
what the lines are worth and what else was tried.
"""

from functools import cache
from pathlib import Path

import pytest
from test_architecture import ROOT, tracked_files

# Lines of Python that each room may have, as ruff formats them.
BUDGETS = {
    "course": 30,
    "course/hub": 98,
    "course/lessons": 8753,
    "course/site": 1207,
    "rlcourse": 1248,
    "rlcourse/algorithms": 1801,
    "rlcourse/authoring": 1664,
    "rlcourse/checks": 6494,
    "rlcourse/courses": 1173,
    "rlcourse/evaluation": 1544,
    "rlcourse/grading": 8716,
    "rlcourse/lab": 323,
    "rlcourse/planning": 900,
    "rlcourse/policy": 2607,
    "rlcourse/reports": 1211,
    "rlcourse/student": 599,
    "rlcourse/tasks": 1894,
    "rlcourse/teaching": 320,
    "rlcourse/training": 5321,
    "rlcourse/trl_engine": 1096,
    "tests": 2551,
    "tests/algorithms": 2270,
    "tests/authoring": 1170,
    "tests/benchmarks": 865,
    "tests/browser": 530,
    "tests/courses": 340,
    "tests/evaluation": 850,
    "tests/exercises": 3120,
    "tests/gpu": 750,
    "tests/grading": 8720,
    "tests/hub": 570,
    "tests/lab": 330,
    "tests/lessons": 2308,
    "tests/packaging": 720,
    "tests/planning": 650,
    "tests/policy": 1363,
    "tests/reports": 640,
    "tests/site": 1250,
    "tests/tasks": 787,
    "tests/teaching": 250,
    "tests/training": 3881,
    "tests/trl_engine": 890,
}
GRADING = ("rlcourse/grading", "rlcourse/checks")
COMMANDS = 24  # that `rlcourse --help` lists
# What all of it may have: whoever gives one room more has to take it from another.
HOUSE = {
    "rlcourse and course": 47_000,
    "rlcourse": 37_000,
    "rlcourse without grading and checks": 22_000,  # what a student, trainer and author meet
    "tests": 36_000,
}


def room_of(path: Path) -> str:
    """ "rlcourse/tasks" for a file in it; "rlcourse" for a module beside the folders."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[: 2 if len(parts) > 2 else 1])


@cache
def lines_of_rooms() -> dict[str, int]:
    found: dict[str, int] = {}
    for path in tracked_files():
        room = room_of(path)
        if path.suffix == ".py" and room.split("/")[0] in ("rlcourse", "course", "tests"):
            found[room] = found.get(room, 0) + path.read_text("utf-8").count("\n")
    return found


def test_every_room_has_a_budget():
    assert set(lines_of_rooms()) == set(BUDGETS), "add the new room's, and take it from another's"


@pytest.mark.parametrize("room", BUDGETS)
def test_a_room_keeps_to_its_budget(room):
    lines, budget = lines_of_rooms()[room], BUDGETS[room]
    assert lines <= budget, (
        f"{room} has {lines} lines of Python, and its budget is {budget}: take something out first"
    )


def test_the_budgets_add_up_to_no_more_than_the_house():
    def total(*parts, without=()):
        rooms = (room for room in BUDGETS if room.split("/")[0] in parts and room not in without)
        return sum(BUDGETS[room] for room in rooms)

    sums = {
        "rlcourse and course": total("rlcourse", "course"),
        "rlcourse": total("rlcourse"),
        "rlcourse without grading and checks": total("rlcourse", without=GRADING),
        "tests": total("tests"),
    }
    over = [f"{what}: {sums[what]} of {most}" for what, most in HOUSE.items() if sums[what] > most]
    assert not over, (
        f"too much for the house ({'; '.join(over)}): lower other rooms, or raise HOUSE"
    )


def test_there_are_no_more_commands_than_the_budget():
    from rlcourse.cli import GROUPS

    commands = [command for group in GROUPS.values() for command in group]
    assert len(commands) <= COMMANDS, (
        f"{len(commands)} commands, and the budget is {COMMANDS}: fold one into another first"
    )
