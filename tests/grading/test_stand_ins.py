"""Tests that students wrote are graded on implementations that they can call and not see.

One small lesson with a function and its tests, graded once for a class of attackers.
"""

import json

import nbformat
import pytest
from classroom import cell_of, solution
from small_courses import write_course

from rlcourse.authoring.builder import build
from rlcourse.grading.engine import Options, grade
from rlcourse.grading.running.limits import Limits

pytestmark = pytest.mark.slow
LESSON = "09_dpo"
NAMES = ("implicit_rewards", "dpo_loss", "test_dpo_loss")
TEXT = """# A lesson

```python
import torch
import torch.nn.functional as F
from torch import Tensor

from rlcourse import check
```

```python exercise="implicit_rewards"
```

```python exercise="dpo_loss"
```

```python exercise="test_dpo_loss"
```
"""

# What is handed in for each function in place of the solution.
SUBMISSIONS = {
    "honest": {},
    "tests-alone": {"dpo_loss": "def dpo_loss(*a, **k): raise RuntimeError"},
    "reads-the-source": {
        "test_dpo_loss": """
import gc, inspect, sys

def test_dpo_loss(dpo_loss):
    seen = [str(vars(dpo_loss)), str(dir(dpo_loss))]
    for look in (inspect.getsource, lambda f: f.__code__.co_names, lambda f: f.__closure__):
        try:
            seen.append(str(look(dpo_loss)))
        except Exception:
            pass
    seen += [str(vars(o)) for o in gc.get_objects() if type(o).__name__ == "StandIn"]
    seen += [n for n in sys.modules if "09_dpo" in n or n.endswith("checks.judging.testing")]
    assert "logsigmoid" in str(seen) or "_mistakes" in str(seen)
"""
    },
    "goes-by-what-is-no-behavior": {
        "test_dpo_loss": """
import time
calls = []

def test_dpo_loss(dpo_loss):
    calls.append(id(dpo_loss))
    start = time.perf_counter()
    dpo_loss(*torch.zeros(4, 1))
    wrong = hash(dpo_loss) + len(calls) + int(1e6 * (time.perf_counter() - start))
    assert wrong % 2
"""
    },
    "goes-by-the-majority": {
        "test_dpo_loss": """
import collections, gc, os
seen = []

def test_dpo_loss(dpo_loss):
    numbers = torch.linspace(-1, 1, 12).double().sin().view(4, 3)
    others = [o for o in gc.get_objects() if type(o).__name__ == "StandIn" and o is not dpo_loss]
    for one in (*others, dpo_loss):
        said = str(one(*numbers, 0.3))
        seen.append(said)
        for path in ("seen.txt", "/tmp/seen.txt", os.path.expanduser("~/seen.txt")):
            try:
                with open(path, "a") as file:
                    file.write(said + "\\n")
                with open(path) as file:
                    seen.extend(file.read().splitlines())
            except OSError:
                pass
    assert said == collections.Counter(seen).most_common(1)[0][0]
"""
    },
    "tells-what-it-saw": {
        "test_dpo_loss": """
def test_dpo_loss(dpo_loss):
    found = "LE" + "AK" + str(dpo_loss(*torch.zeros(4, 1), 0.3))
    print(found)
    raise type(found, (AssertionError,), {})(found)
"""
    },
    "dies-with-a-number": {
        "test_dpo_loss": """
import os

def test_dpo_loss(dpo_loss):
    os._exit(77)
"""
    },
    "keeps-a-right-one": {
        "dpo_loss": """
kept = []

def dpo_loss(*args, **kwargs):
    return kept[0](*args, **kwargs)
""",
        "test_dpo_loss": """
def test_dpo_loss(dpo_loss):
    kept.append(dpo_loss)
""",
    },
    "asks-while-it-answers": {
        "dpo_loss": """
def dpo_loss(**arguments):
    from rlcourse.checks.asking import stand_in
    return stand_in._ask[0](1, arguments, (), None)["value"]
"""
    },
    "asks-without-end": {
        "test_dpo_loss": """
def test_dpo_loss(dpo_loss):
    while True:
        try:
            dpo_loss(*torch.zeros(4, 1))
        except Exception:
            pass
"""
    },
    "asks-for-too-much": {
        "test_dpo_loss": """
def test_dpo_loss(dpo_loss):
    dpo_loss(*(torch.zeros(shape) for shape in ((1000, 1, 1), (1000, 1), (1000,), (1000, 1, 1))))
"""
    },
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    root = tmp_path_factory.mktemp("class")
    course = write_course(root / "course", {LESSON: TEXT})
    build(root=root, progress=False)
    blank = root / "notebooks" / LESSON / f"{LESSON}.ipynb"
    for student, answers in SUBMISSIONS.items():
        notebook = nbformat.read(blank, as_version=4)
        for name in NAMES:
            cell_of(notebook, name).source = answers.get(name, solution(name))
        path = course / "submitted" / student / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook))
    # Twenty processes a submission: on a busy machine they take long on the clock.
    options = Options(limits=Limits(step=1, submission=60, patience=20, look=0.5), jobs=2)
    return {row.student: row for row in grade(LESSON, course=course, options=options).rows}


def points(row) -> tuple[float, ...]:
    """What each function earned, as a share."""
    return tuple(row.exercises[n]["points"] / row.exercises[n]["possible"] for n in NAMES)


def test_good_tests_earn_all_points_whatever_the_function_itself_earns(rows):
    assert points(rows["honest"]) == (1, 1, 1) and rows["honest"].status == "graded"
    assert points(rows["tests-alone"]) == (1, 0, 1)


def test_there_is_no_source_to_read(rows):
    assert points(rows["reads-the-source"]) == (1, 1, 0)


def test_identity_order_and_time_say_nothing(rows):
    first, second, guessed = points(rows["goes-by-what-is-no-behavior"])
    assert first == second == 1
    assert guessed < 0.75  # of 14 coins, each share would have to be well above a half


def test_who_knows_nothing_and_goes_by_the_majority_earns_nothing(rows):
    """Each implementation that counts is met alone, by a process that remembers no other."""
    assert points(rows["goes-by-the-majority"]) == (1, 1, 0)


def test_what_a_test_says_in_its_own_words_is_not_quoted(rows):
    assert points(rows["tells-what-it-saw"]) == (1, 1, 0)
    assert "rejects" in str(rows["tells-what-it-saw"]) and "LEAK" not in str(rows)
    assert rows["dies-with-a-number"].status == "died" and "exit 77" not in str(rows)


@pytest.mark.parametrize("student", ["keeps-a-right-one", "asks-while-it-answers"])
def test_a_right_implementation_answers_no_other_exercise(rows, student):
    first, answered, _ = points(rows[student])
    assert (first, answered) == (1, 0)


@pytest.mark.parametrize("student", ["asks-without-end", "asks-for-too-much"])
def test_a_test_without_measure_costs_its_own_points_only(rows, student):
    assert points(rows[student]) == (1, 1, 0)
