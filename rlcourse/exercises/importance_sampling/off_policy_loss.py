"""REINFORCE on the completions of an older policy."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import importance_weights, off_policy_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor) -> Case:
        named = {"logprobs": logprobs, "old_logprobs": old, "advantages": advantages, "mask": mask}
        return Case(label, named)

    new, old = tensor([[0.7, 0.1]]).log(), tensor([[0.5, 0.3]]).log()
    yield case("worked: ratios 1.4 and 1/3", new, old, tensor([1.0]), torch.ones(1, 2) > 0)
    for label, logprobs, mask in draw.batches():
        old = draw.logprobs(*logprobs.shape).to(logprobs.dtype)
        yield case(label, logprobs, old, draw.rewards(len(logprobs), logprobs.dtype), mask)
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    for ratio, advantage in ((20, -1.0), (0.05, 2.5), (1.5, -2.5)):
        old = tensor([[-5.0]])
        row = old + tensor([[ratio]]).log(), old, tensor([advantage]), torch.ones(1, 1) > 0
        yield case(f"ratio {ratio:g}, advantage {advantage:g}", *row)
    yield case("the first step: πθ = πold", logprobs, logprobs.clone(), draw.rewards(rows), mask)
    for rows, tokens in (draw.shape(), (draw.size(3, 4),) * 2):
        advantages = draw.normal(rows, tokens)
        label = "an advantage for each token" + ", N equals T" * (rows == tokens)
        logprobs, old = draw.logprobs(rows, tokens), draw.logprobs(rows, tokens)
        yield case(label, logprobs, old, advantages, draw.mask(rows, tokens))


def _per_token(advantages: Tensor) -> Tensor:
    return advantages.detach()[:, None] if advantages.dim() == 1 else advantages.detach()


def _loss_by_loop(logprobs, old_logprobs, advantages, mask):
    total = logprobs.new_zeros(())
    for i in range(len(logprobs)):
        for t in range(logprobs.shape[1]):
            if mask[i, t]:
                advantage = advantages[i] if advantages.dim() == 1 else advantages[i, t]
                ratio = (logprobs[i, t] - old_logprobs[i, t].item()).exp()
                total = total - ratio * advantage.item()
    return total / len(logprobs)


def _loss_by_einsum(logprobs, old_logprobs, advantages, mask):
    ratio = torch.exp(logprobs - old_logprobs.detach())
    weights = mask.to(logprobs.dtype) * _per_token(advantages)
    return -torch.einsum("nt,nt->", ratio, weights) / len(logprobs)


def _loss_with_detached_weight(logprobs, old_logprobs, advantages, mask):
    """ratio = detached ratio · e^(logprob − logprob detached), term by term the same."""
    weight = importance_weights(logprobs, old_logprobs, mask).detach()
    one = (logprobs - logprobs.detach()).exp()
    return -(weight * one * _per_token(advantages)).sum(1).mean()


def _empty_completions_weigh_one(logprobs, old_logprobs, advantages, mask):
    """As lesson 04 derives it: the product over the completion, 1 where it has no token."""
    weights = ((logprobs - old_logprobs.detach()) * mask).sum(1).exp()
    of_row = advantages if advantages.dim() == 1 else advantages.mean(1)
    return -(weights * of_row.detach()).mean()


def line_by_line(logprobs, old_logprobs, advantages, mask):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    weights = ratio * mask
    rows = (weights * a).sum(1)
    return -rows.mean()


_edit = Sketch(line_by_line, importance_weights).edit


EXERCISE = Exercise(
    reference=off_policy_loss,
    lesson="04_importance_sampling",
    section="A loss for used rollouts",
    points=3,
    difficulty=3,
    minutes=8,
    differentiable=("logprobs",),
    constants=("old_logprobs", "advantages"),
    cases=_cases,
    mistakes=(
        Mistake(
            "log-prob times ratio times advantage",
            _edit("the ratio: what it multiplies", "ratio * mask", "ratio * logprobs * mask"),
            "∇ratio = ratio · ∇ log π already: with a log-prob beside a live ratio the product "
            "rule brings in a second term that does not belong.",
        ),
        Mistake(
            "a constant ratio times the log-prob",
            _edit(
                "the ratio: what it multiplies", "ratio * mask", "ratio.detach() * logprobs * mask"
            ),
            "The gradient is the right one, but the value is not that of the objective, the "
            "reweighted advantage, which lesson 05 clips: let the ratio itself carry the "
            "gradient.",
        ),
        Mistake(
            "advantages that get one more dimension even where each token has its own",
            _edit(
                "the advantages: their shape",
                "if a.dim() == 1:\n        a = a[:, None]",
                "a = a[:, None]",
            ),
            "Advantages of shape (N, T) fit the ratios as they are; only (N,) needs a column, "
            "`advantages[:, None]`.",
            telling=2,
        ),
        Mistake(
            "a ratio that carries no gradient",
            _edit("the ratio: its gradient", ".exp()", ".exp().detach()"),
            "In this loss the gradient comes from nowhere but the ratio: detach the old log-probs, "
            "not the ratio.",
        ),
        Mistake(
            "a loss through which gradient flows into the old log-probs",
            _edit("the constants: old log-probs", "old_logprobs.detach()", "old_logprobs"),
            "The old policy is a fact of the past: use `old_logprobs.detach()`.",
        ),
        Mistake(
            "a loss through which gradient flows into the advantages",
            _edit("the constants: advantages", "advantages.detach()", "advantages"),
            "An advantage is a verdict, a constant: use `advantages.detach()`.",
        ),
        Mistake(
            "the objective, not the loss: the sign is missing",
            _edit("the sign", "return -", "return "),
            "An optimizer minimizes: without the minus it makes good completions less likely.",
        ),
        Mistake(
            "the ratio upside down, πold/πθ",
            _edit("the ratio: what it is made of", "(logprobs - old)", "(old - logprobs)"),
            "The new policy stands above: its gradient must raise what earned an advantage.",
        ),
        Mistake(
            "REINFORCE without any ratio",
            _edit("the ratio: what it is made of", "(logprobs - old).exp()", "logprobs"),
            "The completions were drawn by an older policy: weigh each token by how much likelier "
            "it has become.",
        ),
        Mistake(
            "the log-ratio in place of the ratio",
            _edit("the ratio: what it is made of", "(logprobs - old).exp()", "logprobs - old"),
            "Its gradient is that of plain REINFORCE: the weight is gone, take exp.",
        ),
        Mistake(
            "a sum that counts padding",
            _edit("the padding", "ratio * mask", "ratio"),
            "What stands after the end of a completion was never said: multiply by the mask.",
        ),
        Mistake(
            "a ratio of 1 on padding",
            _edit(
                "the padding",
                "(logprobs - old)",
                "((logprobs - old) * mask)",
                "ratio * mask",
                "ratio",
            ),
            "e⁰ = 1: mask after the exponential, not before it only.",
        ),
        Mistake(
            "the ratio of the whole completion at each of its tokens",
            _edit(
                "the ratio: what it is made of",
                "(logprobs - old)",
                "((logprobs - old) * mask).sum(1, keepdim=True)",
            ),
            "Each token has a ratio of its own here; what the completion's product would do is "
            "the lesson's topic, too.",
        ),
        Mistake(
            "one weight for a whole completion, and one term",
            _edit(
                "the ratio: what it is made of",
                "(weights * a).sum(1)",
                'importance_weights(logprobs, old, mask, "sequence") * a.mean(1)',
            ),
            "That is the exact reweighting of completions, whose weights explode with length; this "
            "loss weighs every token by its own ratio and sums over the tokens.",
        ),
        Mistake(
            "ratios clipped to [0.8, 1.2]",
            _edit("no clip", "ratio * mask", "(ratio * mask).clamp(0.8, 1.2)"),
            "Clipping is PPO's idea and comes in lesson 05.",
        ),
        Mistake(
            "advantages laid along the tokens in place of the rows",
            _edit("the advantages: their shape", "a = a[:, None]", "a = a"),
            "(N,) against (N, T) lines up with T: it fails where N ≠ T, and where N = T token t "
            "gets the advantage of row t; write `advantages[:, None]`.",
        ),
        Mistake(
            "the mean advantage of a row in place of each token's own",
            _edit(
                "the advantages: of each token", "rows =", "a = a.mean(1, keepdim=True)\n    rows ="
            ),
            "Advantages of shape (N, T) belong to tokens: multiply them as they are.",
            telling=2,
        ),
        Mistake(
            "a mean over all real tokens of the batch",
            _edit(
                "the averages: over completions",
                "rows.mean()",
                "rows.sum() / mask.sum().clamp(min=1)",
            ),
            "As in `reinforce_loss`: sum over a completion's tokens, mean over completions.",
        ),
        Mistake(
            "a mean over each completion's tokens in place of the sum",
            _edit(
                "the averages: over tokens",
                "(weights * a).sum(1)",
                "(weights * a).sum(1) / mask.sum(1).clamp(min=1)",
            ),
            "As in `reinforce_loss`: sum over a completion's tokens, mean over completions.",
        ),
        Mistake(
            "a sum over completions in place of the mean",
            _edit("the averages: over completions", "rows.mean()", "rows.sum()"),
            "The loss estimates an expectation: as a sum, twice the batch would mean twice the "
            "step.",
        ),
        Mistake(
            "the weight of a whole completion, 1 for an empty one",
            _empty_completions_weigh_one,
            "That estimate is right, and its noise grows with the length. Here each token has its "
            "own ratio, and an empty completion has none.",
        ),
    ),
    alternatives=(_loss_by_loop, _loss_by_einsum, _loss_with_detached_weight, line_by_line),
    hints=(
        "In the expectation under the old policy one factor per token depends on θ. What is its "
        "gradient?",
        "The ratio itself takes the place of the log-prob in `reinforce_loss`: ratio times "
        "advantage, summed over a completion's tokens, mean over completions, minus sign.",
        "Mind that advantages may be (N,) or (N, T):\n\n"
        "    ratio = importance_weights(...)  # (N, T), 0 on padding\n"
        "    if advantages.dim() == 1:\n"
        "        advantages = advantages[:, None]\n"
        "    return -(ratio * advantages...).sum(dim=1).mean()  # a constant: detach",
    ),
)
