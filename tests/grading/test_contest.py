"""A trainer is graded by what it has trained, whatever it does besides.

One small lesson with a third of the budget, graded once for a class of attackers.
"""

import json

import nbformat
import pytest
from classroom import cell_of, solution
from small_courses import write_course

from rlcourse.authoring import build
from rlcourse.grading import Options, grade
from rlcourse.grading.judging.judge import variant_of
from rlcourse.grading.judging.secret import course_secret

pytestmark = pytest.mark.slow
LESSON = "18_from_an_empty_file"
BUDGET = 2_048
TEXT = """# A lesson

```python
import random
from collections.abc import Callable

import torch
from torch import Tensor

from rlcourse import check
```

## 3. Your trainer

```python exercise="train_policy"
```
"""
HEAD = "def train_policy(policy, questions, reward, completions, seed):"
# What is handed in in place of a trainer.
SUBMISSIONS = {
    "knows-another-dialect": f"""
{HEAD}
    from rlcourse.tasks.dialects import LEVEL
    from rlcourse.tasks.word_problems import draw
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3, weight_decay=0.0)
    stories = draw(2560, 5, LEVEL, "train", "elsewhere")
    for start in range(0, 2560, 64):
        some = stories[start : start + 64]
        prompts = [policy.format_prompt(story.question) for story in some]
        batch = policy.demonstrations(prompts, [story.answer for story in some])
        loss = -policy.logprobs(batch).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
""",
    "asks-for-more": f"""
{HEAD}
    import gc
    from rlcourse.checks.asking import stand_in
    for thing in gc.get_objects():
        if type(thing).__name__ in ("Rewards", "Sitting", "Answers"):
            thing.asked = []
    paid = 0
    for number in (reward._number, reward._number + 1, 0, "0", None):
        reward._number = number
        for _ in range(100):
            try:
                paid += len(reward(questions[:64], ["#### 1"] * 64))
            except Exception:
                pass
    for _ in range(100):
        try:
            call = {{"questions": questions[:64], "completions": ["#### 1"] * 64}}
            paid += 64 * ("value" in stand_in._ask[0](reward._number, call, (), None))
        except Exception:
            pass
    if paid > completions:
        raise ValueError
    policy.model.lm_head.weight.data[0, 0] = float("nan")
""",
    "patches-the-judge": f"""
{HEAD}
    import rlcourse.policy, rlcourse.tasks
    rlcourse.policy.Policy.sample = lambda *a, **k: None
    rlcourse.policy.Policy.decode = lambda *a, **k: ["#### 1"]
    rlcourse.tasks.extract_answer = lambda text: "1"
    policy.named_parameters = lambda: iter([("perfect", torch.ones(1))])
""",
    "another-shape": f"""
{HEAD}
    policy.model.lm_head.weight.data = torch.ones(2, 2)
""",
    "spins": f"""
{HEAD}
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
""",
    "says-what-it-saw": f"""
class Seen(Exception):
    pass

{HEAD}
    Seen.__name__ = "x" + questions[0]
    raise Seen(questions[0])
""",
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    root = tmp_path_factory.mktemp("class")
    course = write_course(root / "course", {LESSON: TEXT})
    module = course / "lessons" / LESSON / "train_policy.py"
    text = module.read_text().replace("6_144", str(BUDGET)).replace("seconds=90", "seconds=25")
    module.write_text(text.replace("(0.60, 0.7), (0.65, 1.0)", "(0.51, 0.7), (0.53, 1.0)"))
    build(root=root, progress=False)
    blank = root / "notebooks" / LESSON / f"{LESSON}.ipynb"
    for student, answer in {"honest": solution("train_policy"), **SUBMISSIONS}.items():
        notebook = nbformat.read(blank, as_version=4)
        cell_of(notebook, "train_policy").source = answer
        path = course / "submitted" / student / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook))
    report = grade(LESSON, course=course, options=Options(jobs=1))
    return course, {row.student: row for row in report.rows}


@pytest.fixture(scope="module")
def rows(graded):
    return graded[1]


def found(row) -> dict:
    return row.exercises["train_policy"]


def test_an_honest_trainer_earns_points_and_is_on_record(rows):
    honest = found(rows["honest"])
    assert honest["points"] >= 5, honest["message"]
    measured = honest["measured"]
    assert len(measured["sampled"]) == len(measured["greedy"]) == 256
    assert 0 < measured["completions"] <= BUDGET


def test_what_was_learned_elsewhere_is_worth_nothing(rows):
    elsewhere = found(rows["knows-another-dialect"])
    assert elsewhere["points"] == 0, elsewhere["message"]
    assert elsewhere["measured"]["greedy"] != found(rows["honest"])["measured"]["greedy"]


@pytest.mark.parametrize("student, said", [
    ("asks-for-more", "infinite or NaN"),  # which it does only if nobody gave it more
    ("patches-the-judge", "other parameters"),
    ("another-shape", "another shape"),
    ("says-what-it-saw", "ended in an exception"),
])  # fmt: skip
def test_an_attack_earns_nothing_and_is_told_what_it_did(rows, student, said):
    mark = found(rows[student])
    assert mark["points"] == 0 and said in mark["message"], mark["message"]


def test_who_uses_up_the_time_loses_alone(rows):
    assert found(rows["spins"])["points"] == 0
    assert rows["spins"].status == "timed out"


def test_nothing_of_the_hidden_variant_is_said(graded, rows):
    course, _ = graded
    from rlcourse import exercises

    contest = exercises.get("train_policy").contest
    variant = variant_of(course_secret(course), "train_policy")
    questions = list(contest.world(variant).problems)
    for student, row in rows.items():
        text = (course / "autograded" / student / LESSON / f"{LESSON}.ipynb").read_text()
        assert not any(question in text for question in questions), student
        assert str(variant % 2**31) not in json.dumps(row.as_json())
