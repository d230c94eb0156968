"""Log-probs of whole completions, and the reward that a policy implies."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.dpo import implicit_rewards, sequence_logprobs
from rlcourse.exercises.calling import Case
from rlcourse.exercises.cases import Draw, tensor
from rlcourse.exercises.exercise import Exercise, Mistake


def _sequence_cases(draw: Draw) -> Iterator[Case]:
    worked = tensor([[-0.5, -1.0, -0.25], [-2.0, -3.0, -9.0]])
    padded = torch.tensor([[True, True, True], [True, True, False]])
    yield Case("worked: two completions", {"logprobs": worked, "mask": padded})
    for label, logprobs, mask in draw.batches():
        yield Case(label, {"logprobs": logprobs, "mask": mask})
    long = draw.logprobs(2, 900)
    yield Case("900 tokens", {"logprobs": long, "mask": torch.ones(2, 900) > 0})


def _kept(logprobs: Tensor, mask: Tensor) -> Tensor:
    return logprobs * mask


def _without_end(logprobs, mask):
    lengths = mask.long().sum(1, keepdim=True)
    return (_kept(logprobs, mask) * (torch.arange(mask.shape[1]) < lengths - 1)).sum(1)


def _by_matmul(logprobs, mask):
    return (logprobs.unsqueeze(1) @ mask.to(logprobs.dtype).unsqueeze(2)).flatten()


def _by_loop(logprobs, mask):
    rows = [row[real.bool()].sum() for row, real in zip(logprobs, mask, strict=True)]
    return torch.stack(rows)


SEQUENCE_LOGPROBS = Exercise(
    reference=sequence_logprobs,
    lesson="09_dpo",
    section="Whole completions",
    points=1,
    difficulty=1,
    minutes=5,
    differentiable=("logprobs",),
    cases=_sequence_cases,
    mistakes=(
        Mistake(
            "a mean over each completion's tokens",
            lambda logprobs, mask: (
                _kept(logprobs, mask).sum(1) / mask.sum(1).clamp(min=1).to(logprobs.dtype)
            ),
            "Probabilities of tokens multiply, so their logarithms add: dividing by the length "
            "gives the log-prob of nothing.",
        ),
        Mistake(
            "a sum that counts what the mask leaves out",
            lambda logprobs, mask: logprobs.sum(1),
            "Padding was never said. (The same slip on a whole sequence adds the prompt's tokens, "
            "which the policy did not choose.)",
        ),
        Mistake(
            "a mean over all T positions",
            lambda logprobs, mask: _kept(logprobs, mask).mean(1),
            "Logarithms of a product add; T is a property of the batch, not of the completion.",
        ),
        Mistake(
            "one sum for the whole batch",
            lambda logprobs, mask: _kept(logprobs, mask).sum(),
            "Every completion has a log-prob of its own, (N,): sum over tokens only.",
        ),
        Mistake(
            "a sum over the rows in place of the tokens",
            lambda logprobs, mask: _kept(logprobs, mask).sum(0),
            "Dimension 0 is completions, dimension 1 tokens.",
        ),
        Mistake(
            "the completions' probabilities",
            lambda logprobs, mask: _kept(logprobs, mask).sum(1).exp(),
            "The log-prob is asked for; the probability of a long completion is 0 in any float.",
        ),
        Mistake(
            "the logarithm of a product of probabilities, which underflows",
            lambda logprobs, mask: _kept(logprobs, mask).exp().prod(1).log(),
            "A product of hundreds of probabilities is 0 on a computer, and its logarithm −∞: add "
            "the logarithms.",
        ),
        Mistake(
            "minus the log-prob",
            lambda logprobs, mask: -_kept(logprobs, mask).sum(1),
            "A log-prob is 0 or less; turning the sign gives the loss of SFT.",
        ),
        Mistake(
            "a sum without each completion's last token",
            _without_end,
            "The last real token is the EOS, and stopping is a decision with a probability, too.",
        ),
        Mistake(
            "sums that no gradient leaves",
            lambda logprobs, mask: sequence_logprobs(logprobs, mask).detach(),
            "The policy learns through these numbers: no detach, no item, no new tensor.",
        ),
    ),
    alternatives=(_by_matmul, _by_loop, lambda logprobs, mask: _kept(logprobs, mask).sum(dim=-1)),
    hints=(
        "Do log-probs of tokens add, multiply or average?",
        "Make padding count 0, then sum over dimension 1.",
        "One line; the mask may be bool or float:\n\n    return (logprobs * ...).sum(dim=...)",
    ),
)


def _implicit_cases(draw: Draw) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, ref_logprobs: Tensor, beta: float) -> Case:
        arguments = {"logprobs": logprobs, "ref_logprobs": ref_logprobs, "beta": beta}
        return Case(label, arguments)

    worked = tensor([0.6, 0.2]).log(), tensor([0.3, 0.4]).log()
    yield case("worked: twice as likely, half as likely", *worked, 0.5)
    same = draw.logprobs(3)
    yield case("the reference itself", same, same.clone(), 0.1)
    for n, beta in ((1, 0.1), (draw.size(3, 6), 0.05), (draw.size(3, 6), 1.0), (4, 3.0)):
        yield case(f"β = {beta}", 9 * draw.logprobs(n), 9 * draw.logprobs(n), beta)
    yield case("completions of 1000 nats", 500 * draw.logprobs(4), 500 * draw.logprobs(4), 0.1)
    yield case("float32", draw.logprobs(4).float(), draw.logprobs(4).float(), 0.2)


IMPLICIT_REWARDS = Exercise(
    reference=implicit_rewards,
    lesson="09_dpo",
    section="Every policy is the optimum of some reward",
    points=2,
    difficulty=1,
    minutes=5,
    differentiable=("logprobs",),
    constants=("ref_logprobs",),
    cases=_implicit_cases,
    mistakes=(
        Mistake(
            "rewards without β",
            lambda logprobs, ref_logprobs, beta: logprobs - ref_logprobs.detach(),
            "Solving π* ∝ πref exp(r/β) for r multiplies the log-ratio by β.",
        ),
        Mistake(
            "the log-ratio divided by β",
            lambda logprobs, ref_logprobs, beta: (logprobs - ref_logprobs.detach()) / beta,
            "r/β = log(π/πref) + constant: the other side is multiplied by β.",
        ),
        Mistake(
            "β log π, without the reference",
            lambda logprobs, ref_logprobs, beta: beta * logprobs,
            "A completion is not rewarded for being likely but for having become likelier than "
            "under πref.",
        ),
        Mistake(
            "the ratio upside down",
            lambda logprobs, ref_logprobs, beta: beta * (ref_logprobs.detach() - logprobs),
            "What the policy has made likelier must have a positive reward.",
        ),
        Mistake(
            "β times the ratio, not its logarithm",
            lambda logprobs, ref_logprobs, beta: beta * (logprobs - ref_logprobs.detach()).exp(),
            "The reward stands in the exponent of π*, so it is a logarithm: leave out `exp`.",
        ),
        Mistake(
            "the quotient of two log-probs",
            lambda logprobs, ref_logprobs, beta: beta * logprobs / ref_logprobs.detach(),
            "The logarithm of a quotient is a difference of logarithms.",
        ),
        Mistake(
            "rewards through which gradient flows into the reference",
            lambda logprobs, ref_logprobs, beta: beta * (logprobs - ref_logprobs),
            "The reference is frozen: use `ref_logprobs.detach()`.",
        ),
        Mistake(
            "rewards that no gradient leaves",
            lambda logprobs, ref_logprobs, beta: beta * (logprobs - ref_logprobs).detach(),
            "DPO trains the policy through its implicit reward: only the reference is constant.",
        ),
        Mistake(
            "rewards minus their mean over the batch",
            lambda logprobs, ref_logprobs, beta: (
                implicit_rewards(logprobs, ref_logprobs, beta)
                - implicit_rewards(logprobs, ref_logprobs, beta).mean()
            ),
            "The free constant belongs to the prompt and cancels in a pair; nothing has to be "
            "subtracted.",
        ),
        Mistake(
            "β on log π alone",
            lambda logprobs, ref_logprobs, beta: beta * logprobs - ref_logprobs.detach(),
            "β multiplies the whole log-ratio: mind the brackets.",
        ),
    ),
    alternatives=(
        lambda logprobs, ref_logprobs, beta: beta * logprobs - beta * ref_logprobs.detach(),
        lambda logprobs, ref_logprobs, beta: torch.stack(
            [beta * (a - b.item()) for a, b in zip(logprobs, ref_logprobs, strict=True)]
        ),
    ),
    hints=(
        "Take the logarithm of π(y) = πref(y) exp(r(y)/β) / Z and solve for r(y).",
        "r(y) = β log(π(y)/πref(y)) + β log Z. The second term is the same for every completion "
        "of a prompt and is left out. Which of the two log-probs is a constant?",
        "One line:\n\n    return beta * (logprobs - ...)",
    ),
)
