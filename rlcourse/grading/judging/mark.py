"""What one exercise of a submission earned, and why."""

from dataclasses import asdict, dataclass

from rlcourse.grading.judging.finding import UNREAD


@dataclass(frozen=True)
class Mark:
    """What one exercise earned, in [0, ``possible``], and the message to the student."""

    exercise: str
    points: float
    possible: float
    passed: bool
    mistake: str | None
    message: str
    once: tuple[str, ...] = ()  # wrong functions that it uses, with right ones of which it passed
    state: str = UNREAD  # one of ``finding.STATES``
    sentences: tuple[str, ...] = ()
    heading: str = ""
    case: tuple[tuple[str, str], ...] = ()  # the smallest failing one, as (what, value)
    because: tuple[str, ...] = ()  # wrong functions that it uses: they are to be fixed first
    measured: dict | None = None  # of a contest, for the leaderboard

    @classmethod
    def from_json(cls, data: dict) -> "Mark":
        lists = {name: tuple(data[name]) for name in ("once", "sentences", "because")}
        return cls(**{**data, **lists, "case": tuple(map(tuple, data["case"]))})

    def as_row(self) -> dict:
        """What the report says of it."""
        row = asdict(self)
        del row["exercise"], row["passed"]
        return row if self.measured else {n: v for n, v in row.items() if n != "measured"}
