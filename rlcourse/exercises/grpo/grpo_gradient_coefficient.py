"""What multiplies ∇ log πθ of each token in GRPO."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.grpo import grpo_gradient_coefficient, grpo_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label, advantages, logprobs, ref_logprobs, beta) -> Case:
        arguments = {"advantages": advantages, "logprobs": logprobs, "ref_logprobs": ref_logprobs}
        return Case(label, {**arguments, "beta": beta})

    def drawn(label, rows, tokens, beta=0.04, per_token=False, near=0.5) -> Case:
        logprobs = draw.logprobs(rows, tokens)
        advantages = draw.rewards(rows * tokens) if per_token else draw.rewards(rows)
        shape = (rows, tokens) if per_token else (rows,)
        ref = logprobs + near * draw.normal(rows, tokens)
        return case(label, advantages.reshape(shape), logprobs, ref, beta)

    for ref in (0.5, 0.1):
        worked = tensor([0.01]), tensor([[0.6]]).log(), tensor([[ref]]).log()
        yield case(f"worked: the reference at {ref}", *worked, 0.02)
    rows, tokens = draw.shape()
    yield drawn("random tokens", rows, tokens)
    yield drawn("one row of several tokens", 1, draw.size(3, 5))
    yield drawn("a strong leash", rows, tokens, beta=2.0)
    yield drawn("no leash", rows, tokens, beta=0.0)
    side = draw.size(2, 4)
    yield drawn("N equals T", side, side)
    yield drawn("an advantage for every token", rows, tokens, beta=0.3, per_token=True)
    logprobs = draw.logprobs(rows, tokens)
    yield case("the policy is the reference", draw.rewards(rows), logprobs, logprobs, 0.5)
    yield case("no advantage", tensor([0.0, 0.0]), logprobs[:2], logprobs[:2] + 1, 0.5)
    yield drawn("a reference far away", rows, tokens, beta=0.1, near=2.0)
    single = drawn("float32", rows, tokens)
    as_float = {k: v.float() if torch.is_tensor(v) else v for k, v in single.arguments.items()}
    yield Case("float32", as_float)


def _column(advantages):
    return advantages[:, None] if advantages.dim() == 1 else advantages


def by_autograd(advantages, logprobs, ref_logprobs, beta):
    """The gradient of the loss itself, on policy."""
    leaf = logprobs.detach().clone().requires_grad_()
    loss = grpo_loss(leaf, logprobs, ref_logprobs, advantages, torch.ones_like(logprobs), beta=beta)
    return -logprobs.numel() * torch.autograd.grad(loss, leaf)[0]


def by_ratio(advantages, logprobs, ref_logprobs, beta):
    ratio = torch.exp(ref_logprobs - logprobs)
    return _column(advantages) + beta * (ratio - 1)


def by_loop(advantages, logprobs, ref_logprobs, beta):
    result = torch.empty_like(logprobs)
    for i in range(logprobs.shape[0]):
        for t in range(logprobs.shape[1]):
            advantage = advantages[i] if advantages.dim() == 1 else advantages[i, t]
            odds = ref_logprobs[i, t].exp() / logprobs[i, t].exp()
            result[i, t] = advantage - beta + beta * odds
    return result


def line_by_line(advantages, logprobs, ref_logprobs, beta):
    a = advantages
    if a.dim() == 1:
        a = a[:, None]
    x = (ref_logprobs - logprobs).exp()
    pull = beta * (x - 1)
    return a + pull


_edit = Sketch(line_by_line).edit


EXERCISE = Exercise(
    reference=grpo_gradient_coefficient,
    lesson="06_grpo",
    section="One number for each token",
    points=3,
    difficulty=2,
    minutes=10,
    cases=_cases,
    oracle=by_autograd,
    mistakes=(
        Mistake(
            "the ratio turned over: πθ/πref",
            _edit("the ratio", "(ref_logprobs - logprobs)", "(logprobs - ref_logprobs)"),
            "A token that the policy has made rarer than the reference must be pulled up: the "
            "reference stands on top.",
        ),
        Mistake(
            "the log-ratio in place of the ratio minus 1",
            _edit("the pull: its size", "beta * (x - 1)", "beta * x.log()"),
            "log x ≈ x − 1 near 1 only: the gradient of k3 holds the ratio itself (the log-ratio "
            "is k2's).",
        ),
        Mistake(
            "a coefficient without the −1",
            _edit("the pull: its size", "beta * (x - 1)", "beta * x"),
            "Where policy and reference agree there must be no pull: πref/πθ − 1 is 0 there.",
        ),
        Mistake(
            "a pull away from the reference",
            _edit("the pull: its sign", "a + pull", "a - pull"),
            "The penalty enters the objective with a minus, and its own derivative brings a "
            "second one.",
        ),
        Mistake(
            "the coefficient with its sign turned",
            _edit("the sign", "return a + pull", "return -(a + pull)"),
            "This multiplies ∇ log π in the gradient of the *objective*: a good completion gets a "
            "positive number.",
        ),
        Mistake(
            "the penalty itself: A − β·k3",
            _edit("the pull: its size", "beta * (x - 1)", "-beta * (x - 1 - x.log())"),
            "That is what the objective *is*; asked for is its derivative by log πθ, and that of "
            "−β·k3 is β(πref/πθ − 1).",
        ),
        Mistake(
            "A + βx − 1, with brackets missing",
            _edit("the pull: its weight", "beta * (x - 1)", "beta * x - 1"),
            "β weighs the whole pull, x − 1: mind the brackets.",
        ),
        Mistake(
            "a coefficient divided by the number of tokens",
            _edit("no average", "return a + pull", "return (a + pull) / logprobs.shape[1]"),
            "The average is not part of it: asked for is what multiplies ∇ log π of *one* token in "
            "its own objective.",
        ),
        Mistake(
            "a pull that β does not weigh",
            _edit("the pull: its weight", "beta * (x - 1)", "x - 1"),
            "The penalty has the weight β in the objective, and so has its gradient.",
        ),
        Mistake(
            "the advantage alone",
            _edit("the two terms", "a + pull", "a.expand_as(logprobs).clone()"),
            "That is the coefficient without a leash; k3 adds β(πref/πθ − 1).",
        ),
        Mistake(
            "the pull alone, without the advantage",
            _edit("the two terms", "a + pull", "pull"),
            "The pull is what is added to the advantage.",
        ),
        Mistake(
            "advantages laid along the tokens",
            _edit("the advantages: their shape", "a = a[:, None]", "a = a"),
            "(N,) against (N, T) lines up with T: write `advantages[:, None]`, so that every token "
            "of a row gets the row's advantage.",
        ),
        Mistake(
            "a difference of probabilities in place of their ratio",
            _edit("the ratio", "beta * (x - 1)", "beta * (ref_logprobs.exp() - logprobs.exp())"),
            "πref/πθ − 1 is that difference *divided by πθ*: relative, not absolute.",
        ),
        Mistake(
            "the ratio of the log-probs",
            _edit("the ratio", "beta * (x - 1)", "beta * (ref_logprobs / logprobs - 1)"),
            "A ratio of probabilities is the exponential of a *difference* of log-probs.",
        ),
        Mistake(
            "the advantage multiplied by the pull",
            _edit("the two terms", "a + pull", "a * (1 + pull)"),
            "Advantage and penalty are two terms of the objective: their gradients add.",
        ),
        Mistake(
            "β subtracted from the advantage, without the reference",
            _edit("the pull: its size", "beta * (x - 1)", "-beta * torch.ones_like(x)"),
            "This is the gradient of k1 used as a loss: it does not depend on the reference at "
            "all.",
        ),
    ),
    alternatives=(by_autograd, by_ratio, by_loop, line_by_line),
    hints=(
        "Differentiate the objective of one token by log πθ: the ratio term first, at "
        "πθ = πold, and then −β times k3.",
        "At the first update the ratio is 1, and its derivative by log πθ is the ratio itself. "
        "k3 = x − 1 − log x with x = πref/πθ, and the derivative of x by log πθ is −x.",
        "Two terms, and a shape to mind:\n\n"
        "    ratio = torch.exp(ref_logprobs - logprobs)  # πref/πθ\n"
        "    if advantages.dim() == 1:\n"
        "        advantages = advantages[:, None]\n"
        "    return advantages + ... * (...)",
    ),
)
