"""Ways to get PPO's clip wrong, nearly all seen in code that was published."""

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.algorithms.ppo import ppo_clip_loss
from rlcourse.checks.exercise import Mistake


def _columns(advantages: Tensor) -> Tensor:
    return (advantages[:, None] if advantages.dim() == 1 else advantages).detach()


def _ratio(logprobs, old_logprobs):
    return (logprobs - old_logprobs.detach()).exp()


def _clamp(ratio, clip):
    return ratio.clamp(1 - clip, 1 + clip)


def _min(ratio, a, clip):
    return torch.minimum(ratio * a, _clamp(ratio, clip) * a)


def _stopped(ratio, a, clip):
    return _clamp(ratio, clip) * a < ratio * a


def _outside(ratio, a, clip):
    return (ratio - 1).abs() > clip


def variant(
    ratio=_ratio, objective=_min, stopped=_stopped, average=masked_mean, share=masked_mean,
    band=lambda clip: clip, columns=_columns, sign=1.0, result=lambda loss, share: (loss, share),
):  # fmt: skip
    """`ppo_clip_loss` with one of its parts replaced."""

    def loss(logprobs, old_logprobs, advantages, mask, clip=0.2):
        r, a, eps = ratio(logprobs, old_logprobs), columns(advantages), band(clip)
        value = -sign * average(objective(r, a, eps).expand_as(r), mask)
        marked = stopped(r, a, eps).to(r.dtype).expand_as(r)
        return result(value, share(marked, mask).detach())

    return loss


def _rows_then_batch(x, mask):
    return masked_mean(x, mask, dim=1).mean()


def _nan_mean(x, mask):
    return (x * mask).sum() / mask.sum()


def _one_number_a_row(logprobs, old_logprobs, advantages, mask, clip=0.2):
    ratio, a = _ratio(logprobs, old_logprobs), advantages.detach()[:, None]
    marked = _stopped(ratio, a, clip).to(ratio.dtype)
    return -masked_mean(_min(ratio, a, clip), mask), masked_mean(marked, mask).detach()


def _half_inside(ratio, a, clip):
    """The clipped term from a detached ratio: inside the band the min shares the gradient."""
    return torch.minimum(ratio * a, _clamp(ratio.detach(), clip) * a)


def _symmetric_in_log(ratio, a, clip):
    return torch.minimum(ratio * a, ratio.clamp(1 / (1 + clip), 1 + clip) * a)


def _clipped_log_ratio(ratio, a, clip):
    return torch.minimum(ratio * a, ratio.log().clamp(-clip, clip).exp() * a)


def _factored(ratio, a, clip):
    return torch.minimum(ratio, _clamp(ratio, clip)) * a


def _masked_outside(ratio, a, clip):
    return ratio * a * ~_outside(ratio, a, clip)


def _straight_through(ratio, a, clip):
    objective = _min(ratio, a, clip)
    return ratio * a + (objective - ratio * a).detach()


def _above_only(ratio, a, clip):
    return torch.minimum(ratio * a, ratio.clamp(max=1 + clip) * a)


def _dual(ratio, a, clip):
    objective = _min(ratio, a, clip)
    return torch.where(a < 0, torch.maximum(objective, 3 * a), objective)


def _clip_by_advantage(ratio, a, clip):
    return torch.minimum(ratio * a, (ratio * a).clamp(1 - clip, 1 + clip))


def _whitened(logprobs, old_logprobs, advantages, mask, clip=0.2):
    a = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
    return ppo_clip_loss(logprobs, old_logprobs, a, mask, clip)


def _sequence_ratio(logprobs, old_logprobs, advantages, mask, clip=0.2):
    total = ((logprobs - old_logprobs.detach()) * mask).sum(1, keepdim=True)
    return ppo_clip_loss(total.expand_as(logprobs), torch.zeros_like(logprobs), advantages, mask,
                         clip)  # fmt: skip


def _no_ratio(logprobs, old_logprobs, advantages, mask, clip=0.2):
    _, share = ppo_clip_loss(logprobs, old_logprobs, advantages, mask, clip)
    return -masked_mean(logprobs * _columns(advantages), mask), share.detach()


def _padding_objective(logprobs, old_logprobs, advantages, mask, clip=0.2):
    everything = torch.ones_like(logprobs)
    return ppo_clip_loss(logprobs, old_logprobs, advantages, everything, clip)


