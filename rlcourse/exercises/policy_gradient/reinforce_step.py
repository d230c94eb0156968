"""One REINFORCE update of a policy small enough to enumerate."""

from collections.abc import Iterator

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from rlcourse.algorithms.policy_gradient import reinforce_loss, reinforce_step
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.specs import Spec
from rlcourse.exercises.policy_gradient.reinforce_loss import baseline_loss, token_mean_loss


def _step_cases(draw: CaseSampler) -> Iterator[Case]:
    yield _step_case("a small gradient", draw, lr=0.5, max_grad_norm=100.0)
    yield _step_case("the gradient is clipped", draw, lr=0.5, scale=30.0)
    yield _step_case("a small max_grad_norm", draw, lr=1.0, max_grad_norm=0.1, scale=100.0)
    yield _step_case("a large max_grad_norm", draw, lr=0.1, max_grad_norm=3.0, scale=100.0)
    left = {"stale_gradient": 0.7}
    yield _step_case("gradients left from before", draw, lr=0.5, max_grad_norm=100.0, **left)
    yield _step_case("left-over gradients, clipped", draw, lr=0.5, scale=30.0, **left)
    yield _step_case("AdamW", draw, kind="adamw", lr=0.1, **left)
    yield _step_case("rewards of 0 and 1", draw, lr=0.5, max_grad_norm=100.0, binary=True)
    yield _step_case("every sentence once", draw, lr=0.5, max_grad_norm=1e3, enumerated=True)
    yield _step_case(
        "two parameter tensors", draw, lr=0.5, max_grad_norm=1.0, scale=30.0, bias=True
    )


def _step_case(
    label, draw, lr, kind="sgd", max_grad_norm=None, scale=1.0, binary=False, enumerated=False,
    stale_gradient=0.0, bias=False,
) -> Case:  # fmt: skip
    """A toy policy and a batch that an older policy sampled."""
    from rlcourse.policy.toy import ToyPolicy

    size = {"vocab_size": draw.integer(2, 3), "length": draw.size(2, 3), "eos_id": 0}
    seed = draw.integer(0, 10_000)
    if enumerated:  # weighted by probability, so that the step follows the exact gradient
        policy = ToyPolicy(**size, seed=seed)
        batch = policy.trajectories()
        weights = (len(batch) * policy.probabilities()).detach()
        rewards = weights * draw.rewards(len(batch))
    else:
        generator = torch.Generator().manual_seed(seed)
        batch = ToyPolicy(**size, seed=seed + 1).sample(draw.size(4, 6), generator)
        rewards = draw.binary_rewards(len(batch)) if binary else scale * draw.rewards(len(batch))
    starts = {"seed": seed, "stale_gradient": stale_gradient, "bias": bias}
    sampled = {"tokens": batch.tokens, "mask": batch.mask, "rewards": rewards}
    arguments = {
        "policy": Spec("toy_policy", {**size, **{k: v for k, v in starts.items() if v}}),
        "optimizer": Spec(kind, {"lr": lr}),
        "batch": Spec("sentences", sampled),
    }
    if max_grad_norm:
        arguments["max_grad_norm"] = max_grad_norm
    # torch divides by norm + 1e-6 when it clips; whoever clips by hand need not.
    return Case(label, arguments, atol=1e-5)


def _step_as(loss_of=reinforce_loss, clip=clip_grad_norm_):
    """`reinforce_step` with another loss or another way to clip."""

    def step(policy, optimizer, batch, max_grad_norm=1.0):
        optimizer.zero_grad()
        loss = loss_of(policy.logprobs(batch), batch.rewards, batch.mask)
        loss.backward()
        clip(list(policy.parameters()), max_grad_norm)
        optimizer.step()
        return loss.item()

    return step


def _step_no_zero_grad(policy, optimizer, batch, max_grad_norm=1.0):
    loss = reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)
    loss.backward()
    clip_grad_norm_(policy.parameters(), max_grad_norm)
    optimizer.step()
    return loss.item()


def _step_stale_logprobs(policy, optimizer, batch, max_grad_norm=1.0):
    optimizer.zero_grad()
    reinforce_loss(batch.old_logprobs, batch.rewards, batch.mask).backward()


def _step_nothing(policy, optimizer, batch, max_grad_norm=1.0):
    loss = reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    return loss.item()


def _step_before_backward(policy, optimizer, batch, max_grad_norm=1.0):
    optimizer.step()
    return _step_nothing(policy, optimizer, batch)


def _step_uphill(policy, optimizer, batch, max_grad_norm=1.0):
    optimizer.zero_grad()
    loss = reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)
    (-loss).backward()
    clip_grad_norm_(policy.parameters(), max_grad_norm)
    optimizer.step()
    return loss.item()


def _step_loss_afterwards(policy, optimizer, batch, max_grad_norm=1.0):
    reinforce_step(policy, optimizer, batch, max_grad_norm)
    return float(reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask))


def _step_twice(policy, optimizer, batch, max_grad_norm=1.0):
    loss = reinforce_step(policy, optimizer, batch, max_grad_norm)
    optimizer.step()
    return loss


def _clip_not(parameters, max_norm):
    pass


def _clip_at_one(parameters, max_norm):
    clip_grad_norm_(parameters, 1.0)


def _clip_to_norm(parameters, max_norm):
    norm = torch.cat([p.grad.flatten() for p in parameters]).norm()
    for parameter in parameters:
        parameter.grad *= max_norm / norm.clamp(min=1e-12)


