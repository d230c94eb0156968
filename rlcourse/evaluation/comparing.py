r"""Which of two policies is better, as far as problems that both have tried can tell.

Both are judged on the same problems, so the difference is taken problem by problem: what makes a
problem hard for both cancels, and the interval of the mean difference is narrower than two separate
intervals suggest. Greedy answers are also compared by the exact sign test on the problems that only
one of the two solves (McNemar 1947): under "no difference" each of these is a fair coin.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, comb, sqrt
from pathlib import Path
from statistics import NormalDist, fmean, stdev

from rlcourse.errors import UserError
from rlcourse.evaluation.directory import read_evaluation, read_settings
from rlcourse.evaluation.scores import Evaluation, Interval, scores
from rlcourse.evaluation.tables import aligned

POWER = 0.8
Z = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(POWER)  # 2.80: see ``difference``
NAMED = {
    "accuracy": "greedy accuracy",
    "lenient_accuracy": "greedy, read leniently",
    "sampled_accuracy": "sampled accuracy",
    "sampled_lenient_accuracy": "sampled, read leniently",
    "format_rate": "greedy: the rule reads a number",
    "sampled_format_rate": "sampled: the rule reads a number",
    "format_reward": "greedy format reward",
    "sampled_format_reward": "sampled format reward",
    "length": "tokens of a sample",
    "truncated": "cut off at max_tokens",
}


@dataclass(frozen=True)
class Difference:
    """One measure of two policies on the same problems, and the difference B − A."""

    name: str  # as in `scores`: "accuracy", "pass@8", ...
    a: float
    b: float
    difference: Interval  # paired bootstrap over problems
    problems: int
    decided: int  # of these, problems in which A and B differ
    detectable: float  # the difference that this many problems detect four times in five
    needed: int | None  # problems that would show this one as often; None where there is none
    p_value: float | None  # exact sign test, where a problem is either solved or not

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval does."""
        return self.difference.low > 0 or self.difference.high < 0

    @property
    def told_apart(self) -> bool:
        """The interval excludes 0, and an exact test agrees.

        If few problems are decided differently, the bootstrap is overconfident: even when all five
        of them point the same way, that happens by chance with probability 2/2⁵ > 0.05.
        """
        exact = self.p_value < 0.05 if self.p_value is not None else self.decided > 5
        return self.excludes_zero and exact

    @property
    def verdict(self) -> str:
        """What may be said, in words."""
        d = self.difference
        if self.told_apart:
            higher = "B" if d.value > 0 else "A"
            return f"{higher} is higher by {abs(d.value):.3f}, the interval excludes 0"
        if self.decided == 0:
            return f"the same on each of the {self.problems:,} problems"
        cannot = f"cannot be told apart with {self.problems:,} problems"
        if self.needed is None:
            return f"{cannot}, which can show a difference of about {self.detectable:.3f} or more"
        if self.excludes_zero:
            cannot += f" (the interval excludes 0, but only {self.decided} of them differ)"
        if self.needed <= self.problems:
            return cannot
        digits = max(0, len(str(self.needed)) - 2)
        about = round(self.needed, -digits)
        return f"{cannot}; about {about:,} would be needed to see a difference of this size"


@dataclass(frozen=True)
class Comparison:
    """Two policies on the same problems: B against A."""

    names: tuple[str, str]
    problems: int
    both: int  # problems that both solve greedily
    only_a: int
    only_b: int
    neither: int
    p_value: float  # exact two-sided sign test of only_a against only_b
    differences: list[Difference]
    settings: dict[str, tuple]  # those that differ: name → (A's, B's)

    def __getitem__(self, name: str) -> Difference:
        """The difference in one measure, such as ``comparison["accuracy"]``."""
        return next(d for d in self.differences if d.name == name)

    @property
    def verdict(self) -> str:
        """Greedy and, where both sampled, sampled accuracy, each in a sentence."""
        told = {d.name: f"{NAMED.get(d.name, d.name)}: {d.verdict}." for d in self.differences}
        asked = (told.get(name, "") for name in ("accuracy", "sampled_accuracy"))
        return "\n".join(line[0].upper() + line[1:] for line in asked if line)

    def __str__(self) -> str:
        rows = [["", "A", "B", "B − A [95 % interval]", "told apart"]]
        rows += map(_row, self.differences)
        lines = [f"A  {self.names[0]}", f"B  {self.names[1]}", f"{self.problems:,} problems"]
        if self.settings:
            lines.append("settings that differ, A's and B's:")
            lines += [f"  {name}: {a!r} and {b!r}" for name, (a, b) in self.settings.items()]
        chance = "(by chance alone, one line in twenty shows a difference: choose yours beforehand)"
        greedy = (
            f"Greedy: both solve {self.both:,}, only A {self.only_a:,}, only B {self.only_b:,}, "
            f"neither {self.neither:,}; exact sign test p = {self.p_value:.3g}"
        )
        return "\n".join([*lines, "", aligned(rows), chance, "", greedy, self.verdict])

    __repr__ = __str__


