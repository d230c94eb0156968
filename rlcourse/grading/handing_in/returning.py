"""Feedback through nbgrader's exchange, to those who handed in through it."""

import re
from collections.abc import Iterator
from contextlib import suppress
from glob import glob
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.utils import temp_attrs

from rlcourse.errors import UserError
from rlcourse.grading.books.grades import read_grades

NOTES = ("timestamp.txt", "submission_secret.txt")  # the exchange's, of what was handed in there


class ReleaseFeedback(ExchangeReleaseFeedback):
    """nbgrader's own, which stops at the first student whose work came from elsewhere: it has no
    secret by which only that student finds the page. Here they are named and left out, and so are
    those whose answers wait for points by hand, for which their pages show 0."""

    def copy_files(self):
        elsewhere = sorted(self._elsewhere())
        if self.coursedir.student_id in elsewhere:
            self.fail(self._sentence([self.coursedir.student_id]))
        if elsewhere:
            self.log.warning("%s", self._sentence(elsewhere))
        waiting = [] if self.coursedir.student_id != "*" else self._waiting()
        if waiting:
            self.log.warning(
                "points by hand are still to be given or confirmed, so these pages are not "
                "released: %s; with --student NAME, one is released all the same",
                ", ".join(waiting),
            )
        left_out = [self.coursedir.student_id_exclude, *elsewhere, *waiting]
        with temp_attrs(self.coursedir, student_id_exclude=",".join(filter(None, left_out))):
            super().copy_files()

    def _waiting(self) -> list[str]:
        lesson = self.coursedir.assignment_id
        with suppress(UserError):  # nothing was graded, which nbgrader says itself
            return read_grades(Path(self.coursedir.root), [lesson]).waiting(lesson)
        return []

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
