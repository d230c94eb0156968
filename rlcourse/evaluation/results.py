"""What an evaluation found: means with intervals, pass@k, and what was said to each problem."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import torch

from rlcourse.algorithms.evaluation import bootstrap_interval


@dataclass(frozen=True)
class Interval:
    """A mean over problems with its 95 % bootstrap interval. ``float(interval)`` is the mean."""

    value: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    @classmethod
    def of(cls, scores: Sequence[float]) -> "Interval":
        """The mean of one score a problem and its interval."""
        scores = torch.tensor(scores, dtype=torch.float64)
        return cls(scores.mean().item(), *bootstrap_interval(scores))


@dataclass(frozen=True)
class Transcript:
    """One problem and what the policy made of it."""

    question: str
    answer: str  # the reference solution
    completion: str  # the greedy one
    given: str | None  # the number read from it
    correct: bool
    samples_correct: int  # of the sampled completions


@dataclass(frozen=True)
class Evaluation:
    """What ``evaluate_policy`` measured. ``to_dict`` and ``from_dict`` make it JSON and back."""

    problems: int
    samples: int  # completions a problem, besides the greedy one
    temperature: float
    accuracy: Interval  # greedy
    sampled_accuracy: Interval
    pass_at: dict[int, Interval]  # k → unbiased pass@k
    mean_length: float  # tokens of a sampled completion
    clipped_ratio: float  # fraction of sampled completions that reached max_tokens
    tokens: int  # sampled in all
    seconds: float
    transcripts: list[Transcript] = field(repr=False, default_factory=list)

    def to_dict(self, transcripts: bool = True) -> dict:
        """Plain values for JSON; without `transcripts` where only the numbers are wanted."""
        values = asdict(self)
        values["pass_at"] = {str(k): interval for k, interval in values["pass_at"].items()}
        if not transcripts:
            del values["transcripts"]
        return values

    @classmethod
    def from_dict(cls, values: dict) -> "Evaluation":
        """The inverse of ``to_dict``."""
        return cls(
            **values
            | {
                "accuracy": Interval(**values["accuracy"]),
                "sampled_accuracy": Interval(**values["sampled_accuracy"]),
                "pass_at": {int(k): Interval(**i) for k, i in values["pass_at"].items()},
                "transcripts": [Transcript(**t) for t in values.get("transcripts", ())],
            }
        )

    def __str__(self) -> str:
        best = max(self.pass_at)
        return (
            f"greedy {self.accuracy} · sampled {self.sampled_accuracy} · "
            f"pass@{best} {self.pass_at[best]} · {self.problems} problems"
        )

    def _repr_html_(self) -> str:
        from rlcourse.evaluation.transcripts import transcripts_table

        return f"<p>{self}</p>" + transcripts_table(self)._repr_html_()
