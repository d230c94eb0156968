"""A soft limit on length."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label, lengths, max_tokens, buffer) -> Case:
        """Lengths are counts. Counts have no precision, so the result may have torch's default."""
        arguments = {"lengths": torch.as_tensor(lengths), "max_tokens": max_tokens}
        return Case(label, {**arguments, "buffer": buffer}, atol=1e-6)

    yield case("worked: a limit of 64, a buffer of 16", [10, 48, 52, 56, 64, 70], 64, 16)
    yield case("all short", [0, 1, 5], 20, 4)
    yield case("at the start of the buffer", [15, 16, 17], 20, 4)
    yield case("at the limit", [19, 20, 21, 60], 20, 4)
    yield case("a buffer of one token", [18, 19, 20, 21], 20, 1)
    yield case("a buffer as long as the limit", [0, 3, 6, 12, 15], 12, 12)
    limit, buffer = draw.integer(30, 60), draw.integer(5, 20)
    yield case("random lengths", draw.integers(12, high=80) + 1, limit, buffer)
    yield case("inside the buffer", torch.arange(41, 50), 50, 10)
    yield case("one completion", [18], 20, 5)
    yield case("lengths that are float", (draw.integers(6, high=80) + 1).float(), limit, buffer)


def by_where(lengths, max_tokens, buffer):
    start = max_tokens - buffer
    ramp = (start - lengths) / buffer
    return torch.where(lengths <= start, 0.0, torch.where(lengths <= max_tokens, ramp, -1.0)).to(
        ramp.dtype
    )


def by_loop(lengths, max_tokens, buffer):
    values = [min(0.0, max(-1.0, (max_tokens - buffer - n) / buffer)) for n in lengths.tolist()]
    dtype = lengths.dtype if lengths.is_floating_point() else torch.get_default_dtype()
    return torch.tensor(values, dtype=dtype)


alternatives = (by_where, by_loop)
