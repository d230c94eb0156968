"""What an evaluation found: every completion with what was read from it, and the means of that.

From the bottom up:

- ``Completion``: one text, the number that the task's rule read (``given``) and the number that the
  lenient rule read (``lenient``), whether each is right, the length in tokens, whether it was cut.
- ``Transcript``: a problem with its reference ``answer``, the ``greedy`` completion and the
  ``samples``. ``completion``, ``given``, ``correct`` speak of the greedy one, ``samples_correct``
  counts the samples that the task's rule finds right.
- ``Evaluation``: the transcripts, and means over problems as ``Interval``. Names without a prefix
  speak of greedy completions, those with ``sampled_`` of the mean over a problem's samples::

    | | greedy | samples |
    |---|---|---|
    | right by the task's rule | ``accuracy`` | ``sampled_accuracy`` |
    | right, read leniently | ``lenient_accuracy`` | ``sampled_lenient_accuracy`` |
    | the task's rule read a number | ``format_rate`` | ``sampled_format_rate`` |
    | ``format_reward``, None unless asked for | ``format_reward`` | ``sampled_format_reward`` |
    | at least one of k is right, unbiased | | ``pass_at[k]`` |
    | the majority vote of k is right | | ``majority_at[k]`` |
    | tokens of a completion | | ``length``, ``length_right``, ``length_wrong`` |
    | share cut off at ``max_tokens`` | | ``truncated`` |

  An evaluation without samples has ``length`` and ``truncated`` of its greedy completions.

  The published setting "8 samples at temperature 0.7; mean accuracy and mean format reward over
  samples" is ``sampled_accuracy`` and ``sampled_format_reward`` of an evaluation with these samples
  and this temperature.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import nan
from statistics import fmean

from rlcourse.algorithms.gsm8k import majority_vote, pass_at_k
from rlcourse.evaluation.transcripts import side_by_side
from rlcourse.intervals import interval_of


@dataclass(frozen=True)
class Interval:
    """A mean over problems with its 95 % interval. ``float(interval)`` is the mean."""

    value: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    @classmethod
    def of(cls, scores: Sequence[float], share: bool = True) -> "Interval":
        """The mean of one score a problem and its interval; with `share` all are in 0 to 1."""
        return cls(fmean(scores), *interval_of(scores, share))


@dataclass(frozen=True)
class Completion:
    """One text that the policy wrote, and what was made of it."""

    text: str
    given: str | None  # the number that the task's rule read
    correct: bool
    lenient: str | None  # the number that `extract_lenient_answer` read
    lenient_correct: bool
    length: int  # tokens, the end token included
    truncated: bool  # reached max_tokens
    format_reward: float | None = None  # where it was asked for


@dataclass(frozen=True)
class Transcript:
    """One problem and what the policy made of it."""

    question: str
    answer: str  # the reference solution
    greedy: Completion
    samples: tuple[Completion, ...] = ()

    @property
    def completion(self) -> str:
        """The greedy completion's text."""
        return self.greedy.text

    @property
    def given(self) -> str | None:
        """The number that the task's rule read from the greedy completion."""
        return self.greedy.given

    @property
    def correct(self) -> bool:
        """Whether that number is right."""
        return self.greedy.correct

    @property
    def samples_correct(self) -> int:
        """How many of the samples are right by the task's rule."""
        return sum(sample.correct for sample in self.samples)

    @classmethod
    def from_dict(cls, values: dict) -> "Transcript":
        """The inverse of ``dataclasses.asdict``."""
        samples = tuple(Completion(**sample) for sample in values["samples"])
        return cls(**values | {"greedy": Completion(**values["greedy"]), "samples": samples})


