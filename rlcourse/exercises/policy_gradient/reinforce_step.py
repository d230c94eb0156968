"""One REINFORCE update of a policy small enough to enumerate."""

from collections.abc import Iterator
from functools import partial

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from rlcourse.algorithms.policy_gradient import reinforce_loss, reinforce_step
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
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


def line_by_line(policy, optimizer, batch, max_grad_norm=1.0):
    optimizer.zero_grad()
    logprobs = policy.logprobs(batch)
    loss = reinforce_loss(logprobs, batch.rewards, batch.mask)
    loss.backward()
    clip_grad_norm_(policy.parameters(), max_grad_norm)
    optimizer.step()
    return loss.item()


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


def scale(parameters, factor):
    """Multiply all gradients by what `factor` makes of their norm."""
    gradients = [p.grad for p in parameters]
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    for gradient in gradients:
        gradient *= factor(norm)


_edit = Sketch(line_by_line, scale, clip_grad_value_, baseline_loss, token_mean_loss).alone
_clearing = partial(_edit, "optimizer.zero_grad()")
_clipping = partial(_edit, "clip_grad_norm_(policy.parameters(), max_grad_norm)")

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
            _clearing("pass"),
            "`backward` *adds*, and the gradients may hold something when the step begins: call "
            "`optimizer.zero_grad()` before it, not after the step and not never.",
        ),
        Mistake(
            "a step on the log-probs that were stored when sampling",
            _edit("policy.logprobs(batch)", "batch.old_logprobs"),
            "`batch.old_logprobs` are numbers without a graph: score the completions again with "
            "`policy.logprobs(batch)`.",
        ),
        Mistake(
            "an update that changes nothing",
            _clipping("optimizer.zero_grad()"),
            "Either `optimizer.step()` was never called, or there was no gradient when it was: "
            "clear first, then `backward`, then `step`.",
        ),
        Mistake(
            "a step taken before `backward`",
            _clearing("optimizer.step()", "    optimizer.step()", "    optimizer.zero_grad()"),
            "The optimizer moved along what the batch before had left: call `backward` first, "
            "then `step`.",
        ),
        Mistake(
            "a step uphill on the loss",
            _edit("loss.backward()", "(-loss).backward()"),
            "The loss is the negative of the objective already: go down on it, as optimizers do.",
        ),
        Mistake(
            "a step without gradient clipping",
            _clipping("pass"),
            "One lucky batch can throw the policy away: clip the norm after `backward`, when the "
            "gradient is there, and before `step`.",
        ),
        Mistake(
            "a step whose gradient is clipped entry by entry",
            _edit("clip_grad_norm_", "clip_grad_value_"),
            "Clipping each entry changes the direction: clip the norm (`clip_grad_norm_`), which "
            "changes the length only.",
        ),
        Mistake(
            "a step clipped to norm 1 whatever `max_grad_norm` says",
            _clipping("clip_grad_norm_(policy.parameters(), 1.0)"),
            "Pass the argument on: `clip_grad_norm_(policy.parameters(), max_grad_norm)`.",
            telling=2,
        ),
        Mistake(
            "a step whose gradient always gets the full norm",
            _clipping(
                "scale(policy.parameters(), lambda norm: max_grad_norm / norm.clamp(min=1e-12))"
            ),
            "Clipping shortens long gradients and leaves short ones alone.",
        ),
        Mistake(
            "a step whose gradient is always scaled to `max_grad_norm`",
            _clipping("scale(policy.parameters(), lambda norm: max_grad_norm / (norm + 1e-6))"),
            "Clipping shortens long gradients and leaves short ones alone: scale only if the norm "
            "is larger than `max_grad_norm`.",
        ),
        Mistake(
            "a step whose parameter tensors are clipped one by one",
            _clipping("for p in policy.parameters():\n        clip_grad_norm_([p], max_grad_norm)"),
            "The norm is that of *all* parameters together, `clip_grad_norm_(policy.parameters(), "
            "…)`: scaled one by one they no longer point where the gradient did.",
            telling=1,
        ),
        Mistake(
            "a step on rewards minus their mean",
            _edit("reinforce_loss", "baseline_loss"),
            "That is a baseline, the idea of lesson 03; REINFORCE as it stands uses the reward "
            "itself: call your `reinforce_loss`.",
        ),
        Mistake(
            "a step that imitates every completion, whatever its reward",
            _edit("batch.rewards", "torch.ones_like(batch.rewards)"),
            "Without rewards this is supervised fine-tuning on the policy's own samples.",
        ),
        Mistake(
            "a step on the token mean",
            _edit("reinforce_loss", "token_mean_loss"),
            "The log-prob of a completion is the *sum* over its tokens; use your `reinforce_loss`.",
        ),
        Mistake(
            "a right step that reports the loss after it",
            _edit(
                "return loss",
                "return reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)",
            ),
            "Return the loss that the gradient was taken of: it is known before the step, and "
            "scoring again costs a pass.",
        ),
        Mistake(
            "two steps along one gradient",
            _edit("optimizer.step()", "optimizer.step()\n    optimizer.step()"),
            "One batch, one gradient, one step: afterwards the policy is another and the gradient "
            "is out of date.",
        ),
    ),
    alternatives=(_step_by_autograd, _step_clipped_by_hand, line_by_line),
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
