"""Lesson 14's functions: exact gradients, and episodes of which every token is known."""

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.checks.asking.episodes import ScriptedEnvironment, ScriptedSpeaker
from rlcourse.policy.toy import ToyPolicy


@pytest.fixture
def toys():
    return [ToyPolicy(3, 3, seed=seed, eos_id=0) for seed in (1, 2)]


def surrogate_gradient(student, teacher, gamma):
    batch = student.trajectories()
    logprobs, weights = student.logprobs(batch), student.probabilities().detach()
    advantages = A.reverse_kl_advantages(logprobs, teacher.logprobs(batch), batch.mask, gamma)
    loss = -(weights[:, None] * advantages * logprobs).sum()
    return torch.autograd.grad(loss, student.logits)[0]


def test_gamma_of_one_is_the_gradient_of_the_reverse_kl_of_whole_sentences(toys):
    student, teacher = toys
    (exact,) = torch.autograd.grad(student.kl(teacher), student.logits)
    torch.testing.assert_close(surrogate_gradient(student, teacher, 1.0), exact)


def test_gamma_of_zero_is_the_gradient_of_each_tokens_kl_at_prefixes_as_they_are(toys):
    student, teacher = toys
    batch = student.trajectories()
    reached = torch.zeros(len(student.logits), dtype=torch.float64)
    prefix, p = torch.zeros(len(batch), dtype=torch.long), student.probabilities().detach()
    for tokens, real in zip(batch.tokens.T, batch.mask.T, strict=True):
        reached.index_add_(0, prefix[real], p[real])  # probability of writing a token there
        prefix = torch.where(real, student.child(prefix, tokens), prefix)
    own, other = (policy.logits.log_softmax(-1) for policy in toys)
    loss = (reached[:, None] * own.exp() * (own - other.detach())).sum()
    (exact,) = torch.autograd.grad(loss, student.logits)
    torch.testing.assert_close(surrogate_gradient(student, teacher, 0.0), exact)


def test_nothing_that_the_environment_wrote_is_learned_from():
    episodes, _ = A.rollout_env(
        ScriptedSpeaker(),
        [ScriptedEnvironment("ab", n, [0.0] * n) for n in (1, 3, 2)],
        max_turns=4,
    )
    mask = A.action_mask(episodes)
    logprobs = torch.full(mask.shape, -1.0, dtype=torch.float64, requires_grad=True)
    old = logprobs.detach() - 0.1
    advantages = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(A.dapo_loss(logprobs, old, advantages, mask), logprobs)
    assert torch.equal(gradient != 0, mask)


def test_each_context_is_the_episode_so_far_and_log_probs_belong_to_their_tokens():
    speaker = ScriptedSpeaker(seed=5)
    environments = [ScriptedEnvironment(words, 3, [0.5, 0.25, 1.0]) for words in ("ab", "ghe")]
    episodes, rewards = A.rollout_env(speaker, environments, max_turns=9)
    assert rewards.tolist() == [1.75, 1.75]
    for n, episode in enumerate(episodes):
        assert [author for author, _, _ in episode] == ["environment", "policy"] * 3
        for k in (1, 3, 5):
            before = [t for _, ids, _ in episode[:k] for t in ids]
            assert speaker.contexts[k // 2][n] == before
            assert speaker.write([before])[0] == episode[k][1:]


@pytest.mark.parametrize(
    "text", ["", "eval", "9" * 5000 + " * 9", "1 / 0", "\x00", "٣ + ٤", "7 / 2"]
)
def test_the_calculator_has_an_answer_to_everything(text):
    assert A.calculator(text) == "?"
