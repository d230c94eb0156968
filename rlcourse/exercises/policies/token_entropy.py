"""The entropy of the distributions that tokens come from."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from rlcourse.algorithms.policies import token_entropy
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _entropy_cases(draw: CaseSampler) -> Iterator[Case]:
    yield Case("worked: a fair coin", {"logits": torch.zeros(1, 1, 2).double()})
    yield Case("worked: 0.85", {"logits": tensor([[[0.85, 0.15]]]).log()})
    vocab = draw.size(4, 6)
    yield Case("equal logits", {"logits": torch.full((1, 2, vocab), 3.0).double()})
    shape = draw.size(2, 3), draw.size(4, 5), draw.size(6, 7)
    yield Case("random logits", {"logits": draw.normal(*shape, scale=2)})
    side = draw.size(3, 4)
    yield Case("N, L and V equal", {"logits": draw.normal(side, side, side)})
    certain = tensor([[[1000.0, 0.0, -1000.0], [-1000.0, 0.0, 1000.0]]])
    yield Case("logits of ±1000", {"logits": certain})
    yield Case("float32", {"logits": draw.normal(2, 3, 4).float()})


def _entropy_by_logsumexp(logits):
    """H = log Z − E[z]."""
    return logits.logsumexp(-1) - (logits.softmax(-1) * logits).sum(-1)


def _entropy_by_einsum(logits):
    logprobs = F.log_softmax(logits, dim=2)
    return -torch.einsum("nlv,nlv->nl", logprobs.exp(), logprobs)


def _entropy_by_distribution(logits):
    return torch.distributions.Categorical(logits=logits, validate_args=False).entropy()


def line_by_line(logits):
    logprobs = logits.log_softmax(-1)
    terms = logprobs.exp() * logprobs
    entropy = -terms.sum(-1)
    return entropy


_edit = Sketch(line_by_line).edit


EXERCISE = Exercise(
    reference=token_entropy,
    lesson="01_policies",
    section="Entropy: how open is the choice?",
    points=1,
    difficulty=1,
    minutes=4,
    differentiable=("logits",),
    cases=_entropy_cases,
    mistakes=(
        Mistake(
            "log of a softmax that has underflowed: 0 · log 0 is NaN",
            _edit("the logarithm", "logits.log_softmax(-1)", "logits.softmax(-1).log()"),
            "A token of probability 0 contributes 0, but 0 times −∞ is NaN: take the logarithm "
            "with `log_softmax`.",
            telling=1,
        ),
        Mistake(
            "a logarithm with a small number added",
            _edit(
                "the logarithm",
                "logprobs.exp() * logprobs",
                "logits.softmax(-1) * (logits.softmax(-1) + 1e-8).log()",
            ),
            "log(p + ε) hides the NaN and bends the answer: `log_softmax` is exact.",
            telling=1,
        ),
        Mistake(
            "an entropy in bits",
            _edit("the unit", "return entropy", "return entropy / torch.tensor(2.0).log()"),
            "Nats use the natural logarithm, as all log-probs here do.",
        ),
        Mistake(
            "the mean of log π under π, a negative number",
            _edit("the sign", "-terms", "terms"),
            "Entropy is minus that: 0 for a certain choice, positive for any other.",
        ),
        Mistake(
            "a mean over the vocabulary in place of the sum",
            _edit("the sum", "terms.sum(-1)", "terms.mean(-1)"),
            "The probabilities are the weights of this average already: add the terms up.",
        ),
        Mistake(
            "an average that is not weighted by π",
            _edit("the weights", "terms.sum(-1)", "logprobs.mean(-1)"),
            "Surprise counts as often as it happens: weight −log π by π.",
        ),
        Mistake(
            "a sum that is not weighted by π",
            _edit("the weights", "logprobs.exp() * logprobs", "logprobs"),
            "Surprise counts as often as it happens: weight −log π by π.",
        ),
        Mistake(
            "a softmax over the places in place of the vocabulary",
            _edit("the softmax", "log_softmax(-1)", "log_softmax(1)"),
            "At every place there is one distribution over V tokens: the last dimension.",
        ),
        Mistake(
            "logits where log-probs belong",
            _edit("the logarithm", "logprobs.exp() * logprobs", "logprobs.exp() * logits"),
            "Logits are defined up to a constant, and the entropy must not depend on it.",
        ),
        Mistake(
            "perplexity, e to the entropy",
            _edit("the unit", "return entropy", "return entropy.exp()"),
            "That is the number of equally likely tokens with this entropy; asked are nats.",
        ),
        Mistake(
            "a sum over the places as well",
            _edit("the shape", "return entropy", "return entropy.sum(-1)"),
            "One number per place, (N, L).",
        ),
        Mistake(
            "an entropy that no gradient leaves",
            _edit("the gradient", "return entropy", "return entropy.detach()"),
            "An entropy bonus in a loss has to reach the logits.",
        ),
    ),
    alternatives=(
        _entropy_by_logsumexp,
        _entropy_by_einsum,
        _entropy_by_distribution,
        line_by_line,
    ),
    hints=(
        "The entropy is the expected surprise −log π of the token that will be drawn.",
        "log_softmax gives log π; its exponential gives π. Multiply, sum over the vocabulary, "
        "turn the sign.",
        "Two lines:\n\n"
        "    logprobs = logits.log_softmax(dim=-1)\n"
        "    return -(... * logprobs).sum(dim=...)",
    ),
)
