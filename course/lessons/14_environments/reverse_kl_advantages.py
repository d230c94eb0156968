"""What a teacher says of each token that the student wrote."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, student: Tensor, mask: Tensor, teacher=None, **given) -> Case:
        if teacher is None:
            teacher = draw.logprobs(*student.shape).to(student.dtype)
        names = {"student_logprobs": student, "teacher_logprobs": teacher, "mask": mask}
        return Case(label, names | given)

    half, most, rare = tensor([[0.5, 0.5, 0.9]]).log(), 0.8, 0.1
    worked = tensor([[most, rare, 0.9]]).log()
    yield case(
        "worked: one liked, one disliked, one agreed upon", half, torch.ones(1, 3) > 0, worked
    )
    yield case("worked: γ of 1", half, torch.ones(1, 3) > 0, worked, gamma=1.0)
    for label, logprobs, mask in draw.batches():
        yield case(label, logprobs, mask)
    mask = torch.tensor([[0, 1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 0, 0, 0]]) > 0
    for gamma in (0.0, 0.5, 0.8, 1.0):
        yield case(
            f"turns of an environment between, γ of {gamma:g}",
            draw.logprobs(2, 7),
            mask,
            gamma=gamma,
        )
    rows, tokens = draw.size(3, 4), draw.size(5, 6)
    for gamma in (0.3, 0.9, 1.0):
        mask = draw.mask(rows, tokens)
        yield case(f"γ of {gamma:g}", draw.logprobs(rows, tokens), mask, gamma=gamma)
    logprobs = draw.logprobs(rows, tokens)
    yield case("the student is the teacher", logprobs, mask, logprobs.clone())
    yield case("a teacher who likes nothing", logprobs, mask, logprobs - 8)
    mask = draw.mask(2, 5)
    padded = draw.logprobs(2, 5).masked_fill(~mask, -torch.inf)
    yield case("log-probs of −∞ on padding", padded, mask, padded.clone())


def line_by_line(student_logprobs, teacher_logprobs, mask, gamma=0.0):
    kept = mask.bool()
    gap = teacher_logprobs - student_logprobs
    gap = torch.where(kept, gap, 0).detach()
    columns, later = [], torch.zeros_like(gap[:, 0])
    for t in reversed(range(gap.shape[1])):
        later = gap[:, t] + gamma * later
        columns = [later, *columns]
    advantages = torch.stack(columns, 1)
    return torch.where(kept, advantages, 0)


def centered(a, kept):
    mean = a.sum() / kept.sum().clamp(min=1)
    return (a - mean) * kept


def whitened(a, kept):
    apart = centered(a, kept)
    return apart / (apart.square().sum() / kept.sum().clamp(min=1)).sqrt().clamp(min=1e-8)


def shifted(gap):
    return torch.cat([gap[:, 1:], torch.zeros_like(gap[:, :1])], 1)


def rest(gap):
    return gap.flip(1).cumsum(1).flip(1) - gap


def by_double_loop(student_logprobs, teacher_logprobs, mask, gamma=0.0):
    out = torch.zeros_like(student_logprobs).detach()
    for i, t in mask.bool().nonzero().tolist():
        for later in range(t, mask.shape[1]):
            if mask[i, later]:
                gap = teacher_logprobs[i, later] - student_logprobs[i, later]
                out[i, t] += gamma ** (later - t) * gap.detach()
    return out


sketch = Sketch(line_by_line, centered, whitened, shifted, rest)
alternatives = (by_double_loop,)