@dataclass(frozen=True)
class Evaluation:
    """What ``evaluate_policy`` measured. ``to_dict`` and ``from_dict`` make it JSON and back."""

    problems: int
    samples: int  # completions a problem, besides the greedy one
    temperature: float  # of the samples
    accuracy: Interval
    lenient_accuracy: Interval
    format_rate: Interval
    pass_at: dict[int, Interval]
    majority_at: dict[int, Interval]
    length: Interval
    length_right: Interval | None  # over problems with a right sample; None where there is none
    length_wrong: Interval | None
    truncated: Interval
    tokens: int  # written in all, greedy completions included
    seconds: float
    # Those of samples are None where only greedy completions were asked for.
    sampled_accuracy: Interval | None = None
    sampled_lenient_accuracy: Interval | None = None
    sampled_format_rate: Interval | None = None
    format_reward: Interval | None = None
    sampled_format_reward: Interval | None = None
    transcripts: list[Transcript] = field(repr=False, default_factory=list)

    @property
    def mean_length(self) -> float:
        """Tokens of a sampled completion, or of a greedy one where nothing was sampled."""
        return self.length.value

    @classmethod
    def of(cls, transcripts: list[Transcript], temperature: float, seconds: float) -> "Evaluation":
        """All means and intervals of these transcripts, each with the same number of samples."""
        found = scores(transcripts).items()
        means = {name: Interval.of(score, share=name != "length") for name, score in found}
        sizes = vote_sizes(len(transcripts[0].samples))
        written = [c for t in transcripts for c in (t.greedy, *t.samples)]
        return cls(
            problems=len(transcripts),
            samples=len(transcripts[0].samples),
            temperature=temperature,
            pass_at={k: means.pop(f"pass@{k}") for k in sizes},
            majority_at={k: means.pop(f"maj@{k}") for k in sizes},
            length_right=_mean_length(transcripts, right=True),
            length_wrong=_mean_length(transcripts, right=False),
            tokens=sum(c.length for c in written),
            seconds=seconds,
            transcripts=transcripts,
            **means,
        )

    def to_dict(self, transcripts: bool = True) -> dict:
        """Plain values for JSON; without `transcripts` where only the numbers are wanted."""
        values = asdict(self)
        for name in ("pass_at", "majority_at"):
            values[name] = {str(k): interval for k, interval in values[name].items()}
        if not transcripts:
            del values["transcripts"]
        return values

    @classmethod
    def from_dict(cls, values: dict) -> "Evaluation":
        """The inverse of ``to_dict``."""

        def read(value):
            if not isinstance(value, dict):
                return value
            if "low" in value:
                return Interval(**value)
            return {int(k): Interval(**interval) for k, interval in value.items()}

        transcripts = [Transcript.from_dict(t) for t in values.get("transcripts", ())]
        known = {name: read(value) for name, value in values.items() if name != "transcripts"}
        return cls(**known, transcripts=transcripts)

    def __str__(self) -> str:
        drawn = ""
        if self.samples:
            best = max(self.pass_at)
            drawn = f" · sampled {self.sampled_accuracy} · pass@{best} {self.pass_at[best]}"
        return f"greedy {self.accuracy}{drawn} · {self.problems} problems"

    def _repr_html_(self) -> str:
        return (
            f"<p>{self}</p>"
            + side_by_side({"completion": self.transcripts}, self.samples, 6)._repr_html_()
        )


def scores(transcripts: Sequence[Transcript]) -> dict[str, list[float]]:
    """One score a problem for everything that is averaged over problems, by name.

    Two policies' scores of the same problems are paired: ``compare`` rests on that.
    """
    found: dict[str, list[float]] = {
        "accuracy": [t.greedy.correct for t in transcripts],
        "sampled_accuracy": [_share(s.correct for s in t.samples) for t in transcripts],
        "lenient_accuracy": [t.greedy.lenient_correct for t in transcripts],
        "sampled_lenient_accuracy": [
            _share(s.lenient_correct for s in t.samples) for t in transcripts
        ],
        "format_rate": [t.greedy.given is not None for t in transcripts],
        "sampled_format_rate": [
            _share(s.given is not None for s in t.samples) for t in transcripts
        ],
    }
    if transcripts[0].greedy.format_reward is not None:
        found["format_reward"] = [t.greedy.format_reward or 0.0 for t in transcripts]
        found["sampled_format_reward"] = [
            _share(s.format_reward or 0.0 for s in t.samples) for t in transcripts
        ]
    sizes = vote_sizes(len(transcripts[0].samples))
    for k in sizes:
        found[f"pass@{k}"] = [pass_at_k(len(t.samples), t.samples_correct, k) for t in transcripts]
    for k in sizes:
        found[f"maj@{k}"] = [_votes_won(t, k) for t in transcripts]
    measured = [t.samples or (t.greedy,) for t in transcripts]
    found["length"] = [_share(c.length for c in some) for some in measured]
    found["truncated"] = [_share(c.truncated for c in some) for some in measured]
    sampled = bool(transcripts[0].samples)
    return {
        name: [float(score) for score in values]
        for name, values in found.items()
        if sampled or not name.startswith("sampled_")
    }


def vote_sizes(samples: int) -> list[int]:
    """The k of pass@k and maj@k: powers of two, and all samples; none without samples."""
    smaller = [k for k in (1, 2, 4, 8, 16, 32, 64, 128) if k < samples]
    return [*smaller, samples] if samples else []


def _share(values: Iterable[float]) -> float:
    return fmean(list(map(float, values)) or [nan])


def _votes_won(transcript: Transcript, k: int) -> float:
    """Share of majority votes that are right, one vote for each whole run of k samples.

    Disjoint runs keep the votes independent, so their mean is an unbiased estimate of maj@k.
    Source: Wang et al. 2023, "Self-Consistency", section 2.
    """
    right = {s.given for s in transcript.samples if s.correct}
    answers = [s.given for s in transcript.samples]
    runs = [answers[start : start + k] for start in range(0, len(answers) - k + 1, k)]
    return _share(majority_vote(run) in right for run in runs)


def _mean_length(transcripts: Sequence[Transcript], right: bool) -> Interval | None:
    """Mean length of right (or wrong) samples, over the problems that have any."""
    lengths = [[s.length for s in t.samples if s.correct == right] for t in transcripts]
    means = [_share(some) for some in lengths if some]
    return Interval.of(means, share=False) if means else None
