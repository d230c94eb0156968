"""Lesson 14: its worked numbers, and the two ways to cut one text."""

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.policy import Policy, Speaker, ToyPolicy


@pytest.mark.parametrize(
    ("text", "answer"),
    [("23 * 17", "391"), ("9-30", "-21"), ("7 / 2", "?"), ("How many are left", "?")],
)
def test_the_table_of_section_1(text, answer):
    assert A.calculator(text) == answer


def test_one_text_two_ways_to_cut_it():
    speaker = Speaker(Policy.load("tiny", device="cpu"))
    drawn = [speaker.encode(piece)[0] for piece in ("####", " ", "3")]
    again = speaker.encode(speaker.text(drawn))
    assert speaker.text(drawn) == speaker.text(again) == "#### 3"
    assert len(drawn) == 3 and len(again) == 2


@pytest.mark.parametrize(("gamma", "expected"), [(0.0, [0.47, -1.61, 0]), (1.0, [-1.14, -1.61, 0])])
def test_the_three_tokens_of_section_6(gamma, expected):
    student, teacher = (torch.tensor([p]).log() for p in ([0.5, 0.5, 0.9], [0.8, 0.1, 0.9]))
    found = A.reverse_kl_advantages(student, teacher, torch.ones(1, 3), gamma)
    assert found[0].tolist() == pytest.approx(expected, abs=0.005)


def test_an_eos_ends_a_turn_and_not_the_episode():
    question, call = ("environment", [5, 6], []), ("policy", [7, 2], [-1.0, -1.0])
    says, answer = ("environment", [8], []), ("policy", [9, 2], [-1.0, -1.0])
    tokens = torch.tensor([[5, 6, 7, 2, 8, 9, 2]])
    assert A.action_mask([[question, call, says, answer]])[0].tolist() == [0, 0, 1, 1, 0, 1, 1]
    assert A.completion_mask(tokens, 2)[0].tolist() == [1, 1, 1, 1, 0, 0, 0]


def test_a_fair_coin_and_a_teacher_with_a_loaded_one():
    fair, loaded = (torch.tensor([[p]]).log() for p in ([0.5, 0.5], [0.8, 0.2]))
    loss = A.reverse_kl_loss(fair, loaded, torch.ones(1, 1))
    assert loss.item() == pytest.approx(0.223, abs=5e-4)


@pytest.mark.parametrize("seeds", [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)])
def test_the_whole_vocabulary_has_the_mean_of_gamma_0_at_a_fraction_of_its_variance(seeds):
    """A third at most: the ratio is .09 to .20 on the five pairs."""
    student, teacher = (ToyPolicy(3, 3, seed=seed, eos_id=0) for seed in seeds)
    batch, p = student.trajectories(), student.probabilities().detach()

    def logits(toy):
        prefix, found = torch.zeros_like(batch.tokens[:, 0]), []
        for token in batch.tokens.unbind(1):
            found.append(toy.logits[prefix])
            prefix = toy.child(prefix, token)
        return torch.stack(found, 1)

    def statistics(losses):
        each = [torch.autograd.grad(x, student.logits, retain_graph=True)[0] for x in losses]
        each = torch.stack(each).flatten(1)
        return p @ each, (p @ (each - p @ each).square()).sum()

    ours, theirs, logprobs = logits(student), logits(teacher), student.logprobs(batch)
    advantages = A.reverse_kl_advantages(logprobs, teacher.logprobs(batch), batch.mask)
    drawn, of_drawn = statistics(-(advantages * logprobs).sum(1))
    whole, of_whole = statistics(
        A.reverse_kl_loss(ours[[i]], theirs[[i]], batch.mask[[i]]) * batch.mask[i].sum()
        for i in range(len(p))
    )
    torch.testing.assert_close(whole, drawn)
    assert of_whole < of_drawn / 3
