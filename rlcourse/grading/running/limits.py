"""How long student code may take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Processor seconds for a cell or exam and for a submission: a busy machine takes no points.

    Time on the clock, `patience` seconds for each processor second, ends those that only wait.
    """

    step: float = 30.0
    grace: float = 2.0  # from the interruption until it is killed
    submission: float = 180.0
    patience: float = 4.0
    look: float = 2.0  # between two looks at a process that hears no alarm

    @property
    def clock(self) -> float:
        """What a submission may take on the clock, over all its processes."""
        return self.submission * self.patience

    @property
    def seconds(self) -> dict[str, float]:
        """What a step may take, for the process to interrupt itself."""
        return {"seconds": self.step, "wall": self.step * self.patience}
