"""Ways to get PPO's clip wrong, nearly all seen in code that was published."""

from functools import partial

import torch

from rlcourse.checks.exercise import Mistake
from rlcourse.checks.sketch import Sketch


def line_by_line(logprobs, old_logprobs, advantages, mask, clip=0.2):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * a, clipped * a)
    stopped = (clipped * a < ratio * a).to(ratio.dtype)
    count = mask.sum().clamp(min=1)
    loss = -(objective * mask).sum() / count
    share = (stopped * mask).sum() / count
    return loss, share.detach()


def whitened(advantages):
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)


_edit = Sketch(line_by_line, whitened).edit
_MIN = "torch.minimum(ratio * a, clipped * a)"
_which_tokens = partial(_edit, "the clip fraction: which tokens", "clipped * a < ratio * a")
_average_share = partial(_edit, "the clip fraction: its average", "(stopped * mask).sum() / count")
MISTAKES = (
    Mistake(
        "a loss in which stopped tokens count as 0",
        _edit("the clip: the min", _MIN, "(ratio * a).masked_fill(clipped * a < ratio * a, 0)"),
        "Its gradient is the right one, but not its value: a stopped token still counts with the "
        "clipped product, (1 ± ε) A.",
    ),
    Mistake(
        "the larger of the two terms",
        _edit("the clip: the min", "torch.minimum", "torch.maximum"),
        "The min keeps the *pessimistic* term, so that a token that moved the wrong way keeps the "
        "gradient that brings it back.",
    ),
    Mistake(
        "the clipped term alone",
        _edit("the clip: the min", _MIN, "clipped * a"),
        "Outside the band on the wrong side nothing would pull the token back: take the min with "
        "the unclipped term.",
    ),
    Mistake(
        "A · min(ratio, clip(ratio))",
        _edit("the clip: the min", _MIN, "torch.minimum(ratio, clipped) * a"),
        "For a negative advantage the smaller product has the larger ratio: multiply by A first, "
        "then take the min.",
    ),
    Mistake(
        "the unclipped objective",
        _edit("the clip: the min", _MIN, "ratio * a"),
        "Without the clip nothing ends a token's push while the batch is used again.",
    ),
    Mistake(
        "a loss that drops every token outside the band",
        _edit("the clip: the min", _MIN, "ratio * a * ((ratio - 1).abs() <= clip)"),
        "A token outside the band on the *wrong* side must come back, and one that is stopped "
        "still counts with its bound in the value: take the min of the two products.",
    ),
    Mistake(
        "a ratio upside down",
        _edit("the ratio: what it is made of", "(logprobs - old)", "(old - logprobs)"),
        "The new policy stands on top: exp(logprobs − old_logprobs).",
    ),
    Mistake(
        "the logarithm of the ratio in its place",
        _edit("the ratio: what it is made of", "(logprobs - old).exp()", "logprobs - old"),
        "The band is around 1, for a quotient of probabilities: take exp of the difference.",
    ),
    Mistake(
        "a quotient of probabilities that underflow",
        _edit(
            "the ratio: what it is made of", "(logprobs - old).exp()", "logprobs.exp() / old.exp()"
        ),
        "exp(−120) is 0 in float32 and 0/0 is NaN: subtract the log-probs first.",
        telling=1,
    ),
    Mistake(
        "log-probs in place of the ratio",
        _edit("the ratio: what it is made of", _MIN, "logprobs * a"),
        "That is REINFORCE's loss: with no ratio there is nothing to clip.",
    ),
    Mistake(
        "the ratio of whole completions",
        _edit(
            "the ratio: what it is made of",
            "(logprobs - old)",
            "((logprobs - old) * mask).sum(1, keepdim=True)",
        ),
        "PPO weighs and clips each token by its own ratio: the product over a completion leaves "
        "the band at once.",
    ),
    Mistake(
        "a ratio that no gradient passes through",
        _edit("the ratio: its gradient", ".exp()", ".exp().detach() + 0 * logprobs"),
        "The ratio *is* where the gradient comes from: detach the old log-probs, not the ratio.",
    ),
    Mistake(
        "a clip that changes the value but not the gradient",
        _edit(
            "the clip: the min",
            _MIN,
            "ratio * a + (torch.minimum(ratio * a, clipped * a) - ratio * a).detach()",
        ),
        "The clip is there for its gradient, which is 0 where the clipped term is the smaller.",
    ),
    Mistake(
        "a clipped term without gradient, which halves it inside the band",
        _edit("the clip: its gradient", "clipped * a)", "clipped.detach() * a)"),
        "Inside the band the two terms are equal and the min shares the gradient between them: "
        "both must be computed from the ratio with its graph.",
    ),
    Mistake(
        "an objective that is whitened inside",
        _edit(
            "the advantages: their scale",
            "advantages.detach()",
            "whitened(advantages.detach())",
        ),
        "Normalizing advantages is a choice of the caller's: use them as they come.",
    ),
    Mistake(
        "a band from 1/(1+ε) to 1+ε",
        _edit("the clip: its band", "clipped * a)", "ratio.clamp(1 / (1 + clip), 1 + clip) * a)"),
        "Equation 7's band is [1 − ε, 1 + ε].",
    ),
    Mistake(
        "a clip of the log-ratio at ±ε",
        _edit("the clip: its band", "clipped * a)", "ratio.log().clamp(-clip, clip).exp() * a)"),
        "The ratio itself is clipped, to [1 − ε, 1 + ε].",
    ),
    Mistake(
        "a clip from above only",
        _edit("the clip: its band", "clipped * a)", "ratio.clamp(max=1 + clip) * a)"),
        "A blamed token is stopped at the lower edge, 1 − ε.",
    ),
    Mistake(
        "a second bound, 3 A, on what a blamed token can cost",
        _edit(
            "the clip: no second bound",
            "stopped =",
            "objective = torch.where(a < 0, objective.maximum(3 * a), objective)\n    stopped =",
        ),
        "That is dual-clip PPO, a later variant. In equation 7 a token that went the wrong way is "
        "charged in full, however far it went.",
        telling=2,
    ),
    Mistake(
        "a clip of ratio · A at 1 ± ε",
        _edit("the clip: its band", "clipped * a)", "(ratio * a).clamp(1 - clip, 1 + clip))"),
        "The band is for the ratio; the advantage multiplies afterwards.",
    ),
    Mistake(
        "an ε of 0.2 whatever the argument says",
        _edit("the clip: its band", "1 - clip, 1 + clip", "0.8, 1.2"),
        "Use the argument `clip`, not its default.",
        telling=2,
    ),
    Mistake(
        "the objective, not the loss: the sign is missing",
        _edit("the sign", "loss = -", "loss = "),
        "Optimizers minimize: return minus the mean of the objective.",
    ),
    Mistake(
        "a mean in which padding takes part",
        _edit(
            "the averages",
            "count = mask.sum()",
            "mask = torch.ones_like(mask)\n    count = mask.sum()",
        ),
        "What stands after the end was never said: only entries with mask 1 enter the means.",
    ),
    Mistake(
        "a mean that counts padding as tokens",
        _edit("the averages", "mask.sum().clamp(min=1)", "mask.numel()"),
        "Divide by how many tokens are real, not by N · T.",
    ),
    Mistake(
        "a division by 0 when every row is empty",
        _edit("a batch without tokens", ".clamp(min=1)", ""),
        "With no real token at all the loss is 0: keep the divisor at 1 or more.",
        telling=1,
    ),
    Mistake(
        "the mean of each completion's mean",
        _edit(
            "the averages",
            "count = mask.sum().clamp(min=1)",
            "mask = mask / mask.sum(1, keepdim=True).clamp(min=1)\n    count = len(mask)",
        ),
        "That is GRPO's average, in lesson 06: here every real token of the batch counts the same.",
    ),
    Mistake(
        "a sum over tokens and a mean over completions",
        _edit(
            "the averages",
            "(objective * mask).sum() / count",
            "(objective * mask).sum() / len(mask)",
        ),
        "That is REINFORCE's average: here the sum is divided by the number of real tokens.",
    ),
    Mistake(
        "a sum over the tokens",
        _edit("the averages", "(objective * mask).sum() / count", "(objective * mask).sum()"),
        "As a sum, twice the batch would mean twice the step: divide by the number of real tokens.",
    ),
    Mistake(
        "advantages that are always taken for one number a row",
        _edit(
            "the advantages: their shape",
            "if a.dim() == 1:\n        a = a[:, None]",
            "a = a[:, None]",
        ),
        "With a critic there is an advantage for each token, (N, T): add the column only where "
        "`advantages.dim() == 1`.",
        telling=1,
    ),
    Mistake(
        "advantages laid along the tokens",
        _edit("the advantages: their shape", "a = a[:, None]", "a = a"),
        "(N,) against (N, T) lines up with T: write `advantages[:, None]`, so that every token of "
        "a row gets the row's advantage.",
    ),
    Mistake(
        "a loss through which gradient flows into the old log-probs",
        _edit("the constants: old log-probs", "old_logprobs.detach()", "old_logprobs"),
        "They are numbers from the time of sampling: `old_logprobs.detach()`.",
    ),
    Mistake(
        "a loss through which gradient flows into the advantages",
        _edit("the constants: advantages", "advantages.detach()", "advantages"),
        "An advantage is a number computed from rewards, a constant: `advantages.detach()`.",
    ),
    Mistake(
        "a clip fraction that counts every token outside the band",
        _which_tokens("(ratio - 1).abs() > clip"),
        "Outside the band on the wrong side the gradient still flows: count where the clipped "
        "product is the smaller one.",
    ),
    Mistake(
        "a clip fraction of the tokens at which the two terms differ or not: `<=` in place of `<`",
        _which_tokens("clipped * a <= ratio * a"),
        "Inside the band the two products are equal and nothing is stopped: the clipped one must "
        "be *strictly* smaller.",
    ),
    Mistake(
        "a clip fraction of the tokens above the band only",
        _which_tokens("(ratio > 1 + clip) & (a > 0)"),
        "A blamed token is stopped below the band.",
    ),
    *(
        Mistake(
            f"a clip fraction that counts tokens with advantage 0 {where} the band",
            _which_tokens(marked),
            "Where the advantage is 0 both products are 0 and nothing is stopped: compare the "
            "products, not the ratio with the band.",
            telling=1,
        )
        for where, marked in (
            ("below", "torch.where(a > 0, ratio > 1 + clip, ratio < 1 - clip)"),
            ("above", "torch.where(a >= 0, ratio > 1 + clip, ratio < 1 - clip)"),
        )
    ),
    Mistake(
        "a clip fraction of the tokens whose gradient flows",
        _which_tokens("clipped * a >= ratio * a"),
        "It is the share of tokens that the clip *stops*.",
    ),
    Mistake(
        "a clip fraction in which padding is counted",
        _average_share("stopped.mean()"),
        "Padding has no gradient to be stopped: average over real tokens.",
    ),
    Mistake(
        "a clip fraction whose padding counts as not stopped",
        _average_share("(stopped * mask).mean()"),
        "Divide by the number of real tokens, not by N · T.",
    ),
    Mistake(
        "the number of stopped tokens, not their share",
        _average_share("(stopped * mask).sum()"),
        "Divide by the number of real tokens.",
    ),
    Mistake(
        "the loss without the clip fraction",
        _edit("what is returned", "return loss, share.detach()", "return loss"),
        "Return both, `(loss, clip_fraction)`: the fraction is the first curve to look at when a "
        "run goes wrong.",
    ),
    Mistake(
        "the clip fraction first and the loss second",
        _edit("what is returned", "return loss, share.detach()", "return share.detach(), loss"),
        "Return `(loss, clip_fraction)`, in this order.",
    ),
    Mistake(
        "a mean from which stopped tokens are left out",
        _edit(
            "the average",
            "loss = -(objective * mask).sum() / count",
            "left = mask * (1 - stopped)\n"
            "    loss = -(ratio * a * left).sum() / left.sum().clamp(min=1)",
        ),
        "A stopped token still counts, with its bound in the sum and as one token in the divisor: "
        "otherwise the others weigh more, the more are stopped.",
    ),
)
