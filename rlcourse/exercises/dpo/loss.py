"""The DPO loss on pairs of completions."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from rlcourse.algorithms.dpo import dpo_loss
from rlcourse.exercises.calling import Case
from rlcourse.exercises.cases import Draw, tensor
from rlcourse.exercises.exercise import Exercise, Mistake

POLICY = ("chosen_logprobs", "rejected_logprobs")
REFERENCE = ("ref_chosen_logprobs", "ref_rejected_logprobs")


def _loss_cases(draw: Draw) -> Iterator[Case]:
    def case(label: str, *logprobs: Tensor, **options) -> Case:
        arguments = dict(zip((*POLICY, *REFERENCE), logprobs, strict=True))
        return Case(label, {**arguments, **options})

    def pairs(n: int, scale: float = 5.0) -> list[Tensor]:
        return [scale * draw.logprobs(n) for _ in range(4)]

    yield case("worked: one pair", *tensor([[-4.0], [-6.0], [-5.0], [-5.0]]))
    same = pairs(3)[:2]
    yield case("at the start, the reference itself", *same, *(t.clone() for t in same))
    yield case("a few pairs", *pairs(draw.size(3, 5)))
    yield case("β = 0.5", *pairs(draw.size(3, 5)), beta=0.5)
    yield case("β = 2", *pairs(draw.size(3, 5), 0.7), beta=2.0)
    yield case("one mislabeled in five", *pairs(4), label_smoothing=0.2)
    yield case("β = 0.4, one mislabeled in ten", *pairs(5), beta=0.4, label_smoothing=0.1)
    fell = pairs(3)
    yield case("both have become unlikelier", fell[0] - 20, fell[1] - 30, *fell[2:])
    wrong = tensor([-30000.0, -20.0]), tensor([-20.0, -30000.0])
    yield case("margins of ±3000", *wrong, *tensor([[-25.0, -25.0], [-30.0, -30.0]]))
    yield case("float32", *(t.float() for t in pairs(4)))
    yield case("many pairs", *pairs(draw.size(16, 20)), beta=0.3)


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


def _smoothed(margin: Tensor, share: float) -> Tensor:
    return -(1 - share) * F.logsigmoid(margin) - share * F.logsigmoid(-margin)


def _beta_outside(chosen, rejected, beta, share):
    return beta * _smoothed((chosen - rejected) / beta, share)


def _each_alone(chosen, rejected, beta, share):
    return -F.logsigmoid(chosen) - F.logsigmoid(-rejected)


def _ipo(chosen, rejected, beta, share):
    return ((chosen - rejected) / beta - 1 / (2 * beta)) ** 2


def _by_softplus(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    ratios = chosen_logprobs - rejected_logprobs
    ref_ratios = (ref_chosen_logprobs - ref_rejected_logprobs).detach()
    margin = beta * (ratios - ref_ratios)
    # −log σ(−x) = −log σ(x) + x, so smoothing adds a share of the margin.
    loss = (F.softplus(-margin) + label_smoothing * margin).mean()
    with torch.no_grad():
        return (
            loss,
            beta * (chosen_logprobs - ref_chosen_logprobs),
            beta * (rejected_logprobs - ref_rejected_logprobs),
        )


def _by_cross_entropy(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    chosen = beta * (chosen_logprobs - ref_chosen_logprobs.detach())
    rejected = beta * (rejected_logprobs - ref_rejected_logprobs.detach())
    both = torch.stack([chosen, rejected], dim=1).log_softmax(dim=1)
    weights = both.new_tensor([1 - label_smoothing, label_smoothing])
    return -(both * weights).sum(dim=1).mean(), chosen.detach(), rejected.detach()


def _by_loop(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    losses, chosen, rejected = [], [], []
    for i in range(len(chosen_logprobs)):
        chosen.append(beta * (chosen_logprobs[i] - ref_chosen_logprobs[i].item()))
        rejected.append(beta * (rejected_logprobs[i] - ref_rejected_logprobs[i].item()))
        losses.append(_smoothed(chosen[-1] - rejected[-1], label_smoothing))
    total = sum(losses) / len(losses)
    return total, torch.stack(chosen).detach(), torch.stack(rejected).detach()


DPO_LOSS = Exercise(
    reference=dpo_loss,
    lesson="09_dpo",
    section="The loss",
    points=5,
    difficulty=3,
    minutes=20,
    differentiable=POLICY,
    constants=REFERENCE,
    cases=_loss_cases,
    mistakes=(
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
            "the logarithm of a sigmoid that has underflowed",
            _dpo(log_likelihood=lambda margin: margin.sigmoid().log()),
            "sigmoid(−1000) is 0 and its logarithm −∞: use `F.logsigmoid`.",
        ),
        Mistake(
            "a small number added inside the logarithm",
            _dpo(log_likelihood=lambda margin: (margin.sigmoid() + 1e-8).log()),
            "That caps the loss, and the gradient vanishes on just the pairs that are most wrong: "
            "use `F.logsigmoid`.",
        ),
        Mistake(
            "a loss without the minus",
            _as_loss(lambda chosen, rejected, beta, s: -_smoothed(chosen - rejected, s)),
            "The log-likelihood is to grow, and optimizers minimize.",
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
        ),
        Mistake(
            "the given order left at full weight under label smoothing",
            _dpo(smooth=lambda share, right, flipped: right + share * flipped),
            "The two weights are probabilities and sum to 1: 1 − ε and ε.",
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
        ),
        Mistake(
            "each completion classified by itself",
            _as_loss(_each_alone),
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
            _as_loss(lambda chosen, rejected, beta, s: _smoothed(chosen, s)),
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
    ),
    alternatives=(_by_softplus, _by_cross_entropy, _by_loop),
    hints=(
        "You have written its two halves: `implicit_rewards`, and the loss of Bradley and Terry.",
        "The margin is chosen reward minus rejected reward. The given order has log-likelihood "
        "log σ(margin) and weight 1 − ε, the flipped one log σ(−margin) and weight ε.",
        "`implicit_rewards` detaches the reference:\n\n"
        "    chosen = implicit_rewards(chosen_logprobs, ref_chosen_logprobs, beta)\n"
        "    rejected = ...\n"
        "    margin = chosen - rejected\n"
        "    loss = -(1 - label_smoothing) * F.logsigmoid(margin) - ...\n"
        "    return loss.mean(), chosen.detach(), ...",
    ),
)
