"""Ways to get GRPO's loss wrong, nearly all seen in code that was published."""

import torch
from torch import Tensor

from rlcourse.algorithms.grpo import grpo_loss
from rlcourse.algorithms.importance_sampling import kl_estimates
from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.exercise import Mistake


def columns(advantages: Tensor) -> Tensor:
    """(N,) as a column, (N, T) as it is."""
    return advantages[:, None] if advantages.dim() == 1 else advantages


def surrogate(ratio, advantages, clip):
    """PPO's clipped objective per token."""
    a = columns(advantages).detach()
    return torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)


def rows_then_batch(per_token, mask):
    return masked_mean(per_token, mask, dim=1).mean()


def _ratio(logprobs, old_logprobs):
    return (logprobs - old_logprobs.detach()).exp()


def k3(logprobs, ref_logprobs):
    return kl_estimates(logprobs, ref_logprobs, "k3")


def variant(
    ratio=_ratio, objective=surrogate, kl=k3, average=rows_then_batch, weight=lambda beta: beta,
    band=lambda clip: clip, sign=1.0,
):  # fmt: skip
    """`grpo_loss` with one of its parts replaced."""

    def loss(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
        surrogates = objective(ratio(logprobs, old_logprobs), advantages, band(clip))
        per_token = surrogates - weight(beta) * kl(logprobs, ref_logprobs)
        return -sign * average(per_token, mask)

    return loss


def _nonempty_rows(per_token, mask):
    rows = masked_mean(per_token, mask, dim=1)
    return rows.sum() / mask.bool().any(1).sum().clamp(min=1)


def _nan_rows(per_token, mask):
    return ((per_token * mask).sum(1) / mask.sum(1)).mean()


def _max(ratio, advantages, clip):
    a = columns(advantages).detach()
    return torch.maximum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)


def _clip_alone(ratio, advantages, clip):
    return ratio.clamp(1 - clip, 1 + clip) * columns(advantages).detach()


def _factored(ratio, advantages, clip):
    return torch.minimum(ratio, ratio.clamp(1 - clip, 1 + clip)) * columns(advantages).detach()


def _unclipped(ratio, advantages, clip):
    return ratio * columns(advantages).detach()


def _along_tokens(ratio, advantages, clip):
    a = advantages.detach()
    return torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)


def _advantages_with_graph(ratio, advantages, clip):
    a = columns(advantages)
    return torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)


def _k3_with_graph(logprobs, ref_logprobs):
    return torch.expm1(ref_logprobs - logprobs) + logprobs - ref_logprobs


def _k3_swapped(logprobs, ref_logprobs):
    log_ratio = logprobs - ref_logprobs.detach()
    return torch.expm1(log_ratio) - log_ratio


def _k3_without_one(logprobs, ref_logprobs):
    return k3(logprobs, ref_logprobs) + 1


def _log_band(ratio, advantages, clip):
    a = columns(advantages).detach()
    return torch.minimum(ratio * a, ratio.log().clamp(-clip, clip).exp() * a)


