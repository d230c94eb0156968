"""Numbers that are almost right: most of the answer is, and what is wrong in it weighs little."""

from rlcourse.checks.judging.failed import FailedCheck
from rlcourse.checks.telling.patterns import Pair

NEAR = 0.02  # of the size of the expected numbers
MOST = 0.6  # of the failing cases
ENOUGH = 3  # of them
SENTENCE = (
    "On most cases your numbers come within {percent} % of the expected ones, so most of it is "
    "right: look at what weighs little there, such as an ε or a term with a small factor."
)


def almost_right(failed: FailedCheck) -> str | None:
    """A sentence if most failing cases that are not at the edge are almost right, or None."""
    ordinary = failed.without(frozenset(i for i in failed.failing if failed.cases[i].edge))
    if any(d.kind not in ("value", "gradient") for _, d in ordinary.found(*KINDS)):
        return None
    pairs = [pair for pair in ordinary.pairs("value") if _is_plain(pair)]
    scales = sorted(float(pair.expected.abs().max()) for pair in pairs)
    if len(pairs) < ENOUGH or len(pairs) < len(ordinary.found("value")) / 2:
        return None
    typical = scales[len(scales) // 2]
    near = [share for pair in pairs if (share := _deviation(pair, typical)) <= NEAR]
    if len(near) < max(ENOUGH, MOST * len(pairs)) or len({round(n, 6) for n in near}) < ENOUGH:
        return None
    return SENTENCE.format(percent=f"{100 * max(near):.1g}")


KINDS = ("error", "type", "structure", "shape", "dtype", "value", "gradient", "after")


def _is_plain(pair: Pair) -> bool:
    same = pair.expected.shape == pair.actual.shape and pair.expected.numel()
    return bool(same and pair.expected.isfinite().all() and pair.actual.isfinite().all())


def _deviation(pair: Pair, typical: float) -> float:
    """The largest error, as a share of the numbers' size."""
    scale = max(float(pair.expected.abs().max()), typical, 1e-12)
    return float((pair.expected - pair.actual).abs().max()) / scale
