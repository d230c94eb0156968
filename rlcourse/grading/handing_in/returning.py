"""Feedback through nbgrader's exchange, to those who handed in through it."""

import re
from collections.abc import Iterator
from glob import glob
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.utils import temp_attrs

NOTES = ("timestamp.txt", "submission_secret.txt")  # the exchange's, of what was handed in there


class ReleaseFeedback(ExchangeReleaseFeedback):
    """nbgrader's own, which stops at the first student whose work came from elsewhere: it has no
    secret by which only that student finds the page. Here they are named and left out."""

    def copy_files(self):
        elsewhere = sorted(self._elsewhere())
        if self.coursedir.student_id in elsewhere:
            self.fail(self._sentence([self.coursedir.student_id]))
        if elsewhere:
            self.log.warning("%s", self._sentence(elsewhere))
        before = self.coursedir.student_id_exclude
        with temp_attrs(
            self.coursedir, student_id_exclude=",".join(filter(None, [before, *elsewhere]))
        ):
            super().copy_files()

    def _elsewhere(self) -> Iterator[str]:
        directory, lesson = self.coursedir.feedback_directory, self.coursedir.assignment_id
        pattern = self.coursedir.format_path(directory, "(?P<student>.*)", lesson, escape=True)
        for folder in glob(self.src_path):
            found = re.fullmatch(pattern, folder)
            if found and not all((Path(folder) / name).is_file() for name in NOTES):
                yield found["student"]

    def _sentence(self, students: list[str]) -> str:
        return (
            f"these did not hand in {self.coursedir.assignment_id} through the exchange, so send "
            f"them their pages in feedback/ yourself: {', '.join(students)}"
        )
