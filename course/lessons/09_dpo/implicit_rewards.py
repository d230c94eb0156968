"""The reward that a policy implies."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
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


sketch = Sketch(line_by_line)
alternatives = (
    lambda logprobs, ref_logprobs, beta: torch.stack(
        [beta * (a - b.item()) for a, b in zip(logprobs, ref_logprobs, strict=True)]
    ),
)
