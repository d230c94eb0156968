"""Ways to get DPO's loss wrong."""

import torch
import torch.nn.functional as F
from torch import Tensor

from rlcourse.algorithms.dpo import dpo_loss
from rlcourse.checks.exercise import Mistake


def _dpo(
    log_likelihood=F.logsigmoid,
    margin_of=lambda chosen, rejected: chosen - rejected,
    reward_of=lambda logprobs, ref, beta: beta * (logprobs - ref.detach()),
    reduce=torch.mean,
    returned=lambda rewards, *_: rewards.detach(),
    smooth=lambda share, right, flipped: (1 - share) * right + share * flipped,
    before_margin=lambda margin: margin,
):
    """`dpo_loss` with one part replaced."""

    def loss(
        chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
        beta=0.1, label_smoothing=0.0,
    ):  # fmt: skip
        chosen = reward_of(chosen_logprobs, ref_chosen_logprobs, beta)
        rejected = reward_of(rejected_logprobs, ref_rejected_logprobs, beta)
        margin = before_margin(margin_of(chosen, rejected))
        per_pair = -smooth(label_smoothing, log_likelihood(margin), log_likelihood(-margin))
        return (
            reduce(per_pair),
            returned(chosen, chosen_logprobs, ref_chosen_logprobs, beta),
            returned(rejected, rejected_logprobs, ref_rejected_logprobs, beta),
        )

    return loss


def _as_loss(per_pair_of):
    """The right rewards beside another loss of (chosen, rejected, beta, label_smoothing)."""

    def loss(
        chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
        beta=0.1, label_smoothing=0.0,
    ):  # fmt: skip
        chosen = beta * (chosen_logprobs - ref_chosen_logprobs.detach())
        rejected = beta * (rejected_logprobs - ref_rejected_logprobs.detach())
        per_pair = per_pair_of(chosen, rejected, beta, label_smoothing)
        return per_pair.mean(), chosen.detach(), rejected.detach()

    return loss


