"""What multiplies ∇ log πθ of each token in GRPO."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.grpo import grpo_loss
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label, advantages, logprobs, ref_logprobs, beta) -> Case:
        arguments = {"advantages": advantages, "logprobs": logprobs, "ref_logprobs": ref_logprobs}
        return Case(label, {**arguments, "beta": beta})

    def drawn(label, rows, tokens, beta=0.04, per_token=False, near=0.5) -> Case:
        logprobs = draw.logprobs(rows, tokens)
        advantages = draw.rewards(rows * tokens) if per_token else draw.rewards(rows)
        shape = (rows, tokens) if per_token else (rows,)
        ref = draw.near(logprobs, near)
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
    yield case("no advantage", tensor([0.0, 0.0]), logprobs[:2] - 1, logprobs[:2], 0.5)
    yield drawn("a reference far away", rows, tokens, beta=0.1, near=2.0)
    single = drawn("float32", rows, tokens)
    as_float = {k: v.float() if torch.is_tensor(v) else v for k, v in single.arguments.items()}
    yield Case("float32", as_float)


def by_autograd(advantages, logprobs, ref_logprobs, beta):
    """The gradient of the loss itself, on policy."""
    leaf = logprobs.detach().clone().requires_grad_()
    loss = grpo_loss(leaf, logprobs, ref_logprobs, advantages, torch.ones_like(logprobs), beta=beta)
    return -logprobs.numel() * torch.autograd.grad(loss, leaf)[0]


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


sketch = Sketch(line_by_line)
alternatives = (by_autograd, by_loop)
oracle = by_autograd
