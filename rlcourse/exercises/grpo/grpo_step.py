"""μ GRPO updates of a policy small enough to enumerate."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from rlcourse.algorithms.grpo import group_normalized_advantages, grpo_loss, grpo_step
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
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


_edit = Sketch(line_by_line, group_normalized_advantages, clip_grad_value_).alone
_CLEAR, _SCORE = "optimizer.zero_grad()", "logprobs = policy.logprobs(rollouts)"
_CLIP, _STEP = "clip_grad_norm_(policy.parameters(), max_grad_norm)", "optimizer.step()"
_cleared_once = partial(_edit, "losses = []", f"losses = []\n    {_CLEAR}", _CLEAR, "pass")
_scored_once = partial(_edit, "losses = []", f"losses = []\n    {_SCORE}", _SCORE, "pass")
_passing = partial(_edit, "clip, beta)")
_returned = partial(_edit, "return losses")

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
            _edit("old, ref, advantages, rollouts", "logprobs.detach(), ref, advantages, rollouts"),
            "Then the ratio is always 1 and nothing is ever clipped: `rollouts.old_logprobs` were "
            "stored when the batch was sampled, and stay.",
        ),
        Mistake(
            "a step whose old log-probs are computed when the updates begin",
            _edit(
                "old, ref, advantages = rollouts.old_logprobs",
                "old, ref, advantages = policy.logprobs(rollouts).detach()",
            ),
            "Only a batch that this very policy has sampled makes that right: the ratio corrects "
            "for who sampled, and `rollouts.old_logprobs` remembers.",
        ),
        Mistake(
            "a step that samples again before every update",
            _edit(
                _SCORE,
                "rollouts = policy.sample(len(rollouts), torch.Generator().manual_seed(0))\n"
                f"        old = ref = rollouts.old_logprobs\n        {_SCORE}",
            ),
            "The advantages belong to the completions that were rewarded: all μ updates use that "
            "one batch.",
        ),
        Mistake(
            "a step whose reference follows the policy",
            _edit("ref, advantages, rollouts", "logprobs.detach(), advantages, rollouts"),
            "A leash to oneself does not hold: `rollouts.ref_logprobs` are those of the frozen "
            "model.",
        ),
        Mistake(
            "a step that takes the policy that sampled for the reference",
            _edit("rollouts.ref_logprobs", "rollouts.old_logprobs"),
            "πold is for the ratio, πref for the KL: the batch carries both.",
        ),
        Mistake(
            "a step on the raw rewards",
            _edit("rollouts.advantages", "rollouts.rewards"),
            "The comparison within the group is in `rollouts.advantages`; the raw rewards have no "
            "baseline.",
        ),
        Mistake(
            "a step that normalizes the advantages once more",
            _edit(
                "rollouts.advantages",
                "group_normalized_advantages(rollouts.advantages, len(rollouts))",
            ),
            "`rollouts.advantages` are final: they have been compared within their group already.",
        ),
        Mistake(
            "a step that scores the completions once, before the loop",
            _scored_once("backward()", "backward(retain_graph=True)"),
            "After the first update these log-probs describe a policy that is gone: "
            "`policy.logprobs(rollouts)` belongs inside the loop.",
        ),
        Mistake(
            "a step that goes backward twice through one graph",
            _scored_once(),
            "The log-probs were computed before the loop: every update needs a fresh "
            "`policy.logprobs(rollouts)`, under the weights as they are now.",
        ),
        Mistake(
            "a step whose gradients were never cleared",
            _edit(_CLEAR, "pass"),
            "`backward` *adds* to the gradients: `optimizer.zero_grad()` at the start of every "
            "update.",
        ),
        Mistake(
            "a step that clears the gradients only once, before the loop",
            _cleared_once(),
            "From the second update on, the first one's gradient still pushes along: clear inside "
            "the loop.",
        ),
        Mistake(
            "one optimizer step for all updates together",
            _cleared_once(
                _CLIP,
                "pass",
                _STEP,
                "pass",
                "return losses",
                f"{_CLIP}\n    {_STEP}\n    return losses",
            ),
            "Each of the μ updates moves the weights: `optimizer.step()` belongs inside the loop.",
        ),
        Mistake(
            "a single update, whatever `num_iterations` says",
            _edit("range(num_iterations)", "range(1)"),
            "μ is the argument `num_iterations`: loop over it.",
        ),
        Mistake(
            "a step with the default band and leash, whatever `clip` and `beta` say",
            _passing("0.2, 0.04)"),
            "Pass both on to `grpo_loss`.",
        ),
        Mistake(
            "a step that does not pass `clip` on",
            _passing("0.2, beta)"),
            "`grpo_loss` has a band of its own by default: hand it yours.",
            telling=2,
        ),
        Mistake(
            "a step that does not pass `beta` on",
            _passing("clip, 0.04)"),
            "`grpo_loss` has a leash of its own by default: hand it yours.",
        ),
        Mistake(
            "a step with `clip` and `beta` exchanged",
            _passing("beta, clip)"),
            "In `grpo_loss` the band comes before the leash; naming the arguments avoids the "
            "question.",
        ),
        Mistake(
            "a step without gradient clipping",
            _edit(_CLIP, "pass"),
            "One lucky batch can throw the policy away: shorten the gradient after `backward` and "
            "before `step`, in every update.",
            telling=2,
        ),
        Mistake(
            "a step whose gradient is clipped entry by entry",
            _edit("clip_grad_norm_", "clip_grad_value_"),
            "Clipping each entry changes the direction: clip the norm (`clip_grad_norm_`).",
            telling=2,
        ),
        Mistake(
            "a step clipped to norm 1 whatever `max_grad_norm` says",
            _edit("parameters(), max_grad_norm", "parameters(), 1.0"),
            "Pass the argument on: `clip_grad_norm_(policy.parameters(), max_grad_norm)`.",
            telling=1,
        ),
        Mistake(
            "a step uphill on the loss",
            _edit("loss.backward()", "(-loss).backward()"),
            "The loss is the negative of the objective already: go down on it, as optimizers do.",
        ),
        Mistake(
            "right updates that report each loss after its step",
            _edit("loss.item()", "_of(rollouts, policy.logprobs(rollouts), clip, beta).item()"),
            "Return the loss that the gradient was taken of: it is known before the step, and "
            "scoring again costs a pass.",
        ),
        Mistake(
            "right updates that report tensors",
            _edit("loss.item()", "loss.detach()"),
            "A list of Python floats is asked for: `loss.item()` also lets go of the graph.",
        ),
        Mistake(
            "right updates that report the last loss only",
            _returned("return losses[-1]"),
            "The list has an entry for each update: append inside the loop.",
        ),
        Mistake(
            "right updates that report the mean loss",
            _returned("return sum(losses) / len(losses)"),
            "The list has an entry for each update: how the loss moves within a batch is worth "
            "seeing.",
        ),
    ),
    alternatives=(by_autograd, by_hand, line_by_line),
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
