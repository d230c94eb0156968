"""What one exercise of a submission earned, and why."""

from dataclasses import dataclass

from rlcourse.grading.judging import finding as found_out
from rlcourse.grading.judging.finding import Finding


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
    finding: Finding | None = None
    measured: dict | None = None  # of a contest, for the leaderboard

    @classmethod
    def from_json(cls, data: dict) -> "Mark":
        finding = data["finding"] and Finding.from_json(data["finding"])
        return cls(**{**data, "once": tuple(data["once"]), "finding": finding})

    def as_row(self) -> dict:
        """What the report says of it, and every answer whatever became of it."""
        finding = self.finding or Finding(found_out.UNREAD)
        return {
            "points": self.points,
            "possible": self.possible,
            "mistake": self.mistake,
            "once": list(self.once),
            "message": self.message,
            **({"measured": self.measured} if self.measured else {}),
            **finding.as_json(),
        }
