"""Lesson 14: its worked numbers, and the two ways to cut one text."""

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.policy import Policy, Speaker, ToyPolicy


def test_one_text_two_ways_to_cut_it():
    speaker = Speaker(Policy.load("tiny", device="cpu"))
    drawn = [speaker.encode(piece)[0] for piece in ("####", " ", "3")]
    again = speaker.encode(speaker.text(drawn))
    assert speaker.text(drawn) == speaker.text(again) == "#### 3"
    assert len(drawn) == 3 and len(again) == 2


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


def logits_along(toy, tokens):
    """What a toy policy says at each place of the texts: (N, T) → (N, T, V)."""
    prefix, found = torch.zeros_like(tokens[:, 0]), []
    for token in tokens.unbind(1):
        found.append(toy.logits[prefix])
        prefix = toy.child(prefix, token)
    return torch.stack(found, 1)


@pytest.mark.parametrize("seeds", [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)])
def test_the_whole_vocabulary_has_the_mean_of_gamma_0_at_a_fraction_of_its_variance(seeds):
    """A third at most: the ratio is .09 to .20 on the five pairs."""
    student, teacher = (ToyPolicy(3, 3, seed=seed, eos_id=0) for seed in seeds)
    batch, p = student.trajectories(), student.probabilities().detach()

    def statistics(losses):
        each = [torch.autograd.grad(x, student.logits, retain_graph=True)[0] for x in losses]
        each = torch.stack(each).flatten(1)
        return p @ each, (p @ (each - p @ each).square()).sum()

    ours, theirs, logprobs = (
        logits_along(student, batch.tokens),
        logits_along(teacher, batch.tokens),
        student.logprobs(batch),
    )
    advantages = A.reverse_kl_advantages(logprobs, teacher.logprobs(batch), batch.mask)
    drawn, of_drawn = statistics(-(advantages * logprobs).sum(1))
    whole, of_whole = statistics(
        A.reverse_kl_loss(ours[[i]], theirs[[i]], batch.mask[[i]]) * batch.mask[i].sum()
        for i in range(len(p))
    )
    torch.testing.assert_close(whole, drawn)
    assert of_whole < of_drawn / 3


def test_three_words_of_which_one_is_kept():
    student, teacher = (torch.tensor([[p]]).log() for p in ([0.25, 0.25, 0.5], [0.2, 0.6, 0.2]))
    mask = torch.ones(1, 1)
    assert A.top_k_kl_loss(student, teacher, mask, 1).item() == pytest.approx(0.253, abs=5e-4)
    assert A.reverse_kl_loss(student, teacher, mask).item() == pytest.approx(0.295, abs=5e-4)


@pytest.mark.parametrize("seeds", [(1, 2), (3, 4), (5, 6), (7, 8)])
def test_the_teachers_likeliest_words_have_a_bias_and_less_variance(seeds):
    """Of six words; bias .43 to .85 at k = 3 on these pairs, and none where one word is left."""
    student, teacher = (ToyPolicy(6, 3, seed=seed, eos_id=0) for seed in seeds)
    batch, p = student.trajectories(), student.probabilities().detach()

    ours, theirs = logits_along(student, batch.tokens), logits_along(teacher, batch.tokens)

    def statistics(loss):
        each = []
        for i in range(len(p)):
            value = loss(ours[[i]], theirs[[i]], batch.mask[[i]]) * batch.mask[i].sum()
            each.append(torch.autograd.grad(value, student.logits, retain_graph=True)[0].flatten())
        each = torch.stack(each)
        return p @ each, (p @ (each - p @ each).square()).sum()

    def top(k):
        return statistics(lambda *arguments: A.top_k_kl_loss(*arguments, k))

    whole, variance = statistics(A.reverse_kl_loss)
    (three, less), (five, as_much) = top(3), top(5)
    assert (three - whole).norm() > 0.25 * whole.norm() and less < 0.9 * variance
    torch.testing.assert_close(five, whole)
    torch.testing.assert_close(as_much, variance)
    for k in (1, 2, 3, 4):
        everything = A.reverse_kl_loss(ours, theirs, batch.mask)
        assert A.top_k_kl_loss(ours, theirs, batch.mask, k) < everything


def test_realigned_log_probs_are_those_of_the_same_tokens():
    policy = Policy.load("tiny", device="cpu")
    speaker = Speaker(policy)
    eos = policy.tokenizer.eos_token_id
    turns = [[*speaker.encode(text), eos] for text in ("23 * 17", "#### 391")]

    def episode(question):
        said = ("environment", speaker.observation("391"), [])
        first = ("environment", speaker.prompt(question), [])
        return [first, ("policy", turns[0], []), said, ("policy", turns[1], [])]

    short, long = [episode("Ben has 14 pens.")], [episode("Ben has 14 pens. (23 * 17 = 391)")]
    student, teacher = A.action_mask(short)[:, 1:], A.action_mask(long)[:, 1:]
    ids = [torch.tensor([[t for _, ids, _ in e[0] for t in ids][1:]]) for e in (short, long)]
    moved = A.realigned(ids[1].float(), teacher, student)
    assert (moved == torch.where(student, ids[0], 0)).all()
    assert student.sum() == sum(map(len, turns))
