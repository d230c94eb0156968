"""PPO: its critic sees what it should and learns; lesson 05's functions are those that train."""

from dataclasses import replace

import pytest
import torch
from echo import quiet, spied, weights

from rlcourse import algorithms
from rlcourse.errors import UserError
from rlcourse.training.networks.value_head import token_scores, value_head
from rlcourse.training.online.critic import state_values

ROUNDING = {"rtol": 1e-5, "atol": 1e-6}  # Llama's norms compute in float32, in float64 models too


@pytest.fixture
def ppo(recipe):
    settings = {
        "prompts_per_step": 10,
        "group_size": 4,
        "eval_problems": 0,
        "lr": 5e-3,
        "critic_lr": 1e-2,
    }
    return lambda **changes: recipe("ppo", **settings | changes)


@pytest.mark.slow
def test_the_critic_learns_what_the_question_says_about_the_reward(warm, task, ppo):
    """Under a policy that stands still: else what there is to explain vanishes as it learns."""

    def large(questions):
        return torch.tensor([float(int(question) >= 5) for question in questions])

    still = ppo(steps=30, num_iterations=2, lr=1e-9)
    metrics = quiet(still, policy=warm, task=task, reward=large).metrics
    assert metrics[0]["explained_variance"] == pytest.approx(0, abs=1e-6)  # V = 0
    # Six seeds: .97 at least.
    assert sum(m["explained_variance"] for m in metrics[-5:]) / 5 > 0.5
    assert metrics[-1]["value_loss"] < 0.5 * metrics[0]["value_loss"]


def test_a_new_critic_values_everything_at_zero_and_is_the_policys_body(warm):
    rollouts = warm.sample(["1?", "2 2?"], group_size=2, max_tokens=6)
    critic = value_head(warm)
    assert torch.equal(state_values(critic, rollouts), torch.zeros(rollouts.mask.shape))
    body, own = warm.model.base_model.state_dict(), critic.base_model.state_dict()
    assert all(torch.equal(body[name], own[name]) for name in own)


def test_a_value_depends_on_the_text_before_its_token_only(warm):
    rollouts = warm.double().sample(["1?", "2 2?"], group_size=2, max_tokens=6)
    critic = value_head(warm)
    torch.nn.init.normal_(critic.score.weight)
    values = state_values(critic, rollouts)
    for t in range(rollouts.tokens.shape[1]):
        changed = rollouts.tokens.clone()
        changed[:, t:] = 5
        other = state_values(critic, rollouts.__class__(**vars(rollouts) | {"tokens": changed}))
        torch.testing.assert_close(other[:, : t + 1], values[:, : t + 1], **ROUNDING)
    assert (values[~rollouts.mask] == 0).all()


def test_scores_are_those_of_hugging_faces_own_forward(warm):
    rollouts = warm.double().sample(["1?", "2?"], group_size=2, max_tokens=6)
    critic = value_head(warm)
    torch.nn.init.normal_(critic.score.weight)
    tokens = rollouts.tokens.clamp(min=1)  # a sampled <pad> would be padding to Hugging Face
    alone = replace(rollouts, tokens=tokens).rows(slice(0, 1))
    n = int(alone.mask.sum())
    ids = torch.cat([alone.prompt_tokens, alone.tokens[:, :n]], dim=1)
    expected = critic(input_ids=ids).logits.squeeze().float()  # pools the last token
    torch.testing.assert_close(token_scores(critic, alone)[0, n], expected, **ROUNDING)


NAMES = ["ppo_clip_loss", "gae", "value_loss", "kl_shaped_rewards", "whiten"]


def test_a_students_functions_are_those_that_ppo_trains_with(warm, task, ppo):
    called = set()

    plain = quiet(ppo(beta=0.1), policy=warm, task=task)
    mine = [spied(getattr(algorithms, name), called) for name in NAMES]
    same = quiet(ppo(beta=0.1), policy=warm, task=task, functions=mine)
    assert called == set(NAMES)
    assert torch.equal(weights(plain.policy), weights(same.policy))


def unfinished(name):
    def function(mask):
        raise NotImplementedError

    function.__name__ = name
    return function


def returning(name, value):
    def function(mask):
        return value(mask)

    function.__name__ = name
    return function


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        *[(unfinished(name), f"finish {name} first") for name in NAMES],
        (returning("gae", lambda mask: mask * 1.0), "must return (advantages, returns)"),
        (returning("gae", lambda mask: (mask / 0, mask * 1.0)), "gae returned NaN or infinity"),
        (returning("whiten", lambda mask: mask[0] * 1.0), "whiten must return a tensor of shape"),
        (returning("value_loss", lambda mask: mask.sum() * 1.0), "must be computed from `values`"),
        (returning("kl_shaped_reward", None), "did you mean 'kl_shaped_rewards'"),
    ],
)
def test_a_function_that_cannot_be_used_is_told_why(warm, task, ppo, function, sentence):
    with pytest.raises(UserError) as error:
        quiet(ppo(beta=0.1), policy=warm, task=task, functions=[function])
    assert sentence in str(error.value)


def test_a_step_cannot_replace_an_update_that_trains_two_networks(warm, task, ppo):
    with pytest.raises(UserError, match="ppo also trains a critic: step= cannot"):
        quiet(ppo(), policy=warm, task=task, step=algorithms.grpo_step)


def test_prompts_read_once_give_the_same_scores_and_gradients(warm):
    rollouts = warm.double().sample(["1?", "2 2 2?"], group_size=4, max_tokens=6)
    critic = value_head(warm)
    torch.nn.init.normal_(critic.score.weight)
    together = token_scores(critic, rollouts)
    rows = [token_scores(critic, rollouts.rows(slice(i, i + 1))) for i in range(8)]
    real = torch.nn.functional.pad(rollouts.mask, (1, 0), value=True)
    torch.testing.assert_close(together[real], torch.cat(rows)[real], **ROUNDING)
    gradients = []
    for scores in (together, torch.cat(rows)):
        critic.zero_grad()
        scores[real].square().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in critic.parameters()]))
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
