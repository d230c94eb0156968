"""Whether a report of an experiment says everything that a reader needs, field by field.

A form can check that there is a prediction, that there are three seeds, and that the numbers belong
together. Whether the experiment answers its question is for a person to judge.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from statistics import fmean

WORDS = 5  # a shorter field says too little for anybody to disagree with
SEEDS = 3
TEXTS = {
    "question": "what you wanted to know, as a question",
    "change": "the one thing that differs between the two sides",
    "prediction": "what you expected, written before the runs, with a number",
    "measure": "what the numbers are: which measure, on which problems, with how many samples",
    "conclusion": "what the numbers say about the question",
    "limits": "what they do not say",
}


@dataclass
class ExperimentReport:
    """A page about one change: `before` and `after` hold a number for each seed.

    `interval` is that of the mean difference, after minus before, in the same unit.
    """

    question: str = ""
    change: str = ""
    prediction: str = ""
    measure: str = ""
    before: Sequence[float] = field(default_factory=list)
    after: Sequence[float] = field(default_factory=list)
    interval: tuple[float, float] | None = None
    conclusion: str = ""
    limits: str = ""

    def gaps(self) -> list[str]:
        """What is missing or impossible, one sentence each; an empty list if nothing is."""
        return [*_text_gaps(self), *_number_gaps(self)]

    def page(self) -> str:
        """The report as Markdown."""
        parts = [f"**{name.capitalize()}.** {getattr(self, name)}" for name in TEXTS]
        rows = [
            f"| {side} | {' | '.join(f'{value:.3f}' for value in values)} |"
            for side, values in (("before", self.before), ("after", self.after))
        ]
        seeds = range(max(len(self.before), len(self.after)))
        head = f"| | {' | '.join(f'seed {i}' for i in seeds)} |\n|---{'|---' * len(seeds)}|"
        found = "no interval"
        if self.interval is not None:
            low, high = self.interval
            found = f"Mean difference, 95 % interval: {low:+.3f} to {high:+.3f}"
        return "\n\n".join([*parts[:4], "\n".join([head, *rows]), found, *parts[4:]])


def _text_gaps(report: ExperimentReport) -> list[str]:
    gaps = []
    for name, what in TEXTS.items():
        text = str(getattr(report, name) or "").strip()
        if len(text.split()) < WORDS:
            gaps.append(f"{name}: say {what}, in {WORDS} words or more.")
    if report.question.strip() and "?" not in report.question:
        gaps.append(
            "question: it has no question mark; what would count as a yes, and what as a no?"
        )
    if report.prediction.strip() and not any(c.isdigit() for c in report.prediction):
        gaps.append("prediction: it contains no number, so nothing can prove it wrong.")
    if report.conclusion.strip() and report.conclusion.strip() == report.prediction.strip():
        gaps.append("conclusion: it repeats the prediction word for word.")
    return gaps


def _number_gaps(report: ExperimentReport) -> list[str]:
    before, after = list(report.before), list(report.after)
    gaps = [
        f"{name}: {len(values)} of at least {SEEDS} seeds; give one number for each."
        for name, values in (("before", before), ("after", after))
        if len(values) < SEEDS
    ]
    if len(before) != len(after):
        gaps.append(
            f"before and after: {len(before)} numbers against {len(after)}; use one seed a pair."
        )
    if not all(isfinite(value) for value in (*before, *after)):
        gaps.append(
            "before and after: a number is not finite; that run failed, so report that instead."
        )
        return gaps
    for name, values in (("before", before), ("after", after)):
        if len(values) >= SEEDS and len(set(values)) == 1:
            gaps.append(f"{name}: all seeds gave the same number; was the seed really changed?")
    return gaps + _interval_gaps(report, before, after)


def _interval_gaps(report, before: list[float], after: list[float]) -> list[str]:
    if report.interval is None:
        return ["interval: give (low, high) of the mean difference, after minus before."]
    low, high = report.interval
    if not (isfinite(low) and isfinite(high) and low < high):
        return [f"interval: ({low}, {high}) is not an interval; low must be the smaller number."]
    if before and len(before) == len(after):
        difference = fmean(after) - fmean(before)
        if not low <= difference <= high:
            return [
                f"interval: the mean difference is {difference:+.3f}, which is not between "
                f"{low:+.3f} and {high:+.3f}; is it after minus before, in the same unit?"
            ]
    return []