def _no_reference_in_loss(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    _, chosen, rejected = dpo_loss(
        chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs, beta
    )
    zeros = torch.zeros_like(ref_chosen_logprobs)
    bare = dpo_loss(chosen_logprobs, rejected_logprobs, zeros, zeros, beta, label_smoothing)
    return bare[0], chosen, rejected


def smoothed(margin: Tensor, share: float) -> Tensor:
    return -(1 - share) * F.logsigmoid(margin) - share * F.logsigmoid(-margin)


def _beta_outside(chosen, rejected, beta, share):
    return beta * smoothed((chosen - rejected) / beta, share)


def _without_beta(chosen, rejected, beta, share):
    return smoothed((chosen - rejected) / beta, share)


def _each_alone(chosen, rejected, beta, share):
    return -F.logsigmoid(chosen) - F.logsigmoid(-rejected)


def _each_alone_smoothed(chosen, rejected, beta, share):
    return smoothed(chosen, share) + smoothed(-rejected, share)


def _references_exchanged(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    return dpo_loss(
        chosen_logprobs, rejected_logprobs, ref_rejected_logprobs, ref_chosen_logprobs,
        beta, label_smoothing,
    )  # fmt: skip


def _references_exchanged_in_loss(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    arguments = (chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs)
    loss, _, _ = _references_exchanged(*arguments, beta, label_smoothing)
    return loss, *dpo_loss(*arguments, beta)[1:]


def _rewards_exchanged(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    loss, chosen, rejected = dpo_loss(
        chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
        beta, label_smoothing,
    )  # fmt: skip
    return loss, rejected, chosen


def _ipo(chosen, rejected, beta, share):
    return ((chosen - rejected) / beta - 1 / (2 * beta)) ** 2


MISTAKES = (
    Mistake(
        "a loss and rewards without β",
        _dpo(reward_of=lambda logprobs, ref, beta: logprobs - ref.detach()),
        "The implicit reward is β times the log-ratio: β decides how far the policy may go.",
    ),
    Mistake(
        "a loss without the reference",
        _dpo(reward_of=lambda logprobs, ref, beta: beta * logprobs),
        "Without πref the loss asks that the chosen text be *likely*, not that it become "
        "likelier: the leash is gone.",
    ),
    Mistake(
        "the right rewards beside a loss without the reference",
        _no_reference_in_loss,
        "The margin in the sigmoid is that of the implicit rewards, reference included.",
    ),
    Mistake(
        "chosen and rejected swapped in the margin",
        _dpo(margin_of=lambda chosen, rejected: rejected - chosen),
        "The loss must fall when the chosen completion gains: chosen minus rejected, and the "
        "order that was given has weight 1 − ε, not ε.",
    ),
    Mistake(
        "β outside the sigmoid",
        _as_loss(_beta_outside),
        "β scales the margin *inside* the sigmoid, where it says how soon a pair counts as "
        "learned; outside it only scales the learning rate.",
    ),
    Mistake(
        "a loss without β",
        _as_loss(_without_beta),
        "The margin is that of the *rewards*, and each of them is β times a log-ratio: without β "
        "the loss does not know how long the leash is.",
    ),
    Mistake(
        "each completion against the other one's reference",
        _references_exchanged,
        "The log-ratio compares two models on one and the same text: chosen with `ref_chosen`, "
        "rejected with `ref_rejected`.",
    ),
    Mistake(
        "the right rewards beside a loss with the references exchanged",
        _references_exchanged_in_loss,
        "In the margin, too, the chosen text belongs to `ref_chosen` and the rejected one to "
        "`ref_rejected`.",
    ),
    Mistake(
        "the two rewards returned in exchanged places",
        _rewards_exchanged,
        "The order is loss, chosen, rejected.",
    ),
    Mistake(
        "log σ in two steps, which is −∞ for a pair that is badly wrong",
        _dpo(log_likelihood=lambda margin: margin.sigmoid().log()),
        "sigmoid(−1000) is 0 and its logarithm −∞: use `F.logsigmoid`.",
        telling=1,
    ),
    Mistake(
        "a small number inside the logarithm, which keeps it from 0",
        _dpo(log_likelihood=lambda margin: (margin.sigmoid() + 1e-8).log()),
        "That caps the loss, and the gradient vanishes on just the pairs that are most wrong: "
        "use `F.logsigmoid`.",
        telling=1,
    ),
    Mistake(
        "a loss without the minus",
        _as_loss(lambda chosen, rejected, beta, s: -smoothed(chosen - rejected, s)),
        "The log-likelihood is to grow, and optimizers minimize.",
    ),
    Mistake(
        "log σ(Δ) as it stands, without the minus and without label smoothing",
        _as_loss(lambda chosen, rejected, beta, s: F.logsigmoid(chosen - rejected)),
        "The log-likelihood is to grow, and optimizers minimize: turn the sign, and then mix in "
        "the flipped pair with weight ε.",
    ),
    Mistake(
        "the sigmoid without its logarithm",
        _as_loss(lambda chosen, rejected, beta, s: -(chosen - rejected).sigmoid()),
        "Maximum likelihood takes the logarithm; without it a pair that is very wrong has no "
        "gradient.",
    ),
    Mistake(
        "a sum over the pairs",
        _dpo(reduce=torch.sum),
        "The loss is the mean over pairs: as a sum, twice the batch would be twice the step.",
    ),
    Mistake(
        "one loss a pair",
        _dpo(reduce=lambda per_pair: per_pair),
        "A scalar is asked for: the mean over the pairs.",
    ),
    Mistake(
        "one sigmoid of the mean margin",
        _dpo(before_margin=lambda margin: margin.mean()),
        "Each pair has its own sigmoid; then the mean is taken.",
    ),
    Mistake(
        "a loss that takes no notice of `label_smoothing`",
        _dpo(smooth=lambda share, right, flipped: right),
        "A share ε of the labels is taken to be flipped: (1 − ε) log σ(Δ) + ε log σ(−Δ).",
        telling=2,
    ),
    Mistake(
        "half of ε for the flipped order",
        _dpo(smooth=lambda share, right, flipped: (1 - share / 2) * right + share / 2 * flipped),
        "ε is the probability that the label is flipped, all of it: 1 − ε and ε.",
        telling=2,
    ),
    Mistake(
        "the flipped order subtracted with weight ε",
        _dpo(smooth=lambda share, right, flipped: (1 - share) * right - share * flipped),
        "Both log-likelihoods carry the minus: the flipped pair is one that may be true.",
        telling=2,
    ),
    Mistake(
        "the given order left at full weight under label smoothing",
        _dpo(smooth=lambda share, right, flipped: right + share * flipped),
        "The two weights are probabilities and sum to 1: 1 − ε and ε.",
        telling=2,
    ),
    Mistake(
        "the logarithm of a mixed probability",
        _dpo(
            smooth=lambda share, right, flipped: torch.logaddexp(
                right + torch.tensor(1 - share).log(), flipped + torch.tensor(share).log()
            )
        ),
        "That is the likelihood of a noisy label, and fair; cDPO mixes the two *losses*: "
        "(1 − ε) log σ(Δ) + ε log σ(−Δ).",
        telling=2,
    ),
    Mistake(
        "the “robust” loss, with −ε and a division by 1 − 2ε",
        _dpo(
            smooth=lambda share, right, flipped: (
                ((1 - share) * right - share * flipped) / (1 - 2 * share)
            )
        ),
        "That is another correction for label noise (Chowdhury et al. 2024); here the flipped "
        "pair's log-likelihood is *added* with weight ε.",
        telling=2,
    ),
    Mistake(
        "each completion classified by itself",
        _as_loss(_each_alone),
        "The constant of the prompt cancels only in the difference of the two rewards; alone, "
        "a reward's sign means nothing.",
    ),
    Mistake(
        "each completion classified by itself, with label smoothing",
        _as_loss(_each_alone_smoothed),
        "The constant of the prompt cancels only in the difference of the two rewards; alone, "
        "a reward's sign means nothing.",
    ),
    Mistake(
        "a hinge in place of the sigmoid",
        _as_loss(lambda chosen, rejected, beta, s: F.relu(1 - (chosen - rejected))),
        "Bradley and Terry's likelihood is asked for: −log σ of the margin.",
    ),
    Mistake(
        "the squared loss of IPO",
        _as_loss(_ipo),
        "That is the next section's idea; DPO takes −log σ of the margin.",
    ),
    Mistake(
        "only the chosen completion",
        _as_loss(lambda chosen, rejected, beta, s: smoothed(chosen, s)),
        "A preference says that one is better *than the other*: the margin needs both.",
    ),
    Mistake(
        "a loss through which gradient flows into the reference",
        _dpo(reward_of=lambda logprobs, ref, beta: beta * (logprobs - ref)),
        "The reference is frozen: use `detach()` on its log-probs.",
    ),
    Mistake(
        "a loss in which nothing is detached",
        _dpo(
            reward_of=lambda logprobs, ref, beta: beta * (logprobs - ref),
            returned=lambda rewards, *_: rewards,
        ),
        "The reference is frozen, and the rewards are returned to be looked at: both need "
        "`detach()`.",
    ),
    Mistake(
        "a loss that no gradient leaves",
        _dpo(reward_of=lambda logprobs, ref, beta: beta * (logprobs - ref).detach()),
        "Detach the rewards that you return, not those that the loss is made of.",
    ),
    Mistake(
        "rewards that carry a graph",
        _dpo(returned=lambda rewards, *_: rewards),
        "The rewards are returned to be looked at: detach them, or every log keeps the whole "
        "graph alive.",
    ),
    Mistake(
        "rewards without β",
        _dpo(returned=lambda rewards, logprobs, ref, beta: (logprobs - ref).detach()),
        "The implicit reward is β times the log-ratio.",
    ),
    Mistake(
        "log-probs returned as rewards",
        _dpo(returned=lambda rewards, logprobs, ref, beta: logprobs.detach()),
        "The implicit reward is β times the log-ratio to the reference.",
    ),
    Mistake(
        "one mean reward in place of each completion's",
        _dpo(returned=lambda rewards, *_: rewards.detach().mean()),
        "Return all n of them; whoever plots them can take the mean.",
    ),
    Mistake(
        "β = 0.1 whatever is passed",
        _dpo(reward_of=lambda logprobs, ref, beta: 0.1 * (logprobs - ref.detach())),
        "0.1 is only the default: use the argument.",
    ),
)