def compare(a: Evaluation | str | Path, b: Evaluation | str | Path) -> Comparison:
    """Compare two evaluations, or what `read_evaluation` finds at two paths.

    The settings may differ (you can compare two prompts or two extraction rules),
    the problems may not, except for what a task puts before every question. pass@k and maj@k are
    compared for every k > 1 that both have; for k = 1 they are the sampled accuracy.

    Raises:
        UserError: the problems are not the same ones in the same order, or the texts are missing.
    """
    first, second = (e if isinstance(e, Evaluation) else read_evaluation(e) for e in (a, b))
    name_a = "A" if isinstance(a, Evaluation) else str(a)
    names = (name_a, "B" if isinstance(b, Evaluation) else str(b))
    _check_same_problems(first, second, names)
    scores_a, scores_b = scores(first.transcripts), scores(second.transcripts)
    outcomes = list(zip(scores_a["accuracy"], scores_b["accuracy"], strict=True))
    # Where only one of them sampled, lengths are of two kinds.
    unlike = ("length", "truncated") if bool(first.samples) != bool(second.samples) else ()
    shared = [n for n in scores_a if n in scores_b and not n.endswith("@1") and n not in unlike]
    differences = [difference(name, scores_a[name], scores_b[name]) for name in shared]
    p_value = differences[0].p_value
    assert p_value is not None, "a problem is solved greedily, or it is not"
    return Comparison(
        names=names,
        problems=first.problems,
        both=outcomes.count((1, 1)),
        only_a=outcomes.count((1, 0)),
        only_b=outcomes.count((0, 1)),
        neither=outcomes.count((0, 0)),
        p_value=p_value,
        differences=differences,
        settings=_differing(_settings(a, first), _settings(b, second)),
    )


def difference(name: str, a: Sequence[float], b: Sequence[float]) -> Difference:
    """B − A of one score a problem: paired interval, exact test, and how many problems it takes.

    To see a true difference d four times in five at the 5 % level takes about
    (z₀.₉₇₅ + z₀.₈)² s² / d² = 7.85 s² / d² problems, where s is the standard deviation, over
    problems, of the difference between the two scores. Turned around, n problems show a difference
    of 2.80 s / √n. Source: the sample size of the paired z-test, such as Lehr 1992.
    """
    paired = [y - x for x, y in zip(a, b, strict=True)]
    n, mean = len(paired), fmean(paired)
    spread = stdev(paired) if n > 1 else 0.0
    binary = {*a, *b} <= {0.0, 1.0}
    return Difference(
        name=name,
        a=fmean(a),
        b=fmean(b),
        difference=Interval.of(paired, share=False),
        problems=n,
        decided=n - paired.count(0),
        detectable=Z * spread / sqrt(n),
        needed=ceil((Z * spread / mean) ** 2) if mean else None,
        p_value=sign_test(paired.count(-1), paired.count(1)) if binary else None,
    )


def smallest_lift(problems: int, samples: int) -> float:
    """The smallest true gain in sampled accuracy that an evaluation shows four times in five.

    This is ``Difference.detectable`` before anything was measured, with s² = 2 · ¼ / samples: every
    answer varies like the flip of a fair coin, before training and after it. Where answers are
    surer, a smaller gain shows; where some problems gain and others lose, it takes a larger one.

    Args:
        problems: how many are evaluated, the same ones before and after.
        samples: sampled answers to each of them.
    """
    return Z * sqrt(0.5 / samples / problems)


def sign_test(only_a: int, only_b: int) -> float:
    """Two-sided p-value of so uneven a split of only_a + only_b fair coins, or a more uneven one.

    Exact, by the binomial distribution; 1 where the two never differ. Source: McNemar 1947.
    """
    n = only_a + only_b
    tail = sum(comb(n, i) for i in range(min(only_a, only_b) + 1))
    return min(1.0, 2 * tail / 2**n)


def _check_same_problems(a: Evaluation, b: Evaluation, names: tuple[str, str]) -> None:
    for evaluation, name in zip((a, b), names, strict=True):
        if not evaluation.transcripts:
            raise UserError(f"the evaluation {name} has no transcripts to compare: make it again")
    if a.problems != b.problems:
        raise UserError(
            f"{names[0]} has {a.problems} problems and {names[1]} has {b.problems}: "
            "evaluate both on the same problems"
        )
    for i, (one, other) in enumerate(zip(a.transcripts, b.transcripts, strict=True), 1):
        asked = sorted((one.question, other.question), key=len)
        if one.answer != other.answer or not asked[1].endswith(asked[0]):
            raise UserError(
                f"{names[0]} and {names[1]} differ in problem {i}: evaluate both with the same "
                "task, data and seed"
            )


def _settings(given: Evaluation | str | Path, evaluation: Evaluation) -> dict:
    known = {"samples": evaluation.samples, "temperature": evaluation.temperature}
    return known | ({} if isinstance(given, Evaluation) else read_settings(given))


def _differing(a: dict, b: dict) -> dict[str, tuple]:
    return {
        name: (a[name], b[name])
        for name in a
        if name in b and a[name] != b[name] and name != "weights"
    }


def _row(d: Difference) -> list[str]:
    digits = 1 if d.name == "length" else 3
    a, b, low, high = (f"{x:.{digits}f}" for x in (d.a, d.b, d.difference.low, d.difference.high))
    found = f"{d.difference.value:+.{digits}f} [{low}, {high}]"
    few = f"no, only {d.decided} differ" if d.excludes_zero else "no"
    return [NAMED.get(d.name, d.name), a, b, found, "yes" if d.told_apart else few]
