"""Declarations, cases, outcomes, and how one is compared with another."""

import math
from dataclasses import replace

import pytest
import torch

from rlcourse.algorithms.policy_gradient import reinforce_loss
from rlcourse.checks.asking.calling import Outcome, call, call_all, describe
from rlcourse.checks.asking.case import Case
from rlcourse.checks.asking.specs import Spec
from rlcourse.checks.exercise import Mistake
from rlcourse.checks.judging.comparing import compare_anything
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.proving.proof import prove
from rlcourse.exercises import get


def test_mistake_that_no_case_tells_from_the_reference_fails_the_proof():
    exercise = get("reinforce_loss")
    harmless = Mistake("nothing", reinforce_loss, "…")
    rows = prove([replace(exercise, mistakes=(harmless,))], seeds=(0,))
    assert [row.ok for row in rows if row.kind == "mistake"] == [False, False]


def test_same_seed_draws_the_same_and_no_seed_draws_fresh_ones():
    def rewards(seed, hidden=False):
        cases = get("reinforce_loss").draw_cases(seed, hidden)
        return torch.cat([case.arguments["advantages"].double() for case in cases[1:-1]])

    assert torch.equal(rewards(5), rewards(5))
    fresh = rewards(None), rewards(None)
    assert fresh[0].shape != fresh[1].shape or not torch.equal(*fresh)
    assert rewards(5, hidden=True).shape != rewards(5).shape


def test_gradient_is_recorded_for_arguments_that_are_no_leaves():
    def in_place(x):
        x.mul_(3)
        return x.sum()

    case = Case("", {"x": torch.ones(2).double()}, differentiable=("x",), tracked=True)
    outcome = call(in_place, case)
    assert outcome.changed == ("x",) and outcome.gradients["x"].tolist() == [3, 3]
    assert case.arguments["x"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        (1.0, 1.0 + 1e-9, []),
        (1.0, 1, []),
        (1.0, 1.001, ["value"]),
        (1, 1.0, ["type"]),
        (1, True, ["type"]),
        (math.nan, math.nan, []),
        (math.nan, 0.0, ["value"]),
        (math.inf, 1e308, ["value"]),
        (math.inf, math.inf, []),
        ((1.0, 2.0), (1.0, 3.0), ["value"]),
        ((1.0, 2.0), (1.0,), ["structure"]),
        ("14", "14.0", ["value"]),
        (None, None, []),
        (torch.zeros(2), torch.zeros(1), ["shape"]),
        (torch.zeros(2), torch.zeros(2).double(), []),  # any precision, without a gradient
        (torch.zeros(2), torch.zeros(2).long(), ["dtype"]),
        (torch.tensor([1e6, 1e-3]).double(), torch.tensor([1e6, 2e-3]).double(), ["value"]),
    ],
)
def test_comparison_is_elementwise_and_relative(a, b, kinds):
    found = compare_anything(Outcome(a), Outcome(b), Case("", {}))
    assert [difference.kind for difference in found] == kinds


def test_gradient_of_another_shape_never_broadcasts():
    case = Case("", {"x": torch.ones(3)}, differentiable=("x",))
    ones = Outcome(gradients={"x": torch.ones(3)})
    assert compare_anything(ones, Outcome(gradients={"x": torch.ones(1)}), case)


def test_random_function_is_judged_by_a_statistic():
    def cases(draw):
        yield Case("coins", {"n": 4000, "generator": Spec("generator", {"seed": 1})}, atol=0.05)

    def coins(n, generator):
        return torch.randint(2, (n,), generator=generator)

    exercise = replace(
        get("score_function"), reference=coins, name="coins", cases=cases, mistakes=(),
        observe=lambda case, value: value.double().mean().item(),
    )  # fmt: skip
    exam = Exam(exercise)

    def examine(fn):
        return exam.judge(describe(fn), call_all(fn, exam.cases))

    assert examine(lambda n, generator: 1 - coins(n, generator)).passed
    assert not examine(lambda n, generator: coins(n, generator) * 0).passed
    ignores_generator = examine(lambda n, generator: torch.randint(2, (n,)))
    assert "two different results" in ignores_generator.message
