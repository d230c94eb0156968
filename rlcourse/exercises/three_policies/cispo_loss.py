"""A loss in which no token loses its gradient."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.algorithms.three_policies import cispo_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.ppo.clipped_loss_mistakes import columns, of_the_loss
from rlcourse.exercises.three_policies.batches import batches, near


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, mask: Tensor, **given) -> Case:
        arguments = {
            "logprobs": logprobs,
            "old_logprobs": near(draw, logprobs, 0.8),
            "advantages": draw.rewards(len(logprobs), logprobs.dtype),
            "mask": mask,
        }
        return Case(label, arguments | given)

    for label, logprobs, mask in batches(draw):
        yield case(label, logprobs, mask, cap=1.5)
    old, one = tensor([[-2.0]]), torch.ones(1, 1) > 0
    for ratio, advantage in ((1.5, 1.0), (8.0, 1.0), (0.1, -1.0), (20.0, -1.0)):
        yield case(
            f"worked: ratio {ratio:g}, advantage {advantage:+.0f}",
            old + tensor([[ratio]]).log(),
            one,
            old_logprobs=old,
            advantages=tensor([advantage]),
        )
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    far = logprobs + 2 * draw.normal(rows, tokens)
    yield case("no cap given", logprobs, mask, old_logprobs=far)
    yield case("a cap of 1", logprobs, mask, cap=1.0)
    yield case("a high cap", logprobs, mask, old_logprobs=far, cap=100.0)
    yield case("the first update", logprobs, mask, old_logprobs=logprobs.clone())
    logprobs, mask = draw.logprobs(6, 9), draw.mask(6, 9)
    per_token = draw.rewards(54).reshape(6, 9)
    yield case("an advantage for every token", logprobs, mask, advantages=per_token, cap=1.5)
    mask = draw.mask(2, 3)
    rare = draw.logprobs(2, 3).masked_fill(~mask, -200).float()
    logprobs = draw.logprobs(2, 3).float()
    yield case("padding of log-prob −200, float32", logprobs, mask, old_logprobs=rare)


def by_loop(logprobs, old_logprobs, advantages, mask, cap=5.0):
    terms = []
    for i, t in mask.bool().nonzero().tolist():
        a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
        w = min(cap, float((logprobs[i, t] - old_logprobs[i, t]).detach().exp()))
        terms.append(-w * a * logprobs[i, t])
    return torch.stack(terms).mean() if terms else (0 * logprobs).sum()


def by_sum(logprobs, old_logprobs, advantages, mask, cap=5.0):
    kept = mask > 0
    with torch.no_grad():
        log_ratio = torch.where(kept, logprobs - old_logprobs, -torch.inf)
        w = log_ratio.exp().minimum(torch.tensor(cap, dtype=logprobs.dtype))
        w = w * columns(advantages)
    total = (torch.where(kept, logprobs, 0.0) * w).sum()
    return -total / kept.sum().clamp(min=1).to(total.dtype)


def line_by_line(logprobs, old_logprobs, advantages, mask, cap=5.0):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    kept = mask.bool()
    old = old_logprobs.detach()
    ratio = (logprobs - old).masked_fill(~kept, 0).exp()
    weights = ratio.detach().clamp(max=cap)
    terms = weights * a * logprobs
    average = masked_mean(terms, mask)
    return -average


_sketch = Sketch(line_by_line)
_edit = _sketch.edit
_TERMS, _AVERAGE = "weights * a * logprobs", "masked_mean(terms, mask)"


EXERCISE = Exercise(
    reference=cispo_loss,
    lesson="12_three_policies",
    section="No token left behind: CISPO",
    points=4,
    difficulty=3,
    minutes=12,
    differentiable=("logprobs",),
    constants=("old_logprobs", "advantages"),
    cases=_cases,
    mistakes=(
        Mistake(
            "weights that a gradient flows through",
            _edit("the weight: its gradient", "ratio.detach()", "ratio"),
            "The weight is a constant, and log πθ beside it is what is learned: detach the ratio.",
        ),
        Mistake(
            "a clipped ratio without log πθ",
            _edit("what is learned", "ratio.detach()", "ratio", _TERMS, "weights * a"),
            "A clamped ratio has no gradient above the cap, which is what CISPO is there to mend: "
            "it is REINFORCE, log πθ times a constant.",
        ),
        Mistake(
            "PPO's min, with the cap as its upper edge",
            _edit("what is learned", _TERMS, "torch.minimum(ratio * a, ratio.clamp(max=cap) * a)"),
            "There is no min here: a constant weight multiplies A · log πθ.",
        ),
        Mistake(
            "a probability in place of its logarithm",
            _edit("what is learned", _TERMS, "weights * a * logprobs.exp()"),
            "It is REINFORCE with a weight: the gradient is that of log πθ.",
        ),
        Mistake(
            "REINFORCE without weights",
            _edit("the weight: what it is made of", _TERMS, "a * logprobs"),
            "From the second update on the tokens are somebody else's: weigh them by πθ/πold.",
        ),
        Mistake(
            "weights upside down",
            _edit("the weight: what it is made of", "(logprobs - old)", "(old - logprobs)"),
            "The new policy stands on top: logprobs − old_logprobs.",
        ),
        Mistake(
            "weights without the cap",
            _edit("the cap", ".clamp(max=cap)", ""),
            "The cap is all that bounds this loss: `clamp(max=cap)`.",
        ),
        Mistake(
            "a cap of 5, whatever the argument says",
            _edit("the cap", "max=cap", "max=5.0"),
            "Use the argument, not its default.",
        ),
        Mistake(
            "a cap of 1 + cap",
            _edit("the cap", "max=cap", "max=1 + cap"),
            "`cap` is the bound itself, not its distance from 1.",
        ),
        Mistake(
            "a band around 1, with a bound from below",
            _edit("the cap", "clamp(max=cap)", "clamp(1 / cap, cap)"),
            "There is no lower bound: a token that has become unlikely counts for little.",
        ),
        Mistake(
            "PPO's band around 1",
            _edit("the cap", "clamp(max=cap)", "clamp(0.8, 1.2)"),
            "There is one bound, `cap`, far above 1.",
        ),
        Mistake(
            "no weight at all above the cap",
            _edit("the cap", ".clamp(max=cap)", " * (ratio <= cap)"),
            "Then such a token has no gradient, as under PPO's clip: it keeps the weight `cap`.",
        ),
        Mistake(
            "an advantage that only counts by its sign",
            _edit("the advantages: their size", _TERMS, "weights * a.sign() * logprobs"),
            "The advantage says how much, too.",
        ),
        *of_the_loss(_sketch),
        Mistake(
            "GRPO's average: the mean of each completion, then of these",
            _edit("the average", _AVERAGE, "masked_mean(terms, mask, dim=1).mean()"),
            "All real tokens of the batch alike: `masked_mean` without `dim`.",
        ),
        Mistake(
            "a sum over tokens, divided by the number of completions",
            _edit("the average", _AVERAGE, "terms.masked_fill(~kept, 0).sum() / len(mask)"),
            "CISPO divides by the number of real tokens.",
        ),
        Mistake(
            "a mean over all N·T positions, padding included",
            _edit("the average", _AVERAGE, "(terms * mask).mean()"),
            "Divide by the number of real tokens.",
        ),
    ),
    alternatives=(by_loop, by_sum, line_by_line),
    hints=(
        "It is `reinforce_loss` with one more factor: what a token counts for. Which of the "
        "factors is learned from?",
        "weight · advantage · log πθ, averaged over real tokens. The weight is πθ/πold, detached, "
        "at most `cap`.",
        "With the reference's steps:\n\n"
        "    weights = importance_weights(logprobs, ..., mask).detach().clamp(max=...)\n"
        "    advantages = advantages.detach()\n"
        "    if advantages.dim() == 1:\n"
        "        advantages = advantages[:, None]\n"
        "    return -masked_mean(weights * advantages * ..., mask)",
    ),
)
