"""One REINFORCE update of a policy small enough to enumerate."""

from collections.abc import Iterator

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from rlcourse.algorithms.policy_gradient import reinforce_loss
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, Spec
from rlcourse.courses.modules import beside

_reinforce_loss = beside(__file__, "reinforce_loss.py")
baseline_loss = _reinforce_loss.baseline_loss
token_mean_loss = _reinforce_loss.token_mean_loss


def cases(draw: CaseSampler) -> Iterator[Case]:
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


def scale(parameters, factor):
    """Multiply all gradients by what `factor` makes of their norm."""
    gradients = [p.grad for p in parameters]
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    for gradient in gradients:
        gradient *= factor(norm)


sketch = Sketch(line_by_line, scale, clip_grad_value_, baseline_loss, token_mean_loss)
alternatives = (_step_by_autograd,)
