"""Ways to get GRPO's loss wrong, nearly all seen in code that was published."""

import torch

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.exercise import Mistake
from rlcourse.checks.sketch import Sketch


def line_by_line(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    ref = ref_logprobs.detach()
    x = ref - logprobs
    kl = x.exp() - 1 - x
    penalty = beta * kl
    objective = torch.minimum(ratio * a, clipped * a)
    per_token = objective - penalty
    rows = (per_token * mask).sum(1) / mask.sum(1).clamp(min=1)
    return -rows.mean()


_edit = Sketch(line_by_line, masked_mean).edit
_MIN = "torch.minimum(ratio * a, clipped * a)"
_ROWS = "(per_token * mask).sum(1) / mask.sum(1).clamp(min=1)"

MISTAKES = (
    Mistake(
        "a mean over all real tokens of the batch",
        _edit("the averages: over tokens", _ROWS, "masked_mean(per_token, mask)"),
        "That is DAPO's average, in lesson 07: GRPO takes each completion's mean first, and then "
        "the mean of these.",
    ),
    Mistake(
        "a mean that counts padding as tokens",
        _edit("the averages: over tokens", _ROWS, "(per_token * mask).mean(1)"),
        "Divide each row by the number of its own real tokens, not by T.",
    ),
    Mistake(
        "a mean in which padding takes part",
        _edit("the averages: over tokens", _ROWS, "per_token.mean(1)"),
        "What stands after the end was never said: only entries with mask 1 enter the mean.",
    ),
    Mistake(
        "a sum over each completion's tokens",
        _edit("the averages: over tokens", _ROWS, "(per_token * mask).sum(1)"),
        "REINFORCE summed; GRPO's equation 3 divides each completion's sum by its length.",
    ),
    Mistake(
        "a mean over the completions that are not empty",
        _edit(
            "the averages: over completions",
            "rows.mean()",
            "rows.sum() / mask.bool().any(1).sum().clamp(min=1)",
        ),
        "An empty row adds 0 and is counted all the same: divide by N.",
        telling=1,
    ),
    Mistake(
        "a division by the length 0 of an empty row",
        _edit("the averages: empty rows", "mask.sum(1).clamp(min=1)", "mask.sum(1)"),
        "0/0 is NaN, and one NaN spoils the whole batch: an empty row counts as 0.",
        telling=2,
    ),
    Mistake(
        "a sum over completions",
        _edit("the averages: over completions", "rows.mean()", "rows.sum()"),
        "The loss estimates an expectation: as a sum, twice the batch would mean twice the step.",
    ),
    Mistake(
        "the objective, not the loss: the sign is missing",
        _edit("the sign", "return -", "return "),
        "Optimizers minimize: what is returned is minus the objective.",
    ),
    Mistake(
        "a KL that is rewarded",
        _edit("the KL: its sign", "objective - penalty", "objective + penalty"),
        "The objective *loses* β times the KL; in the loss, its negative, the KL has a plus.",
    ),
    Mistake(
        "the KL the other way around",
        _edit("the KL: its direction", "ref - logprobs", "logprobs - ref"),
        "The samples come from πθ, so k3 is built on πref/πθ: e^{−d} − 1 + d with "
        "d = log πθ − log πref.",
    ),
    Mistake(
        "k3 without its −1",
        _edit("the KL: its estimate", "x.exp() - 1 - x", "x.exp() - x"),
        "Where the policies agree the penalty must be 0: x − 1 − log x.",
    ),
    Mistake(
        "k1, the plain log-ratio, as the penalty",
        _edit("the KL: its estimate", "x.exp() - 1 - x", "-x"),
        "As a loss k1 has a gradient that does not even depend on the reference (lesson 04); "
        "equation 4 is k3.",
    ),
    Mistake(
        "k2, half the squared log-ratio, as the penalty",
        _edit("the KL: its estimate", "x.exp() - 1 - x", "x**2 / 2"),
        "k2 is a fair choice (lesson 04), but not the one of equation 4, which is k3.",
    ),
    Mistake(
        "a penalty that is not weighed by β",
        _edit("the KL: its weight", "beta * kl", "1 * kl"),
        "The leash has a strength: multiply the KL by `beta`.",
    ),
    Mistake(
        "a loss without the penalty",
        _edit("the KL: its weight", "beta * kl", "0 * kl"),
        "Equation 3 subtracts β times the KL to the reference from every token's objective.",
    ),
    Mistake(
        "a β of 0.04 whatever the argument says",
        _edit("the KL: its weight", "beta * kl", "0.04 * kl"),
        "Use the argument `beta`, not its default.",
    ),
    Mistake(
        "an ε of 0.2 whatever the argument says",
        _edit("the clip: its band", "1 - clip, 1 + clip", "0.8, 1.2"),
        "Use the argument `clip`, not its default.",
        telling=1,
    ),
    Mistake(
        "a penalty without gradient",
        _edit("the KL: its gradient", "- penalty", "- penalty.detach()"),
        "A constant pulls nowhere: the penalty must be computed from `logprobs` with its graph.",
    ),
    Mistake(
        "the penalty inside the min",
        _edit(
            "the KL: its place",
            "(ratio * a,",
            "(ratio * a - penalty,",
            "objective - penalty",
            "objective",
        ),
        "The clip limits the reward's push only; the leash pulls outside the band, too: subtract "
        "the KL after the min.",
    ),
    Mistake(
        "the penalty subtracted from the advantage",
        _edit("the KL: its place", "= beta * kl", "= 0\n    a = a - (beta * kl).detach()"),
        "That is PPO's way, a shaped reward: GRPO leaves the advantage alone and puts the KL into "
        "the loss, where it has a gradient of its own.",
    ),
    Mistake(
        "a KL to the policy that sampled",
        _edit("the KL: to whom", "ref = ref_logprobs", "ref = old_logprobs"),
        "The leash holds the policy near the *reference*; staying near πold is the clip's work.",
    ),
    Mistake(
        "a ratio to the reference",
        _edit("the ratio: what it is made of", "old = old_logprobs", "old = ref_logprobs"),
        "The ratio corrects for who *sampled*, which is πold.",
    ),
    Mistake(
        "the larger of the two terms",
        _edit("the clip: the min", "torch.minimum", "torch.maximum"),
        "The min keeps the pessimistic one, so that a step in the wrong direction can be undone "
        "(lesson 05).",
    ),
    Mistake(
        "the clipped term alone",
        _edit("the clip: the min", _MIN, "clipped * a"),
        "A token outside the band on the *bad* side would get no gradient back: take the min "
        "with the unclipped term.",
    ),
    Mistake(
        "A · min(ratio, clip(ratio))",
        _edit("the clip: the min", _MIN, "torch.minimum(ratio, clipped) * a"),
        "For a negative advantage the smaller product has the larger ratio: multiply by A first, "
        "then take the min.",
    ),
    Mistake(
        "a band for the log-ratio",
        _edit(
            "the clip: its band",
            "ratio.clamp(1 - clip, 1 + clip)",
            "ratio.log().clamp(-clip, clip).exp()",
        ),
        "The ratio itself is clipped, to between 1 − ε and 1 + ε; log(1 + ε) is not ε.",
    ),
    Mistake(
        "ratios of 0 on padding, clamped up to 1 − ε",
        _edit(
            "the averages: over tokens",
            "(logprobs - old).exp()",
            "(logprobs - old).exp() * mask",
            "beta * kl",
            "beta * kl * mask",
            "(per_token * mask).sum(1)",
            "per_token.sum(1)",
        ),
        "The clamp makes 0.8 of a 0, and 0.8 · A is no longer nothing: leave padding out when you "
        "average, not before the clip.",
    ),
    Mistake(
        "a loss without the clip",
        _edit("the clip: the min", _MIN, "ratio * a"),
        "Without it nothing stops a token that has already moved far (lesson 05).",
    ),
    Mistake(
        "a ratio upside down",
        _edit("the ratio: what it is made of", "logprobs - old)", "old - logprobs)"),
        "The new policy stands on top: exp(logprobs − old_logprobs).",
    ),
    Mistake(
        "a ratio that no gradient passes through",
        _edit(
            "the ratio: its gradient", "(logprobs - old).exp()", "(logprobs - old).exp().detach()"
        ),
        "The ratio *is* where the gradient comes from: detach the old log-probs, not the ratio.",
    ),
    Mistake(
        "a ratio of the policy to itself, which is always 1",
        _edit("the ratio: what it is made of", "old = old_logprobs", "old = logprobs"),
        "The ratio is to the policy that *sampled*, `old_logprobs`; from the second update on the "
        "two differ, and the clip has something to do.",
    ),
    Mistake(
        "log-probs in place of the ratio",
        _edit("the ratio: what it is made of", _MIN, "logprobs * a"),
        "That is REINFORCE: right at the first update, uncorrected at every later one.",
    ),
    Mistake(
        "the ratio of whole completions",
        _edit(
            "the ratio: what it is made of",
            "(logprobs - old)",
            "((logprobs - old) * mask).sum(1, keepdim=True)",
        ),
        "GRPO weighs each token by its own ratio; a product over the completion has far more "
        "variance.",
    ),
    Mistake(
        "advantages laid along the tokens",
        _edit("the shape of the advantages", "a = a[:, None]", "a = a"),
        "(N,) against (N, T) lines up with T: write `advantages[:, None]`, so that every token of "
        "a row gets the row's advantage.",
    ),
    Mistake(
        "a loss through which gradient flows into the old log-probs",
        _edit("the constants: old log-probs", "old_logprobs.detach()", "old_logprobs"),
        "They are numbers from the time of sampling: `old_logprobs.detach()`.",
    ),
    Mistake(
        "a loss through which gradient flows into the reference",
        _edit("the constants: the reference", "ref_logprobs.detach()", "ref_logprobs"),
        "The reference is frozen: `ref_logprobs.detach()`.",
    ),
    Mistake(
        "a loss through which gradient flows into the advantages",
        _edit("the constants: advantages", "advantages.detach()", "advantages"),
        "An advantage is a number computed from rewards, a constant: `advantages.detach()`.",
    ),
)
