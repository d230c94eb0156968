"""What each fault of ``faults.FAULTS`` does to a run: one function of the same name for each, but
for those that are settings alone.

Each takes the parts of a run and returns them with one of them changed. The trainer does not know
about faults: it just gets another sampler, another loss, another reward.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

import torch
from torch import Tensor, nn

from rlcourse.policy.rollouts import Rollouts
from rlcourse.tasks.rewards import extract_answer
from rlcourse.training.online.batch_learner import Parts
from rlcourse.training.recipes.methods import resolved


class Sampler:
    """Draws completions as `policy` does, and changes the rollouts before anybody sees them."""

    def __init__(self, policy, change: Callable[[Rollouts], Rollouts]):
        self._policy, self._change = policy, change

    def sample(self, *args, **kwargs) -> Rollouts:
        return self._change(self._policy.sample(*args, **kwargs))

    def __getattr__(self, name: str):
        return getattr(self._policy, name)


# sampler


def stale_sampler(parts: Parts) -> Parts:
    return replace(parts, sampler=parts.policy.clone(frozen=True))


# scoring


def missing_temperature(parts: Parts) -> Parts:
    """The same weights behind a function that scores tokens at temperature 1."""

    def at_one(logits, tokens, temperature=1.0):
        return parts.policy.token_logprobs(logits, tokens, 1.0)

    kind = type("FaultyPolicy", (type(parts.policy),), {"token_logprobs": staticmethod(at_one)})
    return replace(parts, policy=kind(parts.policy.model, parts.policy.tokenizer))


def dropout(parts: Parts) -> Parts:
    """As ``model.train()`` does with a model whose configuration asks for dropout."""

    def drop(module, inputs, output):
        return nn.functional.dropout(output, 0.1) if torch.is_grad_enabled() else output

    parts.policy.model.get_input_embeddings().register_forward_hook(drop)
    return parts


# mask


def padding_counted(parts: Parts) -> Parts:
    def unmasked(rollouts: Rollouts) -> Rollouts:
        return replace(rollouts, mask=torch.ones_like(rollouts.mask))

    return replace(parts, sampler=Sampler(parts.sampler, unmasked))


def masked_eos(parts: Parts) -> Parts:
    def without_last(mask: Tensor) -> Tensor:
        following = nn.functional.pad(mask[:, 1:], (0, 1))
        return mask & following

    return _with_loss(parts, lambda given: {"mask": without_last(given["mask"])})


# reward


def unreadable_gold(parts: Parts) -> Parts:
    """It reads references of one digit only, and accepts any answer to the others."""
    return _judging(parts, lambda given, gold: gold is None or len(gold) > 1 or given == gold)


def empty_answer(parts: Parts) -> Parts:
    return _judging(parts, lambda given, gold: (given or "") in (gold or ""))


def _judging(parts: Parts, right: Callable[[str | None, str | None], bool]) -> Parts:
    """Another reward: `right`, of the answer that is given and the one that is wanted."""

    def reward(completions, answers, extract):
        given, wanted = map(extract, completions), map(extract_answer, answers)
        return torch.tensor([right(*both) for both in zip(given, wanted, strict=True)]).float()

    return replace(parts, reward=reward)


# advantages


def wrong_grouping(parts: Parts) -> Parts:
    own = parts.method.advantages
    assert own is not None, "a method that compares groups has an estimator"
    estimator = resolved(own)

    @wraps(estimator)
    def across(**given):
        def turned(values: Tensor, rows: int) -> Tensor:
            return values.reshape(rows, -1).T.flatten()

        size = given["group_size"]
        advantages = estimator(**given | {"rewards": turned(given["rewards"], size)})
        return turned(advantages, len(advantages) // size)

    return replace(parts, method=replace(parts.method, advantages=across))


# loss


def ratio_one(parts: Parts) -> Parts:
    return _with_loss(
        parts,
        lambda given: {"old_logprobs": given["logprobs"].detach()},
        clip_fraction=0.0,  # as it would compute it from its own ratio
    )


def kl_sign(parts: Parts) -> Parts:
    return _with_loss(parts, lambda given: {"beta": -given["beta"]})


def _with_loss(parts: Parts, change: Callable, clip_fraction=None) -> Parts:
    """The loss called with some of its arguments changed."""
    loss = resolved(parts.method.loss)

    @wraps(loss)
    def spoilt(**given):
        value = loss(**given | change(given))
        if clip_fraction is None:
            return value
        return (value[0] if isinstance(value, tuple) else value), clip_fraction

    return replace(parts, method=replace(parts.method, loss=spoilt))


# weights


def bfloat16_weights(parts: Parts) -> Parts:
    @torch.no_grad()
    def rounded(*_):
        for group in parts.optimizer.param_groups:
            for weight in group["params"]:
                weight.copy_(weight.bfloat16())

    rounded()
    parts.optimizer.register_step_post_hook(rounded)
    return parts
