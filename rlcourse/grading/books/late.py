"""Penalties for late submissions, by the course's own nbgrader plugin."""

from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties
from traitlets.config import Config


class Late:
    """The plugin that ``c.AssignLatePenalties.plugin_class`` names; by default, no penalty."""

    def __init__(self, config: Config):
        self._assigns = AssignLatePenalties(config=config)
        self._assigns.init_plugin()

    def penalize(self, gradebook: Gradebook, student: str, submission) -> float:
        """Set a submission's penalty by all of its points, those given by hand included.

        A penalty takes off no more than there is. Whoever calls this commits.
        """
        total = 0.0
        for submitted in submission.notebooks:
            penalty = None
            if submission.total_seconds_late > 0:
                gradebook.db.refresh(submitted)
                penalty = self._assigns.plugin_inst.late_submission_penalty(
                    student, submitted.score, submission.total_seconds_late
                )
            if penalty is not None:
                penalty = min(max(penalty, 0.0), submitted.score)
            if submitted.late_submission_penalty != penalty:
                submitted.late_submission_penalty = penalty
            total += penalty or 0.0
        return total