def _padding_clamped(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    """Ratios of 0 on padding, which the clamp lifts to 1 − ε, and sums that trust in the zeros."""
    real = mask.to(logprobs.dtype)
    objective = surrogate(_ratio(logprobs, old_logprobs) * real, advantages, clip)
    per_token = objective - beta * k3(logprobs, ref_logprobs) * real
    return -(per_token.sum(1) / real.sum(1).clamp(min=1)).mean()


def _no_ratio(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    per_token = logprobs * columns(advantages).detach() - beta * k3(logprobs, ref_logprobs)
    return -rows_then_batch(per_token, mask)


def _sequence_ratio(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    total = ((logprobs - old_logprobs.detach()) * mask).sum(1, keepdim=True)
    objective = surrogate(total.exp(), advantages, clip)
    return -rows_then_batch(objective - beta * k3(logprobs, ref_logprobs), mask)


def _kl_inside(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    a, ratio = columns(advantages).detach(), _ratio(logprobs, old_logprobs)
    penalized = ratio * a - beta * k3(logprobs, ref_logprobs)
    per_token = torch.minimum(penalized, ratio.clamp(1 - clip, 1 + clip) * a)
    return -rows_then_batch(per_token, mask)


def _kl_in_advantage(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    shaped = columns(advantages) - beta * k3(logprobs, ref_logprobs)
    return -rows_then_batch(surrogate(_ratio(logprobs, old_logprobs), shaped, clip), mask)


def _kl_to_old(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    return grpo_loss(logprobs, old_logprobs, old_logprobs, advantages, mask, clip, beta)


def _ratio_to_reference(
    logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04
):
    return grpo_loss(logprobs, ref_logprobs, ref_logprobs, advantages, mask, clip, beta)


MISTAKES = (
    Mistake(
        "a mean over all real tokens of the batch",
        variant(average=masked_mean),
        "That is DAPO's average, in lesson 07: GRPO takes each completion's mean first, and then "
        "the mean of these.",
    ),
    Mistake(
        "a mean that counts padding as tokens",
        variant(average=lambda x, mask: (x * mask).mean()),
        "Divide each row by the number of its own real tokens, not by T.",
    ),
    Mistake(
        "a mean in which padding takes part",
        variant(average=lambda x, mask: x.mean(1).mean()),
        "What stands after the end was never said: only entries with mask 1 enter the mean.",
    ),
    Mistake(
        "a sum over each completion's tokens",
        variant(average=lambda x, mask: (x * mask).sum(1).mean()),
        "REINFORCE summed; GRPO's equation 3 divides each completion's sum by its length.",
    ),
    Mistake(
        "a mean over the completions that are not empty",
        variant(average=_nonempty_rows),
        "An empty row adds 0 and is counted all the same: divide by N.",
        telling=1,
    ),
    Mistake(
        "a division by the length 0 of an empty row",
        variant(average=_nan_rows),
        "0/0 is NaN, and one NaN spoils the whole batch: an empty row counts as 0.",
        telling=2,
    ),
    Mistake(
        "a sum over completions",
        variant(average=lambda x, mask: masked_mean(x, mask, dim=1).sum()),
        "The loss estimates an expectation: as a sum, twice the batch would mean twice the step.",
    ),
    Mistake(
        "the objective, not the loss: the sign is missing",
        variant(sign=-1.0),
        "Optimizers minimize: what is returned is minus the objective.",
    ),
    Mistake(
        "a KL that is rewarded",
        variant(weight=lambda beta: -beta),
        "The objective *loses* β times the KL; in the loss, its negative, the KL has a plus.",
    ),
    Mistake(
        "the KL the other way around",
        variant(kl=_k3_swapped),
        "The samples come from πθ, so k3 is built on πref/πθ: e^{−d} − 1 + d with "
        "d = log πθ − log πref.",
    ),
    Mistake(
        "k3 without its −1",
        variant(kl=_k3_without_one),
        "Where the policies agree the penalty must be 0: x − 1 − log x.",
    ),
    Mistake(
        "k1, the plain log-ratio, as the penalty",
        variant(kl=lambda new, ref: kl_estimates(new, ref, "k1")),
        "As a loss k1 has a gradient that does not even depend on the reference (lesson 04); "
        "equation 4 is k3.",
    ),
    Mistake(
        "k2, half the squared log-ratio, as the penalty",
        variant(kl=lambda new, ref: kl_estimates(new, ref, "k2")),
        "k2 is a fair choice (lesson 04), but not the one of equation 4, which is k3.",
    ),
    Mistake(
        "a penalty that is not weighed by β",
        variant(weight=lambda beta: 1.0),
        "The leash has a strength: multiply the KL by `beta`.",
    ),
    Mistake(
        "a loss without the penalty",
        variant(weight=lambda beta: 0.0),
        "Equation 3 subtracts β times the KL to the reference from every token's objective.",
    ),
    Mistake(
        "a β of 0.04 whatever the argument says",
        variant(weight=lambda beta: 0.04),
        "Use the argument `beta`, not its default.",
    ),
    Mistake(
        "an ε of 0.2 whatever the argument says",
        variant(band=lambda clip: 0.2),
        "Use the argument `clip`, not its default.",
        telling=1,
    ),
    Mistake(
        "a penalty without gradient",
        variant(kl=lambda new, ref: k3(new, ref).detach()),
        "A constant pulls nowhere: the penalty must be computed from `logprobs` with its graph.",
    ),
    Mistake(
        "the penalty inside the min",
        _kl_inside,
        "The clip limits the reward's push only; the leash pulls outside the band, too: subtract "
        "the KL after the min.",
    ),
    Mistake(
        "the penalty subtracted from the advantage",
        _kl_in_advantage,
        "That is PPO's way, a shaped reward: GRPO leaves the advantage alone and puts the KL into "
        "the loss, where it has a gradient of its own.",
    ),
    Mistake(
        "a KL to the policy that sampled",
        _kl_to_old,
        "The leash holds the policy near the *reference*; staying near πold is the clip's work.",
    ),
    Mistake(
        "a ratio to the reference",
        _ratio_to_reference,
        "The ratio corrects for who *sampled*, which is πold.",
    ),
    Mistake(
        "the larger of the two terms",
        variant(objective=_max),
        "The min keeps the pessimistic one, so that a step in the wrong direction can be undone "
        "(lesson 05).",
    ),
    Mistake(
        "the clipped term alone",
        variant(objective=_clip_alone),
        "A token outside the band on the *bad* side would get no gradient back: take the min "
        "with the unclipped term.",
    ),
    Mistake(
        "A · min(ratio, clip(ratio))",
        variant(objective=_factored),
        "For a negative advantage the smaller product has the larger ratio: multiply by A first, "
        "then take the min.",
    ),
    Mistake(
        "a band for the log-ratio",
        variant(objective=_log_band),
        "The ratio itself is clipped, to between 1 − ε and 1 + ε; log(1 + ε) is not ε.",
    ),
    Mistake(
        "ratios of 0 on padding, clamped up to 1 − ε",
        _padding_clamped,
        "The clamp makes 0.8 of a 0, and 0.8 · A is no longer nothing: leave padding out when you "
        "average, not before the clip.",
    ),
    Mistake(
        "a loss without the clip",
        variant(objective=_unclipped),
        "Without it nothing stops a token that has already moved far (lesson 05).",
    ),
    Mistake(
        "a ratio upside down",
        variant(ratio=lambda new, old: (old.detach() - new).exp()),
        "The new policy stands on top: exp(logprobs − old_logprobs).",
    ),
    Mistake(
        "a ratio that no gradient passes through",
        variant(ratio=lambda new, old: _ratio(new, old).detach()),
        "The ratio *is* where the gradient comes from: detach the old log-probs, not the ratio.",
    ),
    Mistake(
        "a ratio of the policy to itself, which is always 1",
        variant(ratio=lambda new, old: (new - new.detach()).exp()),
        "The ratio is to the policy that *sampled*, `old_logprobs`; from the second update on the "
        "two differ, and the clip has something to do.",
    ),
    Mistake(
        "log-probs in place of the ratio",
        _no_ratio,
        "That is REINFORCE: right at the first update, uncorrected at every later one.",
    ),
    Mistake(
        "the ratio of whole completions",
        _sequence_ratio,
        "GRPO weighs each token by its own ratio; a product over the completion has far more "
        "variance.",
    ),
    Mistake(
        "advantages laid along the tokens",
        variant(objective=_along_tokens),
        "(N,) against (N, T) lines up with T: write `advantages[:, None]`, so that every token of "
        "a row gets the row's advantage.",
    ),
    Mistake(
        "a loss through which gradient flows into the old log-probs",
        variant(ratio=lambda new, old: (new - old).exp()),
        "They are numbers from the time of sampling: `old_logprobs.detach()`.",
    ),
    Mistake(
        "a loss through which gradient flows into the reference",
        variant(kl=_k3_with_graph),
        "The reference is frozen: `ref_logprobs.detach()`.",
    ),
    Mistake(
        "a loss through which gradient flows into the advantages",
        variant(objective=_advantages_with_graph),
        "An advantage is a number computed from rewards, a constant: `advantages.detach()`.",
    ),
)
