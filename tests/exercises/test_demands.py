"""A check demands nothing that is not said: each demand has its sentence.

What holds for all exercises stands once, in lesson 01 under “What all exercises agree on”; what is
special stands in the function's own description or in the text of its lesson.
"""

import inspect
import re
from pathlib import Path

import pytest

from rlcourse import exercises
from rlcourse.checks.calling import call_all

LESSONS = Path(__file__).parents[2] / "course" / "lessons"
EXERCISES = [exercise for exercise in exercises.all() if not exercise.suspects]
CONTRACT, DESCRIPTION, LESSON = "the contract", "the description", "the lesson"

# Labels of cases that ask for care, and the sentence that says what is asked.
GENERAL = {
    r"^an empty row|^every row empty": (
        CONTRACT,
        "it counts as a row of 0, and a mean over nothing is 0, with a gradient of 0 and not NaN",
    ),
    r"^a float mask|^a mask of integers": (CONTRACT, "may be bool, integer or float"),
    r"^float32|, float32": (CONTRACT, "the dtype of the floating-point tensors that came in"),
    r"±\d{2,}|e⁻¹|far from 0|huge|^tiny weights|1000 times": (
        CONTRACT,
        "that number is what comes out, and not NaN or infinity",
    ),
    r" with a graph$": (CONTRACT, "Gradient flows through `logprobs`"),
}
# The same for one exercise. A label that none of these and none above fits is the idea itself.
SPECIAL = {
    "sample_tokens": {
        "a tiny top_p": (DESCRIPTION, "the one that crosses the threshold included"),
    },
    "leave_one_out_advantages": {"of one": (DESCRIPTION, "A group of one has no others")},
    "group_normalized_advantages": {
        "groups of one": (DESCRIPTION, "So is that of a group of one"),
        "equal rewards": (DESCRIPTION, "A group of equal rewards has nothing to teach"),
    },
    "sign_advantages": {"0.01, float32": (DESCRIPTION, "never the sign of a rounding error")},
    "optimal_baseline": {"no sample pulls": (DESCRIPTION, "0 if all norms are 0")},
    "effective_sample_size": {"no weight at all": (DESCRIPTION, "0 when all are 0")},
    "kl_divergence": {
        "p never takes|neither takes": (DESCRIPTION, "Where p is 0 the term is 0"),
        "q never takes": (DESCRIPTION, "where only q is 0 the term is infinite"),
    },
    "whiten": {"float32": (DESCRIPTION, "nor values far from 0 may blow up rounding")},
    "ppo_clip_loss": {"advantages of 0": (DESCRIPTION, "never where the advantage is 0")},
    "backtracking_line_search": {
        "NaN": (DESCRIPTION, "NaN is not safe"),
        "nothing to gain": (DESCRIPTION, "exactly as they were, when none was safe"),
    },
    "last_token_index": {"an empty row|every row empty": (DESCRIPTION, "0 for an empty row")},
    "reward_accuracy": {"all equal": (DESCRIPTION, "A tie is not the right order")},
    "pass_at_k_curve": {"no problems": (DESCRIPTION, "Without problems it is empty")},
    "rollout_env": {"cut off by": (DESCRIPTION, "also after the last turn that is allowed")},
    "reverse_kl_advantages": {
        "environment between": (DESCRIPTION, "is a step of γ like any other"),
    },
    "majority_vote": {
        "nobody answers|no answers": (DESCRIPTION, "None means no votes"),
        "tie": (DESCRIPTION, "Of equally common answers the first given wins"),
    },
    "extract_answer": {
        "no mark|nothing after|words": (DESCRIPTION, "None without a mark"),
        "two marks": (DESCRIPTION, "The number after the last ``####``"),
    },
    "extract_tagged_answer": {
        "two answers|cut off": (DESCRIPTION, "the last complete"),
        "a word": (DESCRIPTION, "does not begin with a number"),
    },
}


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _contract() -> str:
    text = (LESSONS / "01_policies.md").read_text(encoding="utf-8")
    return _plain(text.split("### What all exercises agree on")[1].split("\n## ")[0])


def _said(where: str, exercise) -> str:
    if where == CONTRACT:
        return _contract()
    if where == DESCRIPTION:
        return _plain(inspect.getdoc(exercise.reference))
    return _plain((LESSONS / f"{exercise.lesson}.md").read_text(encoding="utf-8"))


def _cases(exercise):
    return [*exercise.draw_cases(seed=0), *exercise.draw_cases(seed=0, hidden=True)]


def _demands(exercise, case):
    """(where, sentence) for each demand that the case's label makes."""
    special = SPECIAL.get(exercise.name, {})
    return [
        said for pattern, said in {**special, **GENERAL}.items() if re.search(pattern, case.label)
    ]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_every_case_at_the_edge_has_its_demand(exercise):
    for case in _cases(exercise):
        if case.edge and not case.raises:
            assert _demands(exercise, case), f"nothing says what “{case.label}” asks for"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_the_sentence_of_every_demand_stands_where_it_should(exercise):
    for case in _cases(exercise):
        for where, sentence in _demands(exercise, case):
            assert sentence in _said(where, exercise), f"{where} does not say: {sentence}"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_an_error_that_is_asked_for_is_announced_by_its_type(exercise):
    due = tuple(case for case in _cases(exercise) if case.raises)
    for outcome in call_all(exercise.reference, due, repeat=False):
        assert f"Raises {outcome.error.type}" in _said(DESCRIPTION, exercise)


@pytest.mark.parametrize(
    "exercise", [e for e in EXERCISES if e.constants], ids=lambda exercise: exercise.name
)
def test_what_counts_as_constant_is_said_in_the_description_too(exercise):
    said = _said(DESCRIPTION, exercise)
    assert re.search(r"constant|[Gg]radient|Differentiable in", said)


def test_every_entry_of_the_table_is_about_a_case_that_exists():
    """An entry that no label fits would be a demand that nobody makes."""
    labels = {e.name: [case.label for case in _cases(e)] for e in EXERCISES}
    for name, demands in SPECIAL.items():
        for pattern in demands:
            assert any(re.search(pattern, label) for label in labels[name]), (name, pattern)
    for pattern in GENERAL:
        assert any(re.search(pattern, label) for found in labels.values() for label in found)


@pytest.mark.parametrize(
    "sentence",
    [
        "The same arguments give the same result",
        "Arguments are never changed in place",
        "torch's own random generator is drawn from only where the description says so",
        "must never matter: not in a value, not in a count, not in a gradient",
    ],
)
def test_what_is_watched_in_every_call_is_in_the_contract(sentence):
    """Answers that vary, arguments that change, draws from torch's generator, padding."""
    assert sentence in _contract()
