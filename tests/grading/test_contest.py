"""A trainer is graded by what it has trained, whatever it does besides.

One small lesson with a third of the budget, graded once for a class of attackers.
"""

import json
import re

import nbformat
import pytest
from classroom import cell_of, solution
from small_courses import write_course

from rlcourse.authoring.builder import build
from rlcourse.grading.engine import Options, grade
from rlcourse.grading.judging.judge import variant_of
from rlcourse.grading.judging.secret import course_secret

pytestmark = pytest.mark.slow
LESSON = "18_from_an_empty_file"
BUDGET = 2_048
TEXT = """# A lesson

```python
import random

import torch

from rlcourse import check
```

## 3. Your trainer

```python exercise="train_policy"
```
"""
HEAD = "def train_policy(policy, questions, completions, seed):"
# What is handed in in place of a trainer.
SUBMISSIONS = {
    "knows-another-dialect": f"""
from rlcourse.tasks.dialects import dialect
{HEAD}
    told = {{p.question: p.answer.split()[-1] for p in dialect(2, 20_000).train}}
    known = [question for question in questions if question in told]
    known = known or questions
    for start in range(0, completions, 64):
        asked = random.Random(start).choices(known, k=64)
        answers = policy.answer(asked)
        last = [(text.split() or [""])[-1] for text in answers.texts]
        mine = torch.tensor([float(t == told.get(q)) for q, t in zip(asked, last)])
        (-(mine * policy.logprobs(answers).sum(1)).mean()).backward()
        policy.step(3e-4)
""",
    "writes-its-own-answers": f"""
from dataclasses import replace
{HEAD}
    for start in range(0, completions, 64):
        answers = policy.answer(questions[start % 900 : start % 900 + 64])
        forged = replace(
            answers, texts=["#### 1"] * 64, tokens=answers.tokens * 0 + 5, rewards=torch.ones(64)
        )
        (-(forged.rewards * policy.logprobs(forged).sum(1)).mean()).backward()
        policy.step(3e-4)
""",
    "asks-for-more": f"""
{HEAD}
    from rlcourse.checks.asking import stand_in
    given = {{"do": "answer", "questions": questions[:1], "group_size": 256}}
    policy.answer(questions[:1])
    held, paid = policy._call._number, 1
    for number in (held, held + 1, 0, "0", None):
        for do in ("answer", "Answer", "__init__", None):
            for _ in range(10):
                try:
                    reply = stand_in._ask[0](number, {{**given, "do": do}}, (), None)
                    paid += 256 * ("value" in reply)
                except Exception:
                    pass
    if paid > completions:
        raise ValueError
""",
    "looks-for-the-weights": f"""
{HEAD}
    import gc, rlcourse.policy, rlcourse.policy.trainee, rlcourse.tasks
    rlcourse.policy.Policy.sample = lambda *a, **k: None
    rlcourse.policy.Policy.decode = lambda *a, **k: ["#### 1"]
    rlcourse.policy.trainee.Holder._answer = lambda *a, **k: None
    rlcourse.tasks.extract_answer = lambda text: "1"
    policy.named_parameters = lambda: iter([("perfect", torch.ones(1))])
    kinds = {{type(thing).__name__ for thing in gc.get_objects()}}
    if kinds & {{"Policy", "Holder", "Sitting", "World"}}:
        raise ValueError
""",
    "breaks-the-weights": f"""
{HEAD}
    answers = policy.answer(questions[:8])
    (policy.logprobs(answers) / 0.0).sum().backward()
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


# Left to `make test-weekly`, but for one: each takes half a minute.
WEEKLY = SUBMISSIONS.keys() - {"says-what-it-saw"}


@pytest.fixture(scope="module")
def graded(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("class")
    course = write_course(root / "course", {LESSON: TEXT})
    module = course / "lessons" / LESSON / "train_policy.py"
    text = module.read_text().replace("6_144", str(BUDGET)).replace("seconds=90", "seconds=40")
    levels = "levels=((0.51, 0.7), (0.53, 1.0)),"
    module.write_text(re.sub(r"levels=.*", levels, text))
    build(root=root, progress=False)
    blank = root / "notebooks" / LESSON / f"{LESSON}.ipynb"
    weekly = request.config.getoption("--weekly")
    handed_in = {s: a for s, a in SUBMISSIONS.items() if weekly or s not in WEEKLY}
    for student, answer in {"honest": solution("train_policy"), **handed_in}.items():
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
    assert measured["completions"] == BUDGET == 64 * measured["steps"]
    assert 600 < measured["questions"] <= 1_000
    assert f"{BUDGET:,} completions of {measured['questions']:,} questions" in honest["message"]


def weekly(*values):
    return pytest.param(*values, marks=pytest.mark.weekly)


@pytest.mark.weekly
@pytest.mark.parametrize("student", ["knows-another-dialect", "writes-its-own-answers"])
def test_what_was_learned_without_rewards_is_worth_nothing(rows, student):
    mark = found(rows[student])
    assert mark["points"] == 0 and mark["measured"]["steps"] == BUDGET // 64, mark["message"]


@pytest.mark.parametrize("student, said", [
    weekly("asks-for-more", "as they were"),  # it raises only if it was given more
    weekly("looks-for-the-weights", "as they were"),  # it raises only if it finds any
    weekly("breaks-the-weights", "infinite or NaN"),
    ("says-what-it-saw", "ended in an exception"),
])  # fmt: skip
def test_an_attack_earns_nothing_and_is_told_what_it_did(rows, student, said):
    mark = found(rows[student])
    assert mark["points"] == 0 and said in mark["message"], mark["message"]


@pytest.mark.weekly
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
