"""Log-probs of whole completions."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.dpo import sequence_logprobs
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _sequence_cases(draw: CaseSampler) -> Iterator[Case]:
    worked = tensor([[-0.5, -1.0, -0.25], [-2.0, -3.0, -9.0]])
    padded = torch.tensor([[True, True, True], [True, True, False]])
    yield Case("worked: two completions", {"logprobs": worked, "mask": padded})
    for label, logprobs, mask in draw.batches():
        yield Case(label, {"logprobs": logprobs, "mask": mask})
    long = draw.logprobs(2, 900)
    yield Case("900 tokens", {"logprobs": long, "mask": torch.ones(2, 900) > 0})


def _by_matmul(logprobs, mask):
    return (logprobs.unsqueeze(1) @ mask.to(logprobs.dtype).unsqueeze(2)).flatten()


def _by_loop(logprobs, mask):
    rows = [row[real.bool()].sum() for row, real in zip(logprobs, mask, strict=True)]
    return torch.stack(rows)


def line_by_line(logprobs, mask):
    real = mask.to(logprobs.dtype)
    kept = logprobs * real
    total = kept.sum(1)
    return total


def without_end(real):
    return real * (torch.arange(real.shape[1]) < real.sum(1, keepdim=True) - 1)


_edit = Sketch(line_by_line).edit


EXERCISE = Exercise(
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
            _edit("the sum", "return total", "return total / real.sum(1).clamp(min=1)"),
            "Probabilities of tokens multiply, so their logarithms add: dividing by the length "
            "gives the log-prob of nothing.",
        ),
        Mistake(
            "a sum that counts what the mask leaves out",
            _edit("the padding", "logprobs * real", "logprobs"),
            "Padding was never said. (The same slip on a whole sequence adds the prompt's tokens, "
            "which the policy did not choose.)",
        ),
        Mistake(
            "a mean over all T positions",
            _edit("the sum", "kept.sum(1)", "kept.mean(1)"),
            "Logarithms of a product add; T is a property of the batch, not of the completion.",
        ),
        Mistake(
            "one sum for the whole batch",
            _edit("the dimension", "sum(1)", "sum()"),
            "Every completion has a log-prob of its own, (N,): sum over tokens only.",
        ),
        Mistake(
            "a sum over the rows in place of the tokens",
            _edit("the dimension", "sum(1)", "sum(0)"),
            "Dimension 0 is completions, dimension 1 tokens.",
        ),
        Mistake(
            "the completions' probabilities",
            _edit("the logarithm", "return total", "return total.exp()"),
            "The log-prob is asked for; the probability of a long completion is 0 in any float.",
        ),
        Mistake(
            "the logarithm of a product of probabilities, which underflows",
            _edit("the logarithm", "kept.sum(1)", "kept.exp().prod(1).log()"),
            "A product of hundreds of probabilities is 0 on a computer, and its logarithm −∞: add "
            "the logarithms.",
            telling=1,
        ),
        Mistake(
            "minus the log-prob",
            _edit("the sign", "return total", "return -total"),
            "A log-prob is 0 or less; turning the sign gives the loss of SFT.",
        ),
        Mistake(
            "a sum without each completion's last token",
            _edit("the last token", "logprobs * real", "logprobs * without_end(real)"),
            "The last real token is the EOS, and stopping is a decision with a probability, too.",
        ),
        Mistake(
            "sums that no gradient leaves",
            _edit("the gradient", "return total", "return total.detach()"),
            "The policy learns through these numbers: no detach, no item, no new tensor.",
        ),
    ),
    alternatives=(_by_matmul, _by_loop, line_by_line),
    hints=(
        "Do log-probs of tokens add, multiply or average?",
        "Make padding count 0, then sum over dimension 1.",
        "One line; the mask may be bool or float:\n\n    return (logprobs * ...).sum(dim=...)",
    ),
)
