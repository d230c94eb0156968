"""Lesson 16: its worked numbers, telescoping, the chain's formulas, steps of real texts."""

import itertools

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.policy import Policy
from rlcourse.tasks import load_task
from rlcourse.tasks.steps import prefixes, verdict_table
from rlcourse.training import load_recipe, train


def test_the_steps_of_section_1():
    tokens = torch.tensor([[5, 4, 9, 6, 9, 7, 2]])
    assert A.step_ids(tokens, torch.ones(1, 7), 9).tolist() == [[0, 0, 0, 1, 1, 2, 2]]


def test_the_three_answers_of_section_2():
    verdicts = torch.tensor([[1.0, 1, 1], [1, 0, 0], [0, 0, 0]])
    ids = torch.tensor([[0, 1, 2]] * 3)
    found = A.step_advantages(verdicts, ids, torch.ones(3, 3), 3)
    assert found[1].tolist() == pytest.approx([-1 / 3, -2 / 3, -1 / 3])
    outcome = A.group_mean_advantages(torch.tensor([1.0, 0, 0]), 3)
    assert outcome[1:].tolist() == pytest.approx([-1 / 3, -1 / 3])


def test_rewards_to_go_have_the_gradient_of_the_sum_and_less_variance():
    p = torch.tensor([0.6, 0.5, 0.7], dtype=torch.float64)
    right = torch.tensor(list(itertools.product([0.0, 1.0], repeat=3)), dtype=torch.float64)
    chance = (right * p + (1 - right) * (1 - p)).prod(1)
    to_go = right.flip(1).cumsum(1).flip(1)
    variances = []
    for weight in (right.sum(1, keepdim=True).expand(8, 3), to_go):
        terms = (right - p) * (weight - chance @ weight)
        torch.testing.assert_close(chance @ terms, p * (1 - p))
        variances.append(chance @ (terms - chance @ terms).square())
    assert (variances[1][1:] < variances[0][1:]).all()


def test_advantages_of_values_telescope_to_the_outcome_minus_the_first_value():
    values, outcomes = torch.rand(5, 4, dtype=torch.float64), torch.rand(5).double()
    steps = torch.tensor([4, 1, 3, 2, 4])
    ids, mask = torch.arange(4).expand(5, 4), torch.arange(4) < steps[:, None]
    found = A.value_advantages(values, outcomes, ids * mask, mask)
    torch.testing.assert_close(found.sum(1), outcomes - values[:, 0])
    worked = A.value_advantages(
        torch.tensor([[0.2, 0.5, 0.9]]), torch.ones(1), torch.arange(3)[None], torch.ones(1, 3)
    )
    assert worked[0].tolist() == pytest.approx([0.3, 0.4, 0.1])


@pytest.mark.parametrize("p, S", [(0.5, 4), (0.7, 6), (0.9, 10)])
def test_the_formulas_of_the_chain(p, S):
    """Summed over all 2^S answers of a chain of S steps."""
    right = torch.tensor(list(itertools.product([0.0, 1.0], repeat=S)), dtype=torch.float64)
    chance = (right * p + (1 - right) * (1 - p)).prod(1)
    so_far = torch.cat([torch.ones(len(right), 1).double(), right.cumprod(1)], dim=1)
    values = so_far * p ** torch.arange(S, -1, -1)
    ids, mask = torch.arange(S).expand(len(right), S), torch.ones(len(right), S)
    by_value = A.value_advantages(values[:, :-1], so_far[:, -1], ids, mask)
    for credit, square in (
        (so_far[:, -1:].expand_as(right), S * p**S * (1 - p) ** 2),
        (by_value, p**S * (1 - p**S) * ((1 - p) ** 3 + p**3)),
    ):
        terms = (right - p) * credit
        expected = torch.full((S,), p**S * (1 - p), dtype=torch.float64)
        torch.testing.assert_close(chance @ terms, expected)
        assert float(chance @ terms.square().sum(1)) == pytest.approx(square)


def test_the_vote_of_section_6():
    answers, scores = ["14", "18", "14", "20"], torch.tensor([0.3, 0.5, 0.4, 0.1])
    assert A.weighted_vote(answers, scores) == "14"
    assert A.weighted_vote(answers, torch.ones(4)) == A.majority_vote(answers)


@pytest.fixture(scope="module")
def tiny():
    return Policy.load("tiny", device="cpu")


def test_steps_of_tokens_are_lines_of_text_and_a_prefix_keeps_its_tokens(tiny):
    (newline,) = tiny.tokenizer("\n", add_special_tokens=False)["input_ids"]
    problems = load_task("word_problems", seed=0).train[:24]
    prompts = [tiny.format_prompt(p.question) for p in problems]
    generator = torch.Generator().manual_seed(0)
    batch = tiny.sample(prompts, group_size=2, generator=generator)
    ids, texts = A.step_ids(batch.tokens, batch.mask, newline), tiny.decode(batch)
    assert (ids.max(1).values + 1).tolist() == [text.count("\n") + 1 for text in texts]
    for row, (text, tokens) in enumerate(zip(texts, batch.tokens.tolist(), strict=True)):
        prompt = prompts[row // 2]
        for begun in prefixes(text):
            own = tiny._prompt_ids(prompt + begun)[len(tiny._prompt_ids(prompt)) :]
            assert own == tokens[: len(own)]


@pytest.mark.filterwarnings("error")
def test_steps_train_without_a_false_alarm(tiny, capsys):
    (newline,) = tiny.tokenizer("\n", add_special_tokens=False)["input_ids"]
    seen = {}

    def reward(completions, answers):
        seen["verdicts"] = verdict_table(completions, answers)
        return seen["verdicts"].sum(1)

    def by_step(tokens, mask, group_size):
        ids = A.step_ids(tokens, mask, newline)
        return A.step_advantages(seen["verdicts"], ids, mask, group_size)

    recipe = load_recipe("dr_grpo", steps=2, prompts_per_step=4, group_size=4, eval_problems=0)
    recipe = recipe.but(warm_start=None, device="cpu")
    task = load_task("word_problems", seed=0)
    run = train(recipe, task=task, reward=reward, advantages=by_step, progress=False)
    assert "advantages/equal_rewards" not in run.metrics[0]
    assert [m["loss_tokens"] for m in run.metrics if m["loss_tokens"] == m["loss_tokens"]]
    assert "rlcourse:" not in capsys.readouterr().err
