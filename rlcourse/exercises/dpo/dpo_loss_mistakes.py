"""Ways to get DPO's loss wrong."""

from functools import partial

import torch
import torch.nn.functional as F

from rlcourse.checks.exercise import Mistake
from rlcourse.checks.sketch import Sketch


def line_by_line(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    ref_chosen, ref_rejected = ref_chosen_logprobs.detach(), ref_rejected_logprobs.detach()
    chosen, rejected = chosen_logprobs - ref_chosen, rejected_logprobs - ref_rejected
    chosen, rejected = beta * chosen, beta * rejected
    margin = chosen - rejected
    right, flipped = F.logsigmoid(margin), F.logsigmoid(-margin)
    per_pair = -((1 - label_smoothing) * right + label_smoothing * flipped)
    loss = per_pair.mean()
    return loss, chosen.detach(), rejected.detach()


def mixed(right, flipped, share):
    weights = torch.tensor([1 - share, share]).log()
    return torch.logaddexp(right + weights[0], flipped + weights[1])


def robust(right, flipped, share):
    return ((1 - share) * right - share * flipped) / (1 - 2 * share)


def smoothed(margin, share):
    return -(1 - share) * F.logsigmoid(margin) - share * F.logsigmoid(-margin)


_edit = Sketch(line_by_line, mixed, robust, smoothed).edit
_PER_PAIR = "-((1 - label_smoothing) * right + label_smoothing * flipped)"
_MIX = "(1 - label_smoothing) * right + label_smoothing * flipped"
_LOG = "F.logsigmoid(margin), F.logsigmoid(-margin)"
_RETURNED = "loss, chosen.detach(), rejected.detach()"
_margin = partial(_edit, "the margin", "margin = chosen - rejected")
_returned = partial(_edit, "the returned rewards", _RETURNED)
MISTAKES = (
    Mistake(
        "a loss and rewards without β",
        _edit("β", "beta * chosen, beta * rejected", "chosen, rejected"),
        "The implicit reward is β times the log-ratio: β decides how far the policy may go.",
    ),
    Mistake(
        "a loss without the reference",
        _edit("the log-ratios", "- ref_chosen,", "- 0,", "- ref_rejected", "- 0"),
        "Without πref the loss asks that the chosen text be *likely*, not that it become "
        "likelier: the leash is gone.",
    ),
    Mistake(
        "the right rewards beside a loss without the reference",
        _margin("margin = beta * (chosen_logprobs - rejected_logprobs)"),
        "The margin in the sigmoid is that of the implicit rewards, reference included.",
    ),
    Mistake(
        "chosen and rejected swapped in the margin",
        _margin("margin = rejected - chosen"),
        "The loss must fall when the chosen completion gains: chosen minus rejected, and the "
        "order that was given has weight 1 − ε, not ε.",
    ),
    Mistake(
        "β outside the sigmoid",
        _edit(
            "β in the margin",
            "right, flipped =",
            "margin = margin / beta\n    right, flipped =",
            "= per_pair",
            "= beta * per_pair",
        ),
        "β scales the margin *inside* the sigmoid, where it says how soon a pair counts as "
        "learned; outside it only scales the learning rate.",
    ),
    Mistake(
        "a loss without β",
        _edit(
            "β in the margin", "right, flipped =", "margin = margin / beta\n    right, flipped ="
        ),
        "The margin is that of the *rewards*, and each of them is β times a log-ratio: without β "
        "the loss does not know how long the leash is.",
    ),
    Mistake(
        "each completion against the other one's reference",
        _edit(
            "the log-ratios", "- ref_chosen,", "- ref_rejected,", "- ref_rejected", "- ref_chosen"
        ),
        "The log-ratio compares two models on one and the same text: chosen with `ref_chosen`, "
        "rejected with `ref_rejected`.",
    ),
    Mistake(
        "the right rewards beside a loss with the references exchanged",
        _margin(
            "margin = beta * (chosen_logprobs - ref_rejected - rejected_logprobs + ref_chosen)"
        ),
        "In the margin, too, the chosen text belongs to `ref_chosen` and the rejected one to "
        "`ref_rejected`.",
    ),
    Mistake(
        "the two rewards returned in exchanged places",
        _returned("loss, rejected.detach(), chosen.detach()"),
        "The order is loss, chosen, rejected.",
    ),
    Mistake(
        "log σ in two steps, which is −∞ for a pair that is badly wrong",
        _edit("the log-likelihood", _LOG, "margin.sigmoid().log(), (-margin).sigmoid().log()"),
        "sigmoid(−1000) is 0 and its logarithm −∞: use `F.logsigmoid`.",
        telling=1,
    ),
    Mistake(
        "a small number inside the logarithm, which keeps it from 0",
        _edit(
            "the log-likelihood",
            _LOG,
            "(margin.sigmoid() + 1e-8).log(), ((-margin).sigmoid() + 1e-8).log()",
        ),
        "That caps the loss, and the gradient vanishes on just the pairs that are most wrong: "
        "use `F.logsigmoid`.",
        telling=1,
    ),
    Mistake(
        "a loss without the minus",
        _edit("the sign", "per_pair = -", "per_pair = "),
        "The log-likelihood is to grow, and optimizers minimize.",
    ),
    Mistake(
        "log σ(Δ) as it stands, without the minus and without label smoothing",
        _edit("the sign", _PER_PAIR, "right"),
        "The log-likelihood is to grow, and optimizers minimize: turn the sign, and then mix in "
        "the flipped pair with weight ε.",
    ),
    Mistake(
        "the sigmoid without its logarithm",
        _edit("the log-likelihood", _PER_PAIR, "-margin.sigmoid()"),
        "Maximum likelihood takes the logarithm; without it a pair that is very wrong has no "
        "gradient.",
    ),
    Mistake(
        "a sum over the pairs",
        _edit("the mean over pairs", "per_pair.mean()", "per_pair.sum()"),
        "The loss is the mean over pairs: as a sum, twice the batch would be twice the step.",
    ),
    Mistake(
        "one loss a pair",
        _edit("the mean over pairs", "per_pair.mean()", "per_pair"),
        "A scalar is asked for: the mean over the pairs.",
    ),
    Mistake(
        "one sigmoid of the mean margin",
        _edit(
            "a sigmoid for every pair",
            "margin = chosen - rejected",
            "margin = (chosen - rejected).mean()",
        ),
        "Each pair has its own sigmoid; then the mean is taken.",
    ),
    Mistake(
        "a loss that takes no notice of `label_smoothing`",
        _edit("the label smoothing", _MIX, "right"),
        "A share ε of the labels is taken to be flipped: (1 − ε) log σ(Δ) + ε log σ(−Δ).",
        telling=2,
    ),
    Mistake(
        "half of ε for the flipped order",
        _edit(
            "the label smoothing",
            _MIX,
            "(1 - label_smoothing / 2) * right + label_smoothing / 2 * flipped",
        ),
        "ε is the probability that the label is flipped, all of it: 1 − ε and ε.",
        telling=2,
    ),
    Mistake(
        "the flipped order subtracted with weight ε",
        _edit("the label smoothing", "+ label_smoothing *", "- label_smoothing *"),
        "Both log-likelihoods carry the minus: the flipped pair is one that may be true.",
        telling=2,
    ),
    Mistake(
        "the given order left at full weight under label smoothing",
        _edit("the label smoothing", "(1 - label_smoothing) * right", "right"),
        "The two weights are probabilities and sum to 1: 1 − ε and ε.",
        telling=2,
    ),
    Mistake(
        "the logarithm of a mixed probability",
        _edit("the label smoothing", _MIX, "mixed(right, flipped, label_smoothing)"),
        "That is the likelihood of a noisy label, and fair; cDPO mixes the two *losses*: "
        "(1 − ε) log σ(Δ) + ε log σ(−Δ).",
        telling=2,
    ),
    Mistake(
        "the “robust” loss, with −ε and a division by 1 − 2ε",
        _edit("the label smoothing", _MIX, "robust(right, flipped, label_smoothing)"),
        "That is another correction for label noise (Chowdhury et al. 2024); here the flipped "
        "pair's log-likelihood is *added* with weight ε.",
        telling=2,
    ),
    Mistake(
        "each completion classified by itself",
        _edit("the log-likelihood", _PER_PAIR, "-F.logsigmoid(chosen) - F.logsigmoid(-rejected)"),
        "The constant of the prompt cancels only in the difference of the two rewards; alone, "
        "a reward's sign means nothing.",
    ),
    Mistake(
        "each completion classified by itself, with label smoothing",
        _edit(
            "the log-likelihood",
            _PER_PAIR,
            "smoothed(chosen, label_smoothing) + smoothed(-rejected, label_smoothing)",
        ),
        "The constant of the prompt cancels only in the difference of the two rewards; alone, "
        "a reward's sign means nothing.",
    ),
    Mistake(
        "a hinge in place of the sigmoid",
        _edit("the log-likelihood", _PER_PAIR, "F.relu(1 - margin)"),
        "Bradley and Terry's likelihood is asked for: −log σ of the margin.",
    ),
    Mistake(
        "the squared loss of IPO",
        _edit("the log-likelihood", _PER_PAIR, "(margin / beta - 1 / (2 * beta)) ** 2"),
        "That is the next section's idea; DPO takes −log σ of the margin.",
    ),
    Mistake(
        "only the chosen completion",
        _margin("margin = chosen"),
        "A preference says that one is better *than the other*: the margin needs both.",
    ),
    Mistake(
        "a loss through which gradient flows into the reference",
        _edit(
            "the reference as a constant",
            "ref_chosen_logprobs.detach(), ref_rejected_logprobs.detach()",
            "ref_chosen_logprobs, ref_rejected_logprobs",
        ),
        "The reference is frozen: use `detach()` on its log-probs.",
    ),
    Mistake(
        "a loss in which nothing is detached",
        _edit(
            "the reference as a constant",
            "ref_chosen_logprobs.detach(), ref_rejected_logprobs.detach()",
            "ref_chosen_logprobs, ref_rejected_logprobs",
            _RETURNED,
            "loss, chosen, rejected",
        ),
        "The reference is frozen, and the rewards are returned to be looked at: both need "
        "`detach()`.",
    ),
    Mistake(
        "a loss that no gradient leaves",
        _edit("the gradient", "loss =", "per_pair = per_pair.detach()\n    loss ="),
        "Detach the rewards that you return, not those that the loss is made of.",
    ),
    Mistake(
        "rewards that carry a graph",
        _returned("loss, chosen, rejected"),
        "The rewards are returned to be looked at: detach them, or every log keeps the whole "
        "graph alive.",
    ),
    Mistake(
        "rewards without β",
        _returned("loss, (chosen / beta).detach(), (rejected / beta).detach()"),
        "The implicit reward is β times the log-ratio.",
    ),
    Mistake(
        "log-probs returned as rewards",
        _returned("loss, chosen_logprobs.detach(), rejected_logprobs.detach()"),
        "The implicit reward is β times the log-ratio to the reference.",
    ),
    Mistake(
        "one mean reward in place of each completion's",
        _returned("loss, chosen.detach().mean(), rejected.detach().mean()"),
        "Return all n of them; whoever plots them can take the mean.",
    ),
    Mistake(
        "β = 0.1 whatever is passed",
        _edit("β", "beta * chosen, beta * rejected", "0.1 * chosen, 0.1 * rejected"),
        "0.1 is only the default: use the argument.",
    ),
)