MISTAKES = (
    Mistake(
        "a loss in which stopped tokens count as 0",
        variant(objective=lambda r, a, clip: (r * a).masked_fill(_stopped(r, a, clip), 0)),
        "Its gradient is the right one, but not its value: a stopped token still counts with the "
        "clipped product, (1 ± ε) A.",
    ),
    Mistake(
        "the larger of the two terms",
        variant(objective=lambda r, a, clip: torch.maximum(r * a, _clamp(r, clip) * a)),
        "The min keeps the *pessimistic* term, so that a token that moved the wrong way keeps the "
        "gradient that brings it back.",
    ),
    Mistake(
        "the clipped term alone",
        variant(objective=lambda r, a, clip: _clamp(r, clip) * a),
        "Outside the band on the wrong side nothing would pull the token back: take the min with "
        "the unclipped term.",
    ),
    Mistake(
        "A · min(ratio, clip(ratio))",
        variant(objective=_factored),
        "For a negative advantage the smaller product has the larger ratio: multiply by A first, "
        "then take the min.",
    ),
    Mistake(
        "the unclipped objective",
        variant(objective=lambda r, a, clip: r * a),
        "Without the clip nothing ends a token's push while the batch is used again.",
    ),
    Mistake(
        "a loss that drops every token outside the band",
        variant(objective=_masked_outside),
        "A token outside the band on the *wrong* side must come back, and one that is stopped "
        "still counts with its bound in the value: take the min of the two products.",
    ),
    Mistake(
        "a ratio upside down",
        variant(ratio=lambda new, old: (old.detach() - new).exp()),
        "The new policy stands on top: exp(logprobs − old_logprobs).",
    ),
    Mistake(
        "the logarithm of the ratio in its place",
        variant(ratio=lambda new, old: new - old.detach()),
        "The band is around 1, for a quotient of probabilities: take exp of the difference.",
    ),
    Mistake(
        "a quotient of probabilities that underflow",
        variant(ratio=lambda new, old: new.exp() / old.detach().exp()),
        "exp(−120) is 0 in float32 and 0/0 is NaN: subtract the log-probs first.",
        telling=1,
    ),
    Mistake(
        "log-probs in place of the ratio",
        _no_ratio,
        "That is REINFORCE's loss: with no ratio there is nothing to clip.",
    ),
    Mistake(
        "the ratio of whole completions",
        _sequence_ratio,
        "PPO weighs and clips each token by its own ratio: the product over a completion leaves "
        "the band at once.",
    ),
    Mistake(
        "a ratio that no gradient passes through",
        variant(ratio=lambda new, old: _ratio(new, old).detach() + 0 * new),
        "The ratio *is* where the gradient comes from: detach the old log-probs, not the ratio.",
    ),
    Mistake(
        "a clip that changes the value but not the gradient",
        variant(objective=_straight_through),
        "The clip is there for its gradient, which is 0 where the clipped term is the smaller.",
    ),
    Mistake(
        "a clipped term without gradient, which halves it inside the band",
        variant(objective=_half_inside),
        "Inside the band the two terms are equal and the min shares the gradient between them: "
        "both must be computed from the ratio with its graph.",
    ),
    Mistake(
        "an objective that is whitened inside",
        _whitened,
        "Normalizing advantages is a choice of the caller's: use them as they come.",
    ),
    Mistake(
        "a band from 1/(1+ε) to 1+ε",
        variant(objective=_symmetric_in_log),
        "Equation 7's band is [1 − ε, 1 + ε].",
    ),
    Mistake(
        "a clip of the log-ratio at ±ε",
        variant(objective=_clipped_log_ratio),
        "The ratio itself is clipped, to [1 − ε, 1 + ε].",
    ),
    Mistake(
        "a clip from above only",
        variant(objective=_above_only),
        "A blamed token is stopped at the lower edge, 1 − ε.",
    ),
    Mistake(
        "a second bound, 3 A, on what a blamed token can cost",
        variant(objective=_dual),
        "That is dual-clip PPO, a later variant. In equation 7 a token that went the wrong way is "
        "charged in full, however far it went.",
        telling=2,
    ),
    Mistake(
        "a clip of ratio · A at 1 ± ε",
        variant(objective=_clip_by_advantage),
        "The band is for the ratio; the advantage multiplies afterwards.",
    ),
    Mistake(
        "an ε of 0.2 whatever the argument says",
        variant(band=lambda clip: 0.2),
        "Use the argument `clip`, not its default.",
        telling=2,
    ),
    Mistake(
        "the objective, not the loss: the sign is missing",
        variant(sign=-1.0),
        "Optimizers minimize: return minus the mean of the objective.",
    ),
    Mistake(
        "a mean in which padding takes part",
        _padding_objective,
        "What stands after the end was never said: only entries with mask 1 enter the means.",
    ),
    Mistake(
        "a mean that counts padding as tokens",
        variant(average=lambda x, m: (x * m).mean(), share=lambda x, m: (x * m).mean()),
        "Divide by how many tokens are real, not by N · T.",
    ),
    Mistake(
        "a division by 0 when every row is empty",
        variant(average=_nan_mean, share=_nan_mean),
        "With no real token at all the loss is 0: keep the divisor at 1 or more.",
        telling=1,
    ),
    Mistake(
        "the mean of each completion's mean",
        variant(average=_rows_then_batch, share=_rows_then_batch),
        "That is GRPO's average, in lesson 06: here every real token of the batch counts the same.",
    ),
    Mistake(
        "a sum over tokens and a mean over completions",
        variant(average=lambda x, m: (x * m).sum(1).mean()),
        "That is REINFORCE's average: here the sum is divided by the number of real tokens.",
    ),
    Mistake(
        "a sum over the tokens",
        variant(average=lambda x, m: (x * m).sum()),
        "As a sum, twice the batch would mean twice the step: divide by the number of real tokens.",
    ),
    Mistake(
        "advantages that are always taken for one number a row",
        _one_number_a_row,
        "With a critic there is an advantage for each token, (N, T): add the column only where "
        "`advantages.dim() == 1`.",
        telling=1,
    ),
    Mistake(
        "advantages laid along the tokens",
        variant(columns=lambda advantages: advantages.detach()),
        "(N,) against (N, T) lines up with T: write `advantages[:, None]`, so that every token of "
        "a row gets the row's advantage.",
    ),
    Mistake(
        "a loss through which gradient flows into the old log-probs",
        variant(ratio=lambda new, old: (new - old).exp()),
        "They are numbers from the time of sampling: `old_logprobs.detach()`.",
    ),
    Mistake(
        "a loss through which gradient flows into the advantages",
        variant(columns=lambda a: a[:, None] if a.dim() == 1 else a),
        "An advantage is a number computed from rewards, a constant: `advantages.detach()`.",
    ),
    Mistake(
        "a clip fraction that counts every token outside the band",
        variant(stopped=_outside),
        "Outside the band on the wrong side the gradient still flows: count where the clipped "
        "product is the smaller one.",
    ),
    Mistake(
        "a clip fraction of the tokens at which the two terms differ or not: `<=` in place of `<`",
        variant(stopped=lambda r, a, clip: _clamp(r, clip) * a <= r * a),
        "Inside the band the two products are equal and nothing is stopped: the clipped one must "
        "be *strictly* smaller.",
    ),
    Mistake(
        "a clip fraction of the tokens above the band only",
        variant(stopped=lambda r, a, clip: (r > 1 + clip) & (a > 0)),
        "A blamed token is stopped below the band.",
    ),
    *(
        Mistake(
            f"a clip fraction that counts tokens with advantage 0 {where} the band",
            variant(stopped=marked),
            "Where the advantage is 0 both products are 0 and nothing is stopped: compare the "
            "products, not the ratio with the band.",
            telling=1,
        )
        for where, marked in (
            ("below", lambda r, a, clip: torch.where(a > 0, r > 1 + clip, r < 1 - clip)),
            ("above", lambda r, a, clip: torch.where(a >= 0, r > 1 + clip, r < 1 - clip)),
        )
    ),
    Mistake(
        "a clip fraction of the tokens whose gradient flows",
        variant(stopped=lambda r, a, clip: ~_stopped(r, a, clip)),
        "It is the share of tokens that the clip *stops*.",
    ),
    Mistake(
        "a clip fraction in which padding is counted",
        variant(share=lambda x, m: x.mean()),
        "Padding has no gradient to be stopped: average over real tokens.",
    ),
    Mistake(
        "a clip fraction whose padding counts as not stopped",
        variant(share=lambda x, m: (x * m).mean()),
        "Divide by the number of real tokens, not by N · T.",
    ),
    Mistake(
        "the number of stopped tokens, not their share",
        variant(share=lambda x, m: (x * m).sum()),
        "Divide by the number of real tokens.",
    ),
    Mistake(
        "the loss without the clip fraction",
        variant(result=lambda loss, share: loss),
        "Return both, `(loss, clip_fraction)`: the fraction is the first curve to look at when a "
        "run goes wrong.",
    ),
    Mistake(
        "the clip fraction first and the loss second",
        variant(result=lambda loss, share: (share, loss)),
        "Return `(loss, clip_fraction)`, in this order.",
    ),
)
