"""μ GRPO updates of a policy small enough to enumerate."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from rlcourse.algorithms.grpo import group_normalized_advantages, grpo_loss, grpo_step
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.specs import Spec


def _cases(draw: CaseSampler) -> Iterator[Case]:
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


def _case(
    label, draw, num_iterations, kind="sgd", lr=2.0, scale=1.0, stale_gradient=0.0, **options
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
    arguments = {
        "policy": Spec("toy_policy", {**size, "seed": seed, "stale_gradient": stale_gradient}),
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


def _step_as(
    shorten=clip_grad_norm_, change=None, result=list, passed=lambda clip, beta: (clip, beta)
):
    """`grpo_step` with another way to shorten gradients, another batch, or another result."""

    def step(policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0):
        losses = []
        for _ in range(num_iterations):
            batch = change(policy, rollouts) if change else rollouts
            optimizer.zero_grad()
            loss = _of(batch, policy.logprobs(batch), *passed(clip, beta))
            loss.backward()
            shorten(list(policy.parameters()), max_grad_norm)
            optimizer.step()
            losses.append(loss.item())
        return result(losses)

    return step


def _old_anew(policy, rollouts):
    return replace(rollouts, old_logprobs=policy.logprobs(rollouts).detach())


def _reference_anew(policy, rollouts):
    return replace(rollouts, ref_logprobs=policy.logprobs(rollouts).detach())


def _reference_is_old(policy, rollouts):
    return replace(rollouts, ref_logprobs=rollouts.old_logprobs)


def _rewards_for_advantages(policy, rollouts):
    return replace(rollouts, advantages=rollouts.rewards)


def _normalized_again(policy, rollouts):
    advantages = group_normalized_advantages(rollouts.advantages, len(rollouts))
    return replace(rollouts, advantages=advantages)


def _sampled_again(policy, rollouts):
    again = policy.sample(len(rollouts), torch.Generator().manual_seed(0))
    return replace(again, ref_logprobs=again.old_logprobs, advantages=rollouts.advantages)


def _scored_once(retain):
    def step(policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0):
        logprobs, losses = policy.logprobs(rollouts), []
        for _ in range(num_iterations):
            optimizer.zero_grad()
            loss = _of(rollouts, logprobs, clip, beta)
            loss.backward(retain_graph=retain)
            clip_grad_norm_(policy.parameters(), max_grad_norm)
            optimizer.step()
            losses.append(loss.item())
        return losses

    return step


def _accumulating(clear_first):
    def step(policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0):
        losses = []
        if clear_first:
            optimizer.zero_grad()
        for _ in range(num_iterations):
            loss = _of(rollouts, policy.logprobs(rollouts), clip, beta)
            loss.backward()
            clip_grad_norm_(policy.parameters(), max_grad_norm)
            optimizer.step()
            losses.append(loss.item())
        return losses

    return step


def _one_step(policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0):
    optimizer.zero_grad()
    losses = []
    for _ in range(num_iterations):
        loss = _of(rollouts, policy.logprobs(rollouts), clip, beta)
        loss.backward()
        losses.append(loss.item())
    clip_grad_norm_(policy.parameters(), max_grad_norm)
    optimizer.step()
    return losses


def _old_at_the_start(policy, optimizer, rollouts, num_iterations, **options):
    return grpo_step(policy, optimizer, _old_anew(policy, rollouts), num_iterations, **options)


def _once(policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0):
    return grpo_step(policy, optimizer, rollouts, 1, clip, beta, max_grad_norm)


def _losses_afterwards(
    policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0
):
    losses = []
    for _ in range(num_iterations):
        grpo_step(policy, optimizer, rollouts, 1, clip, beta, max_grad_norm)
        losses.append(_of(rollouts, policy.logprobs(rollouts), clip, beta).item())
    return losses


def _losses_as_tensors(
    policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0
):
    losses = grpo_step(policy, optimizer, rollouts, num_iterations, clip, beta, max_grad_norm)
    return [torch.tensor(loss, dtype=rollouts.old_logprobs.dtype) for loss in losses]


def _uphill(policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0):
    losses = []
    for _ in range(num_iterations):
        optimizer.zero_grad()
        loss = _of(rollouts, policy.logprobs(rollouts), clip, beta)
        (-loss).backward()
        clip_grad_norm_(policy.parameters(), max_grad_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


def by_autograd(
    policy, optimizer, rollouts, num_iterations, clip=0.2, beta=0.04, max_grad_norm=1.0
):
    losses, parameters = [], list(policy.parameters())
    while len(losses) < num_iterations:
        loss = _of(rollouts, policy.logprobs(rollouts), clip, beta)
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(loss, parameters), strict=True
        ):
            parameter.grad = gradient
        clip_grad_norm_(parameters, max_grad_norm)
        optimizer.step()
        losses.append(float(loss.detach()))
    optimizer.zero_grad()
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


EXERCISE = Exercise(
    reference=grpo_step,
    lesson="06_grpo",
    section="Several updates on one batch",
    points=4,
    difficulty=3,
    minutes=15,
    cases=_cases,
    mistakes=(
        Mistake(
            "a step whose old log-probs are computed anew for every update",
            _step_as(change=_old_anew),
            "Then the ratio is always 1 and nothing is ever clipped: `rollouts.old_logprobs` were "
            "stored when the batch was sampled, and stay.",
        ),
        Mistake(
            "a step whose old log-probs are computed when the updates begin",
            _old_at_the_start,
            "Only a batch that this very policy has sampled makes that right: the ratio corrects "
            "for who sampled, and `rollouts.old_logprobs` remembers.",
        ),
        Mistake(
            "a step that samples again before every update",
            _step_as(change=_sampled_again),
            "The advantages belong to the completions that were rewarded: all μ updates use that "
            "one batch.",
        ),
        Mistake(
            "a step whose reference follows the policy",
            _step_as(change=_reference_anew),
            "A leash to oneself does not hold: `rollouts.ref_logprobs` are those of the frozen "
            "model.",
        ),
        Mistake(
            "a step that takes the policy that sampled for the reference",
            _step_as(change=_reference_is_old),
            "πold is for the ratio, πref for the KL: the batch carries both.",
        ),
        Mistake(
            "a step on the raw rewards",
            _step_as(change=_rewards_for_advantages),
            "The comparison within the group is in `rollouts.advantages`; the raw rewards have no "
            "baseline.",
        ),
        Mistake(
            "a step that normalizes the advantages once more",
            _step_as(change=_normalized_again),
            "`rollouts.advantages` are final: they have been compared within their group already.",
        ),
        Mistake(
            "a step that scores the completions once, before the loop",
            _scored_once(retain=True),
            "After the first update these log-probs describe a policy that is gone: "
            "`policy.logprobs(rollouts)` belongs inside the loop.",
        ),
        Mistake(
            "a step that goes backward twice through one graph",
            _scored_once(retain=False),
            "The log-probs were computed before the loop: every update needs a fresh "
            "`policy.logprobs(rollouts)`, under the weights as they are now.",
        ),
        Mistake(
            "a step whose gradients were never cleared",
            _accumulating(clear_first=False),
            "`backward` *adds* to the gradients: `optimizer.zero_grad()` at the start of every "
            "update.",
        ),
        Mistake(
            "a step that clears the gradients only once, before the loop",
            _accumulating(clear_first=True),
            "From the second update on, the first one's gradient still pushes along: clear inside "
            "the loop.",
        ),
        Mistake(
            "one optimizer step for all updates together",
            _one_step,
            "Each of the μ updates moves the weights: `optimizer.step()` belongs inside the loop.",
        ),
        Mistake(
            "a single update, whatever `num_iterations` says",
            _once,
            "μ is the argument `num_iterations`: loop over it.",
        ),
        Mistake(
            "a step with the default band and leash, whatever `clip` and `beta` say",
            _step_as(passed=lambda clip, beta: (0.2, 0.04)),
            "Pass both on to `grpo_loss`.",
        ),
        Mistake(
            "a step that does not pass `clip` on",
            _step_as(passed=lambda clip, beta: (0.2, beta)),
            "`grpo_loss` has a band of its own by default: hand it yours.",
            telling=2,
        ),
        Mistake(
            "a step that does not pass `beta` on",
            _step_as(passed=lambda clip, beta: (clip, 0.04)),
            "`grpo_loss` has a leash of its own by default: hand it yours.",
        ),
        Mistake(
            "a step with `clip` and `beta` exchanged",
            _step_as(passed=lambda clip, beta: (beta, clip)),
            "In `grpo_loss` the band comes before the leash; naming the arguments avoids the "
            "question.",
        ),
        Mistake(
            "a step without gradient clipping",
            _step_as(shorten=lambda parameters, max_norm: None),
            "One lucky batch can throw the policy away: shorten the gradient after `backward` and "
            "before `step`, in every update.",
            telling=2,
        ),
        Mistake(
            "a step whose gradient is clipped entry by entry",
            _step_as(shorten=clip_grad_value_),
            "Clipping each entry changes the direction: clip the norm (`clip_grad_norm_`).",
            telling=2,
        ),
        Mistake(
            "a step clipped to norm 1 whatever `max_grad_norm` says",
            _step_as(shorten=lambda parameters, max_norm: clip_grad_norm_(parameters, 1.0)),
            "Pass the argument on: `clip_grad_norm_(policy.parameters(), max_grad_norm)`.",
            telling=1,
        ),
        Mistake(
            "a step uphill on the loss",
            _uphill,
            "The loss is the negative of the objective already: go down on it, as optimizers do.",
        ),
        Mistake(
            "right updates that report each loss after its step",
            _losses_afterwards,
            "Return the loss that the gradient was taken of: it is known before the step, and "
            "scoring again costs a pass.",
        ),
        Mistake(
            "right updates that report tensors",
            _losses_as_tensors,
            "A list of Python floats is asked for: `loss.item()` also lets go of the graph.",
        ),
        Mistake(
            "right updates that report the last loss only",
            _step_as(result=lambda losses: losses[-1]),
            "The list has an entry for each update: append inside the loop.",
        ),
        Mistake(
            "right updates that report the mean loss",
            _step_as(result=lambda losses: sum(losses) / len(losses)),
            "The list has an entry for each update: how the loss moves within a batch is worth "
            "seeing.",
        ),
    ),
    alternatives=(by_autograd, by_hand),
    hints=(
        "It is `reinforce_step` of lesson 02 in a loop. What changes from one pass of the loop to "
        "the next, and what does not?",
        "Only the policy changes. So `policy.logprobs(rollouts)` is inside the loop, and "
        "everything else that the loss needs is read from `rollouts`, where it was stored.",
        "Collect each loss as a Python float:\n\n"
        "    losses = []\n"
        "    for _ in range(num_iterations):\n"
        "        optimizer.zero_grad()\n"
        "        logprobs = policy.logprobs(rollouts)\n"
        "        loss = grpo_loss(logprobs, rollouts.old_logprobs, ..., clip, beta)\n"
        "        loss.backward()\n"
        "        ...\n"
        "    return losses",
    ),
)
