"""Lesson 15: its worked numbers, the scaled gradient, and what judges do with odd answers."""

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.errors import UserError
from rlcourse.tasks import load_task
from rlcourse.tasks.judges import RUBRIC, LanguageModelJudge, NoisyJudge, rubric_verdicts


def audit(wrong, passed, right, failed):
    verdicts = [1] * passed + [0] * (wrong - passed) + [0] * failed + [1] * (right - failed)
    return torch.tensor(verdicts).float(), torch.tensor([0] * wrong + [1] * right).float()


def test_the_audit_of_section_2():
    rates = A.error_rates(*audit(20, 3, 10, 1))
    expected = [0.15, 0.0524, 0.3604, 0.1, 0.0179, 0.4042]
    assert rates.flatten().tolist() == pytest.approx(expected, abs=1e-4)
    assert A.error_rates(*audit(20, 0, 10, 1))[0].tolist() == pytest.approx([0, 0, 0.161], abs=1e-3)


@pytest.mark.parametrize("counts", [(20, 3, 10, 1), (7, 7, 5, 2), (40, 1, 12, 11)])
def test_the_ends_of_the_interval_are_the_rates_that_just_explain_the_share(counts):
    wrong, _, right, _ = counts
    for m, (share, low, high) in zip((wrong, right), A.error_rates(*audit(*counts)), strict=True):
        for p in (low, high):
            distance = (share - p).abs()
            torch.testing.assert_close(distance, 1.96 * (p * (1 - p) / m).sqrt())


@pytest.mark.parametrize("fp, fn", [(0.0, 0.0), (0.2, 0.1), (0.5, 0.5), (0.7, 0.6)])
def test_the_gradient_of_a_noisy_reward_is_that_of_the_truth_scaled(fp, fn):
    logits = torch.tensor([0.3, -0.5, 1.0, 0.0], dtype=torch.float64)
    truth = torch.tensor([1.0, 0, 0, 1], dtype=torch.float64)
    paid = fp * (1 - truth) + (1 - fn) * truth
    found = A.exact_policy_gradient(logits, paid)
    torch.testing.assert_close(found, (1 - fp - fn) * A.exact_policy_gradient(logits, truth))


def test_rewards_freed_of_the_bias_average_to_the_truth_and_change_no_advantage():
    one, zero = A.unbiased_rewards(torch.tensor([1.0, 0.0]), 0.2, 0.1).tolist()
    assert (one, zero) == pytest.approx((1.143, -0.286), abs=5e-4)
    assert 0.9 * one + 0.1 * zero == pytest.approx(1, abs=1e-6)
    assert 0.2 * one + 0.8 * zero == pytest.approx(0, abs=1e-6)
    verdicts = torch.tensor([1.0, 0, 0, 1, 1, 0, 1, 1], dtype=torch.float64)
    freed = A.unbiased_rewards(verdicts, 0.2, 0.1)
    advantages = [A.group_normalized_advantages(r, 4, eps=0.0) for r in (verdicts, freed)]
    torch.testing.assert_close(*advantages)


def test_the_rubric_of_section_5():
    verdicts, weights = torch.tensor([[1.0, 1, 0], [0, 1, 1]]), torch.tensor([3.0, 2, 1])
    scores = A.rubric_scores(verdicts, weights, torch.tensor([True, False, False]))
    assert scores.tolist() == pytest.approx([5 / 6, 0])


def test_the_four_answers_of_section_7():
    parts = torch.tensor([[1.0, -40], [0, -20], [1, -60], [0, -30]], dtype=torch.float64)
    summed = A.group_normalized_advantages(parts.sum(1), 4)
    assert summed.tolist() == pytest.approx([-0.12, 1.02, -1.33, 0.42], abs=0.006)
    decoupled = A.decoupled_advantages(parts, torch.ones(2).double(), 4)
    assert decoupled.tolist() == pytest.approx([1.29, 0.29, -0.81, -0.77], abs=0.006)
    in_meters = parts * torch.tensor([1.0, 1e-2])
    again = A.decoupled_advantages(in_meters, torch.ones(2).double(), 4)
    torch.testing.assert_close(again, decoupled, atol=0.005, rtol=0)  # but for eps


