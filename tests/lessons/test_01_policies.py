"""Lesson 01: its worked numbers, and the contrast between two teachers."""

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.policy import Policy
from rlcourse.tasks import correctness_reward, extract_answer, format_reward, load_task
from rlcourse.training import load_recipe, train


def shares(probabilities, **options):
    """Frequencies of 20,000 draws."""
    logits = torch.tensor(probabilities).log().expand(20_000, -1)
    drawn = A.sample_tokens(logits, generator=torch.Generator().manual_seed(0), **options)
    return (drawn.bincount(minlength=len(probabilities)) / 20_000).tolist()


def test_at_temperature_two_a_ratio_of_four_becomes_two():
    assert shares([0.8, 0.2], temperature=2.0) == pytest.approx([2 / 3, 1 / 3], abs=0.015)


def test_nucleus_of_six_tenths_keeps_the_token_that_crosses():
    assert shares([0.5, 0.3, 0.2], top_p=0.6) == pytest.approx([0.625, 0.375, 0.0], abs=0.015)


def test_top_k_larger_than_the_vocabulary_keeps_every_token():
    assert shares([0.5, 0.3, 0.2], top_k=9) == pytest.approx([0.5, 0.3, 0.2], abs=0.015)


def test_mask_of_the_row_in_the_text():
    mask = A.completion_mask(torch.tensor([[7, 8, 2, 2, 2]]), eos_id=2)
    assert mask.long().tolist() == [[1, 1, 1, 0, 0]]


def test_three_averages_of_the_same_batch():
    logprobs, mask = torch.tensor([[-0.5, -1.5], [-4.0, 0.0]]), torch.tensor([[1, 1], [1, 0]])
    assert A.masked_mean(logprobs, mask).item() == -2.0
    assert A.sft_loss(logprobs, mask).item() == 2.0
    assert (logprobs * mask).mean().item() == -1.5
    assert A.masked_mean(logprobs, mask, dim=1).mean().item() == -2.5


def test_returns_of_the_text():
    rewards = torch.tensor([[0.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    assert A.returns_to_go(rewards, mask, 0.5).tolist() == [[0.25, 0.5, 1.0], [2.5, 1.0, 0.0]]
    assert A.returns_to_go(rewards, mask).tolist() == [[1.0, 1.0, 1.0], [3.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    "text, answer",
    [
        ("#### 1,234", "1234"),
        ("#### $14.00", "14"),
        ("#### 3.50", "3.5"),
        ("#### $3.50.", "3.5"),
        ("#### -3", "-3"),
        ("#### -$5", "-5"),
        ("#### 300", "300"),
        ("#### 14 apples in 3 bags", "14"),
        ("####14", "14"),
        ("18 - 4 = 14", None),
        ("18 - 4 = 14\n####", None),
        ("#### 14\n####", None),
    ],
)
def test_table_of_answers(text, answer):
    assert extract_answer(text) == answer


def test_the_right_number_occurs_in_texts_that_declare_another_or_none():
    texts = (
        "18 - 4 = 14\n14 * 3 = 42\n#### 42",
        "3 + 6 + 4 = 13, or 14?\n#### 13",
        "14 apples, so",
    )
    assert all("14" in text for text in texts)
    assert [extract_answer(text) for text in texts] == ["42", "13", None]


def test_rewards_of_the_attempts():
    reference = "3 * 6 = 18\n18 - 4 = 14\n#### 14"
    attempts = [reference, "6 + 6 + 6 - 4 = 14\n#### 14.0", "#### 5", "18 - 4 = 14", "?\n#### 14"]
    assert correctness_reward(attempts, [reference] * 5).tolist() == [1, 1, 0, 0, 1]
    forms = [
        "<think>3 * 6 = 18\n18 - 4 = 14</think>\n<answer>14</answer>",
        "<think>3 * 6 = 18</think> <answer>unknown</answer>",
        "<answer>14</answer> <think>because</think>",
        "<think><think><think> <answer>14</answer>",
        "14",
    ]
    assert format_reward(forms).tolist() == pytest.approx([0.5, 0.4, 0.3, 0.3, 0.0])


@pytest.mark.slow
def test_imitators_resemble_their_teachers():
    recipe = load_recipe(
        "sft", steps=30, prompts_per_step=32, eval_problems=64, device="cpu", policy="tiny", seed=3
    )
    base, after = Policy.load("tiny", device="cpu"), {}
    for teacher in ("sloppy", "clean"):
        task = load_task("word_problems", seed=3, teacher=teacher)
        after[teacher] = train(recipe, policy=base, task=task, progress=False).after
    sloppy, clean = after["sloppy"], after["clean"]
    # Three seeds: by .42 at least, and pass@8 by .36.
    assert float(clean.accuracy) > float(sloppy.accuracy) + 0.2
    assert float(sloppy.pass_at[8]) > float(sloppy.accuracy) + 0.15, "it can do more than it does"
