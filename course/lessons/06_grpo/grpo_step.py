"""μ GRPO updates of a policy small enough to enumerate."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from rlcourse.algorithms.grpo import group_normalized_advantages, grpo_loss
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, Spec


def cases(draw: CaseSampler) -> Iterator[Case]:
    free = {"max_grad_norm": 1e6}
    yield _case("one update", draw, num_iterations=1, **free)
    yield _case("three updates", draw, num_iterations=3, **free)
    # Without a leash, since its pull grows with πref/πθ and throws a policy that moves so far away.
    far = {**free, "beta": 0.0}
    yield _case("several updates that leave the band", draw, num_iterations=4, lr=20.0, **far)
    yield _case("a narrow band", draw, num_iterations=3, lr=5.0, clip=0.01, **far)
    yield _case("hardly any band", draw, num_iterations=3, clip=1e-3, **free)
    yield _case("a strong leash", draw, num_iterations=2, beta=2.0, **free)
    yield _case("no leash", draw, num_iterations=2, beta=0.0, **free)
    yield _case("the default band, leash and norm", draw, num_iterations=2)
    yield _case("the gradient is clipped", draw, num_iterations=2, scale=1000.0)
    yield _case("a small max_grad_norm", draw, num_iterations=2, max_grad_norm=0.1, scale=1000.0)
    yield _case("gradients left from before", draw, num_iterations=2, stale_gradient=0.7, **free)
    yield _case("AdamW", draw, num_iterations=3, kind="adamw", lr=0.1)
    yield _case("two parameter tensors", draw, num_iterations=1, scale=1000.0, bias=True)


def _case(
    label, draw, num_iterations, kind="sgd", lr=2.0, scale=1.0, stale_gradient=0.0, bias=False,
    **options,
) -> Case:  # fmt: skip
    """A toy policy, and a batch that a neighbor of it sampled and another one anchors."""
    from rlcourse.policy.toy import ToyPolicy

    size = {"vocab_size": 3, "length": draw.size(2, 3), "eos_id": 0}
    seed = draw.integer(0, 10_000)
    old, reference = (ToyPolicy(**size, seed=seed) for _ in range(2))
    with torch.no_grad():
        for neighbor in (old, reference):
            neighbor.logits += 0.3 * draw.normal(*neighbor.logits.shape)
    batch = old.sample(draw.size(6, 8), torch.Generator().manual_seed(seed))
    columns = {name: value for name, value in vars(batch).items() if value is not None}
    columns |= {
        "old_logprobs": old.logprobs(batch).detach(),
        "ref_logprobs": reference.logprobs(batch).detach(),
        "rewards": draw.binary_rewards(len(batch)),
        "advantages": scale * draw.rewards(len(batch)),
    }
    starts = {"seed": seed, "stale_gradient": stale_gradient, "bias": bias}
    arguments = {
        "policy": Spec("toy_policy", {**size, **starts}),
        "optimizer": Spec(kind, {"lr": lr}),
        "rollouts": Spec("rollouts", columns),
        "num_iterations": num_iterations,
        **options,
    }
    # torch divides by norm + 1e-6 when it clips; whoever clips by hand need not.
    return Case(label, arguments, atol=1e-5)


def _of(batch, logprobs, clip, beta):
    return grpo_loss(
        logprobs, batch.old_logprobs, batch.ref_logprobs, batch.advantages, batch.mask, clip, beta
    )


def line_by_line(
    policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0
):
    old, ref, advantages = rollouts.old_logprobs, rollouts.ref_logprobs, rollouts.advantages
    losses = []
    for _ in range(num_iterations):
        optimizer.zero_grad()
        logprobs = policy.logprobs(rollouts)
        loss = grpo_loss(logprobs, old, ref, advantages, rollouts.mask, clip, beta)
        loss.backward()
        clip_grad_norm_(policy.parameters(), max_grad_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


def by_hand(policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0):
    """The stored log-probs copied first, the norm computed by hand, gradients kept as zeros."""
    fixed = replace(rollouts, old_logprobs=rollouts.old_logprobs.detach().clone())
    losses = []
    for _ in range(num_iterations):
        policy.zero_grad(set_to_none=False)
        loss = _of(fixed, policy.logprobs(rollouts), clip, beta)
        loss.backward()
        norm = sum(p.grad.square().sum() for p in policy.parameters()).sqrt()
        for parameter in policy.parameters():
            parameter.grad.mul_((max_grad_norm / norm).clamp(max=1))
        optimizer.step()
        losses.append(loss.item())
    return losses


sketch = Sketch(line_by_line, group_normalized_advantages, clip_grad_value_)
alternatives = (by_hand,)
