"""What a student handed in, read in one place: whatever the directory holds becomes a value.

Names, notes, links, times and sizes are the student's. Useful things are read with bounds;
everything else is a reason why nothing is graded, or a remark for a person. Nothing here raises.
"""

import os
import re
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from rlcourse.grading.handing_in.submission import digest
from rlcourse.grading.handing_in.untrusted_files import find_notebook, read_bytes
from rlcourse.grading.names import shown, why_no_id
from rlcourse.grading.rejected import REFUSED, UNREADABLE, Rejected
from rlcourse.grading.running.steps import Incident
from rlcourse.moments import moment

UNTIMED = "unreadable time"  # a status: the notebook was graded, and a person should look
TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"
LONGEST_NOTE = 1000  # bytes
_TOKEN = re.compile(r"[\w-]{1,200}", re.ASCII)
_YEARS = range(2000, 2200)


@dataclass(frozen=True)
class HandedIn:
    """A student's directory: the notebook's bytes, or why there are none, and the notes next to it.

    ``student`` is the directory's name as the system gives it, ``shown`` is that name for people.
    """

    student: str
    data: bytes = b""
    rejected: Rejected | None = None
    timestamp: str | None = None  # in UTC, as nbgrader reads it
    notes: tuple[tuple[str, str], ...] = ()  # what nbgrader wants back: (name of the file, text)
    remarks: tuple[Incident, ...] = ()

    @property
    def shown(self) -> str:
        return shown(self.student)

    @property
    def nameless(self) -> bool:
        """Whether nothing can be written under this name."""
        return why_no_id(self.student) is not None

    def fingerprint(self, graded_against: bytes) -> str:
        """What distinguishes it from another submission, and from the same one with other notes."""
        said = f"{self.rejected.status}: {self.rejected.reason}" if self.rejected else ""
        late = f"{self.timestamp} {self.remarks}"
        return digest(graded_against, self.data, said.encode(), late.encode())


def students(directory: Path, lesson: str) -> list[str]:
    """Names of all directories that may hold something for the lesson, except hidden ones."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                os.lstat(os.path.join(entry.path, lesson))
            except PermissionError:
                pass  # it cannot be read, which a row should say
            except (OSError, ValueError):
                continue
            found.append(entry.name)
    return sorted(found)


def read(directory: Path, student: str, lesson: str) -> HandedIn:
    """What `student` has handed in. Never raises."""
    try:
        if reason := why_no_id(student):
            raise Rejected(REFUSED, reason)
        data = _notebook(directory, student, lesson)
        return HandedIn(student, data, None, *_notes(directory, student, lesson))
    except Rejected as rejected:
        return HandedIn(student, rejected=rejected)
    except OSError as error:
        return HandedIn(student, rejected=Rejected(UNREADABLE, error.strerror or str(error)))
    except Exception as error:  # a library's, on an unforeseen name or note
        reason = f"its directory cannot be read ({type(error).__name__})"
        return HandedIn(student, rejected=Rejected(UNREADABLE, reason))


def _notebook(directory: Path, student: str, lesson: str) -> bytes:
    inside = os.path.join(directory, student, lesson)
    if os.path.islink(os.path.dirname(inside)) or os.path.islink(inside):
        raise Rejected(REFUSED, "the directory is a symlink")
    if not os.path.isdir(inside):
        os.stat(inside)  # OSError if it may not be read
        raise Rejected(REFUSED, f"{lesson} is not a directory")
    return read_bytes(directory, student, lesson, find_notebook(Path(inside), lesson))


# Notes of nbgrader's exchange


def _notes(directory: Path, student: str, lesson: str) -> tuple:
    """(timestamp, notes, remarks)."""
    notes, remarks, when = [], [], None
    try:
        text = _note(directory, student, lesson, TIMESTAMP)
        if text is not None:
            when = utc(text)
            notes.append((TIMESTAMP, text))
    except Exception:  # a note without a readable time: a person has to decide
        detail = "it holds no time that can be read, so the submission counts as on time"
        remarks.append(Incident(UNTIMED, TIMESTAMP, detail))
    try:
        text = _note(directory, student, lesson, SECRET)
        if text is not None and _TOKEN.fullmatch(text):
            notes.append((SECRET, text))
    except Exception:  # useful only to the student, who then gets no feedback by the exchange
        pass
    return when, tuple(notes), tuple(remarks)


def _note(directory: Path, student: str, lesson: str, name: str) -> str | None:
    if not os.path.lexists(os.path.join(directory, student, lesson, name)):
        return None
    return read_bytes(directory, student, lesson, name, largest=LONGEST_NOTE).decode().strip()


def utc(text: str) -> str:
    """A time as nbgrader or a person writes it, converted to UTC, which is also the default zone.

    Raises:
        ValueError, OverflowError, LookupError: it is not a time, or its zone is unknown.
    """
    found = moment(text).astimezone(UTC)
    if found.year not in _YEARS:
        raise ValueError("no time of a submission")
    return f"{found:%Y-%m-%d %H:%M:%S.%f} UTC"