def _clip_to_norm_and_epsilon(parameters, max_norm):
    norm = torch.cat([p.grad.flatten() for p in parameters]).norm()
    for parameter in parameters:
        parameter.grad *= max_norm / (norm + 1e-6)


def _clip_one_by_one(parameters, max_norm):
    for parameter in parameters:
        clip_grad_norm_([parameter], max_norm)


def _loss_imitation(logprobs, rewards, mask):
    return reinforce_loss(logprobs, torch.ones_like(rewards), mask)


def _step_by_autograd(policy, optimizer, batch, max_grad_norm=1.0):
    parameters = list(policy.parameters())
    loss = reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    clip_grad_norm_(parameters, max_grad_norm)
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def _step_clipped_by_hand(policy, optimizer, batch, max_grad_norm=1.0):
    policy.zero_grad(set_to_none=False)
    loss = reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)
    loss.backward()
    norm = sum((p.grad**2).sum() for p in policy.parameters()) ** 0.5
    if norm > max_grad_norm:
        for parameter in policy.parameters():
            parameter.grad.mul_(max_grad_norm / norm)
    optimizer.step()
    return loss.item()


EXERCISE = Exercise(
    reference=reinforce_step,
    lesson="02_policy_gradient",
    section="One update",
    points=3,
    difficulty=2,
    minutes=15,
    cases=_step_cases,
    mistakes=(
        Mistake(
            "a step that adds to the gradients which it found",
            _step_no_zero_grad,
            "`backward` *adds*, and the gradients may hold something when the step begins: call "
            "`optimizer.zero_grad()` before it, not after the step and not never.",
        ),
        Mistake(
            "a step on the log-probs that were stored when sampling",
            _step_stale_logprobs,
            "`batch.old_logprobs` are numbers without a graph: score the completions again with "
            "`policy.logprobs(batch)`.",
        ),
        Mistake(
            "an update that changes nothing",
            _step_nothing,
            "Either `optimizer.step()` was never called, or there was no gradient when it was: "
            "clear first, then `backward`, then `step`.",
        ),
        Mistake(
            "a step taken before `backward`",
            _step_before_backward,
            "The optimizer moved along what the batch before had left: call `backward` first, "
            "then `step`.",
        ),
        Mistake(
            "a step uphill on the loss",
            _step_uphill,
            "The loss is the negative of the objective already: go down on it, as optimizers do.",
        ),
        Mistake(
            "a step without gradient clipping",
            _step_as(clip=_clip_not),
            "One lucky batch can throw the policy away: clip the norm after `backward`, when the "
            "gradient is there, and before `step`.",
        ),
        Mistake(
            "a step whose gradient is clipped entry by entry",
            _step_as(clip=clip_grad_value_),
            "Clipping each entry changes the direction: clip the norm (`clip_grad_norm_`), which "
            "changes the length only.",
        ),
        Mistake(
            "a step clipped to norm 1 whatever `max_grad_norm` says",
            _step_as(clip=_clip_at_one),
            "Pass the argument on: `clip_grad_norm_(policy.parameters(), max_grad_norm)`.",
            telling=2,
        ),
        Mistake(
            "a step whose gradient always gets the full norm",
            _step_as(clip=_clip_to_norm),
            "Clipping shortens long gradients and leaves short ones alone.",
        ),
        Mistake(
            "a step whose gradient is always scaled to `max_grad_norm`",
            _step_as(clip=_clip_to_norm_and_epsilon),
            "Clipping shortens long gradients and leaves short ones alone: scale only if the norm "
            "is larger than `max_grad_norm`.",
        ),
        Mistake(
            "a step whose parameter tensors are clipped one by one",
            _step_as(clip=_clip_one_by_one),
            "The norm is that of *all* parameters together, `clip_grad_norm_(policy.parameters(), "
            "…)`: scaled one by one they no longer point where the gradient did.",
            telling=1,
        ),
        Mistake(
            "a step on rewards minus their mean",
            _step_as(loss_of=baseline_loss),
            "That is a baseline, the idea of lesson 03; REINFORCE as it stands uses the reward "
            "itself: call your `reinforce_loss`.",
        ),
        Mistake(
            "a step that imitates every completion, whatever its reward",
            _step_as(loss_of=_loss_imitation),
            "Without rewards this is supervised fine-tuning on the policy's own samples.",
        ),
        Mistake(
            "a step on the token mean",
            _step_as(loss_of=token_mean_loss),
            "The log-prob of a completion is the *sum* over its tokens; use your `reinforce_loss`.",
        ),
        Mistake(
            "a right step that reports the loss after it",
            _step_loss_afterwards,
            "Return the loss that the gradient was taken of: it is known before the step, and "
            "scoring again costs a pass.",
        ),
        Mistake(
            "two steps along one gradient",
            _step_twice,
            "One batch, one gradient, one step: afterwards the policy is another and the gradient "
            "is out of date.",
        ),
    ),
    alternatives=(_step_by_autograd, _step_clipped_by_hand),
    hints=(
        "Five things happen, and their order matters: clear, compute, differentiate, clip, step.",
        "The loss needs log-probs *with* a graph, from `policy.logprobs(batch)`. "
        "`torch.nn.utils.clip_grad_norm_` clips in place.",
        "The return value is a Python float:\n\n"
        "    optimizer.zero_grad()\n"
        "    loss = reinforce_loss(..., batch.rewards, batch.mask)\n"
        "    loss.backward()\n"
        "    torch.nn.utils.clip_grad_norm_(policy.parameters(), ...)\n"
        "    ...\n"
        "    return loss.item()",
    ),
)
