"""The toy policy sums over all sentences: a distribution, and the exact gradient."""

import math

import pytest
import torch

from rlcourse.policy import ToyPolicy

SIZES = [(2, 1, None), (3, 3, None), (3, 3, 0), (5, 4, 2), (4, 1, 3)]


@pytest.mark.parametrize("vocab_size, length, eos_id", SIZES)
def test_trajectories_are_all_sentences_once(vocab_size, length, eos_id):
    toy = ToyPolicy(vocab_size, length, seed=1, eos_id=eos_id)
    assert toy.probabilities().sum().item() == pytest.approx(1, abs=1e-12)
    batch = toy.trajectories()
    sentences = [tuple(t[m].tolist()) for t, m in zip(batch.tokens, batch.mask, strict=True)]
    if eos_id is None:
        expected = vocab_size**length
    else:  # those that end at step t, and those that never end
        others = vocab_size - 1
        expected = sum(others**t for t in range(length)) + others**length
    assert len(sentences) == len(set(sentences)) == expected
    assert all(eos_id not in s[:-1] and (len(s) == length or s[-1] == eos_id) for s in sentences)


def test_a_sentence_has_the_product_of_its_tokens_probabilities():
    toy = ToyPolicy(vocab_size=2, length=2, seed=3)
    first = toy.logits[0].softmax(-1)  # after nothing
    after = [toy.logits[1].softmax(-1), toy.logits[2].softmax(-1)]  # after token 0, after token 1
    expected = torch.stack([first[a] * after[a][b] for a in range(2) for b in range(2)])
    torch.testing.assert_close(toy.probabilities(), expected)


def test_logprobs_are_zero_on_padding_and_shift_with_temperature():
    toy = ToyPolicy(vocab_size=3, length=3, seed=4, eos_id=0)
    batch = toy.trajectories()
    assert not batch.mask.all()
    assert (toy.logprobs(batch)[~batch.mask] == 0).all()
    assert (toy.logprobs(batch)[batch.mask] < 0).all()
    with torch.no_grad():
        toy.logits.mul_(2)
    hot = type(batch)(**{**vars(batch), "temperature": 2.0})
    torch.testing.assert_close(toy.logprobs(hot), batch.old_logprobs)


def test_expected_reward_has_the_gradient_of_its_finite_differences():
    toy = ToyPolicy(vocab_size=3, length=2, seed=5, eos_id=1)

    def reward(batch):
        return (batch.tokens == 2).sum(1) + 0.5 * (batch.mask.sum(1) == 1)

    (gradient,) = torch.autograd.grad(toy.expected_reward(reward), toy.logits)
    step = 1e-6
    for index in [(0, 0), (0, 2), (1, 1), (3, 2)]:
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                toy.logits[index] += sign * step
                values.append(toy.expected_reward(reward).item())
                toy.logits[index] -= sign * step
        assert gradient[index].item() == pytest.approx(
            (values[0] - values[1]) / (2 * step), abs=1e-8
        )
    rewards = reward(toy.trajectories())
    assert toy.expected_reward(rewards) == toy.expected_reward(reward)
    assert (gradient[2] == 0).all()  # nothing follows EOS, so this prefix never happens


def test_samples_follow_the_probabilities_and_carry_their_logprobs():
    toy = ToyPolicy(vocab_size=3, length=3, seed=6, eos_id=0)
    n = 20_000
    batch = toy.sample(n, generator=torch.Generator().manual_seed(0))
    assert len(batch) == batch.group_size == n
    assert torch.equal(batch.old_logprobs, toy.logprobs(batch).detach())
    truth = {
        tuple(row): p.item()
        for row, p in zip(toy.trajectories().tokens.tolist(), toy.probabilities(), strict=True)
    }
    drawn = [tuple(row) for row in batch.tokens.tolist()]
    for sentence, p in truth.items():
        assert abs(drawn.count(sentence) / n - p) < 5 * math.sqrt(p * (1 - p) / n)
    again = toy.sample(n, generator=torch.Generator().manual_seed(0))
    assert torch.equal(batch.tokens, again.tokens)


def test_kl_and_entropy_of_distributions_known_in_closed_form():
    peaked, uniform = (ToyPolicy(vocab_size=3, length=3, seed=s, eos_id=0) for s in (7, 8))
    with torch.no_grad():
        uniform.logits.zero_()
        peaked.logits.zero_()
        peaked.logits[0] = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64).log()
    # Uniform draws: step t is reached with probability (2/3)^t and holds ln 3 nats.
    entropy = math.log(3) * (1 + 2 / 3 + 4 / 9)
    assert uniform.entropy().item() == pytest.approx(entropy, abs=1e-12)
    first_step = 0.6 * math.log(0.6 * 3) + 0.3 * math.log(0.3 * 3) + 0.1 * math.log(0.1 * 3)
    assert peaked.kl(uniform).item() == pytest.approx(first_step, abs=1e-12)
    assert peaked.kl(peaked).item() == 0
    (gradient,) = torch.autograd.grad(peaked.kl(uniform), peaked.logits)
    assert gradient[0].abs().max() > 0.01