PROBLEMS = load_task("word_problems", seed=0).train[:400]
QUESTIONS = [p.question for p in PROBLEMS]
RIGHT, WRONG = [p.answer for p in PROBLEMS], ["#### 123456"] * len(PROBLEMS)


@pytest.mark.parametrize("fp, fn", [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
def test_a_judge_at_the_ends_of_its_rates_is_exact(fp, fn):
    judge = NoisyJudge(PROBLEMS, fp, fn)
    assert judge(QUESTIONS, RIGHT).tolist() == [1 - fn] * len(PROBLEMS)
    assert judge(QUESTIONS, WRONG).tolist() == [fp] * len(PROBLEMS)


def test_a_noisy_judge_errs_at_its_rates_and_repeats_itself_for_a_seed():
    judges = [NoisyJudge(PROBLEMS, 0.2, 0.1, seed=3) for _ in range(2)]
    first, again = (torch.cat([j(QUESTIONS, RIGHT), j(QUESTIONS, WRONG)]) for j in judges)
    assert first.tolist() == again.tolist()
    truth = torch.cat([torch.ones(400), torch.zeros(400)])
    rates = A.error_rates(first, truth, z=6.0)  # six standard deviations: seed 3 is one of all
    for (_, low, high), rate in zip(rates.tolist(), (0.2, 0.1), strict=True):
        assert low < rate < high


def test_a_judge_refuses_what_it_cannot_know():
    with pytest.raises(UserError, match="from 0 to 1"):
        NoisyJudge(PROBLEMS, 1.2, 0.0)
    with pytest.raises(UserError, match="was not given the problem 'How many angels"):
        NoisyJudge(PROBLEMS, 0.1, 0.1)(["How many angels?"], ["#### 3"])


def test_every_reference_solution_holds_every_item_but_perhaps_the_use_of_all_numbers():
    verdicts = rubric_verdicts(QUESTIONS, RIGHT)
    assert verdicts.shape == (400, len(RUBRIC))
    assert verdicts[:, :4].min() == 1
    assert verdicts[:, 4].mean() > 0.9
    assert rubric_verdicts([], []).shape == (0, len(RUBRIC))


def test_the_rubric_is_blind_to_the_operation():
    question = "Ben has 5 packs of 9 stamps. How many stamps does he have?"
    texts = ["5 * 9 = 45\n#### 45", "5 + 9 = 14\n#### 14", "5 + 9 = 15\n#### 15", "45", "#### 45"]
    held = rubric_verdicts([question] * len(texts), texts).sum(1).tolist()
    assert held[:3] == [5, 5, 4]
    assert max(held[3:]) < 4


def test_a_language_model_judge_asks_item_by_item_and_pays_the_share():
    seen = []

    def model(prompts):
        seen.extend(prompts)
        return ["Not NO. YES" if "polite" in prompt else "So: NO" for prompt in prompts]

    judge = LanguageModelJudge(model, ["It is polite.", "It is short."])
    assert judge(["Q1", "Q2"], ["A1", "A2"]).tolist() == [0.5, 0.5]
    assert [("Q1" in s, "A1" in s, "short" in s) for s in seen[:2]] == [
        (True, True, False),
        (True, True, True),
    ]
    assert judge.unreadable == 0


def test_an_unreadable_reply_pays_nothing_and_is_counted():
    judge = LanguageModelJudge(lambda prompts: ["yes, perhaps"] * len(prompts), ["It is short."])
    assert judge(["Q"] * 3, ["A"] * 3).tolist() == [0, 0, 0]
    assert judge.unreadable == 3
