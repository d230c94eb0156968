"""The loss of Bradley and Terry's model."""

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from rlcourse.algorithms.reward_models import bradley_terry_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.reward_models.preference_probability import by_exponentials


def _loss_cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, chosen: Tensor, rejected: Tensor) -> Case:
        return Case(label, {"chosen": chosen, "rejected": rejected})

    yield case("worked: equal rewards", tensor([0.5]), tensor([0.5]))
    yield case("gaps of 2 and −2", tensor([2.0, 0.0]), tensor([0.0, 2.0]))
    n = draw.size(3, 5)
    chosen, rejected = draw.normal(n), draw.normal(n)
    yield case("random rewards", chosen, rejected)
    yield case("the same gaps, 10 lower", chosen - 10, rejected - 10)
    yield case("one pair", draw.normal(1), draw.normal(1))
    yield case("gaps of ±100", tensor([60.0, -40.0]), tensor([-40.0, 60.0]))
    yield case("gaps of ±2000", tensor([1000.0, -1000.0]), tensor([-1000.0, 1000.0]))
    yield case("large gaps in float32", tensor([0, 0, 0]).float(), tensor([120, 0, -120]).float())
    yield case("float32", draw.normal(6).float(), draw.normal(6).float())
    yield case("many pairs", draw.normal(draw.size(20, 30), scale=3.0), draw.normal(1))


def _mean(per_pair):
    return lambda chosen, rejected: per_pair(chosen, rejected).mean()


def line_by_line(chosen, rejected):
    gap = chosen - rejected
    log_p = F.logsigmoid(gap)
    per_pair = -log_p
    return per_pair.mean()


_edit = Sketch(line_by_line, by_exponentials).edit
_log_likelihood = partial(_edit, "the log-likelihood", "F.logsigmoid(gap)")


EXERCISE = Exercise(
    reference=bradley_terry_loss,
    lesson="08_reward_models",
    section="Learning from pairs",
    points=2,
    difficulty=2,
    minutes=10,
    differentiable=("chosen", "rejected"),
    cases=_loss_cases,
    mistakes=(
        Mistake(
            "chosen and rejected swapped",
            _edit("the gap: its direction", "chosen - rejected", "rejected - chosen"),
            "The loss must fall as the chosen answer's reward rises: chosen minus rejected.",
        ),
        Mistake(
            "the log-likelihood without its minus",
            _edit("the sign", "-log_p", "log_p"),
            "A loss is minimized: turn the sign, and equal rewards cost +0.6931.",
        ),
        Mistake(
            "−log σ computed in two steps, which is infinite for a pair that is badly wrong",
            _log_likelihood("gap.sigmoid().log()"),
            "For a large negative gap the sigmoid is 0 and its logarithm −∞ (and exp of the gap's "
            "negative is ∞): `F.logsigmoid` computes both steps at once.",
            telling=2,
        ),
        Mistake(
            "a quotient of exponentials that overflows",
            _log_likelihood("by_exponentials(chosen, rejected).log()"),
            "exp(1000) is infinite: divide by it above and below, and log σ(chosen − rejected) "
            "remains.",
            telling=2,
        ),
        Mistake(
            "a small number inside the logarithm, which keeps it from 0",
            _log_likelihood("(gap.sigmoid() + 1e-8).log()"),
            "That caps the loss, and just the pairs that are most wrong get no gradient: use "
            "`F.logsigmoid`.",
        ),
        Mistake(
            "1 − P in place of −log P",
            _log_likelihood("gap.sigmoid() - 1"),
            "Maximum likelihood takes logarithms; without one the gradient of a badly wrong pair "
            "vanishes.",
        ),
        Mistake(
            "−P in place of −log P",
            _log_likelihood("gap.sigmoid()"),
            "Maximum likelihood takes logarithms; without one the gradient of a badly wrong pair "
            "vanishes, and equal rewards would cost −0.5.",
        ),
        Mistake(
            "a sum over the pairs",
            _edit("the mean over pairs", "per_pair.mean()", "per_pair.sum()"),
            "The mean is asked for: as a sum, twice the batch would be twice the step.",
        ),
        Mistake(
            "one loss a pair",
            _edit("the mean over pairs", "per_pair.mean()", "per_pair"),
            "A scalar is asked for: the mean over the pairs.",
        ),
        Mistake(
            "one comparison of the mean rewards",
            _edit("a comparison for each pair", "log_p =", "gap = gap.mean()\n    log_p ="),
            "Each pair has its own probability; the mean comes last.",
        ),
        Mistake(
            "each answer classified as good or bad by itself",
            _log_likelihood("F.logsigmoid(chosen) + F.logsigmoid(-rejected)"),
            "A pair says which of two is better, not that one is good: only the difference counts.",
        ),
        Mistake(
            "a hinge with margin 1",
            _log_likelihood("-F.relu(1 - gap)"),
            "That is a ranking loss, too, but not the likelihood of Bradley and Terry's model.",
        ),
        Mistake(
            "the squared error of the gap against 1",
            _log_likelihood("-((gap - 1) ** 2)"),
            "A preference does not say by how much: −log σ(gap).",
        ),
        Mistake(
            "the negative gap itself",
            _log_likelihood("gap"),
            "Without the sigmoid a pair that is settled pushes on forever.",
        ),
        Mistake(
            "a loss in bits",
            _edit("nats", "per_pair = -", "log_p = log_p / 0.6931471805599453\n    per_pair = -"),
            "The natural logarithm: equal rewards cost ln 2 = 0.6931 nats.",
        ),
        Mistake(
            "a loss that no gradient leaves",
            _edit("the gradient: of the loss", "return per_pair", "return per_pair.detach()"),
            "The reward model learns through this number.",
        ),
        Mistake(
            "rejected rewards held constant",
            _edit(
                "the gradient: of the rejected reward",
                "gap = chosen",
                "rejected = rejected.detach()\n    gap = chosen",
            ),
            "Both rewards come from the model: one is pushed up, the other down.",
        ),
    ),
    alternatives=(
        line_by_line,
        _mean(lambda chosen, rejected: F.softplus(rejected - chosen)),
        _mean(lambda chosen, rejected: torch.logaddexp(chosen, rejected) - chosen),
        lambda chosen, rejected: F.binary_cross_entropy_with_logits(
            chosen - rejected, torch.ones_like(chosen - rejected)
        ),
    ),
    hints=(
        "The probability of what was observed is P(chosen beats rejected). Which loss does "
        "maximum likelihood make of it?",
        "−log σ(chosen − rejected), and the mean over pairs. `torch.log(torch.sigmoid(x))` is −∞ "
        "for x = −1000: torch has one function for both.",
        "One line:\n\n    return -F.logsigmoid(...).mean()",
    ),
)
