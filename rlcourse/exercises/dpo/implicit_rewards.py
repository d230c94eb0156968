"""The reward that a policy implies."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.dpo import implicit_rewards
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _implicit_cases(draw: CaseSampler) -> Iterator[Case]:
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


def line_by_line(logprobs, ref_logprobs, beta):
    ref = ref_logprobs.detach()
    log_ratio = logprobs - ref
    rewards = beta * log_ratio
    return rewards


_edit = Sketch(line_by_line).edit


EXERCISE = Exercise(
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
            _edit("β", "beta * log_ratio", "log_ratio"),
            "Solving π* ∝ πref exp(r/β) for r multiplies the log-ratio by β.",
        ),
        Mistake(
            "the log-ratio divided by β",
            _edit("β", "beta * log_ratio", "log_ratio / beta"),
            "r/β = log(π/πref) + constant: the other side is multiplied by β.",
        ),
        Mistake(
            "β log π, without the reference",
            _edit("the ratio", "logprobs - ref", "logprobs"),
            "A completion is not rewarded for being likely but for having become likelier than "
            "under πref.",
        ),
        Mistake(
            "the ratio upside down",
            _edit("the ratio", "logprobs - ref", "ref - logprobs"),
            "What the policy has made likelier must have a positive reward.",
        ),
        Mistake(
            "β times the ratio, not its logarithm",
            _edit("the logarithm", "beta * log_ratio", "beta * log_ratio.exp()"),
            "The reward stands in the exponent of π*, so it is a logarithm: leave out `exp`.",
        ),
        Mistake(
            "the quotient of two log-probs",
            _edit("the ratio", "logprobs - ref", "logprobs / ref"),
            "The logarithm of a quotient is a difference of logarithms.",
        ),
        Mistake(
            "rewards through which gradient flows into the reference",
            _edit("the reference, a constant", ".detach()", ""),
            "The reference is frozen: use `ref_logprobs.detach()`.",
        ),
        Mistake(
            "rewards that no gradient leaves",
            _edit("the gradient", "return rewards", "return rewards.detach()"),
            "DPO trains the policy through its implicit reward: only the reference is constant.",
        ),
        Mistake(
            "rewards minus their mean over the batch",
            _edit("the constant", "return rewards", "return rewards - rewards.mean()"),
            "The free constant belongs to the prompt and cancels in a pair; nothing has to be "
            "subtracted.",
        ),
        Mistake(
            "β on log π alone",
            _edit("β", "beta * log_ratio", "beta * logprobs - ref"),
            "β multiplies the whole log-ratio: mind the brackets.",
        ),
    ),
    alternatives=(
        line_by_line,
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
