"""What is in the archives of learning platforms: files, each with its owner as its place tells.

Canvas and Moodle write a number in front of a file's name, and Gradescope makes a folder of it; the
rest is the student's choice, and proves nothing. No name in an archive is ever used as a path, and
what is read of it has bounds.
"""

import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from rlcourse.grading.platforms.gradescopes import (
    LARGEST_METADATA,
    METADATA,
    Submission,
    folder_of,
    metadata_of,
    read_metadata,
)

MOST_MEMBERS = 20_000
# Of the others zipfile unpacks all that it has read, however much that becomes
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ARCHIVES = (".zip", ".gz", ".tgz", ".tar", ".7z", ".rar", ".bz2", ".xz")
# name_USER_SUBMISSION_file and name_LATE_USER_SUBMISSION_file; a name has no underscore
CANVAS = re.compile(
    r"(?P<owner>[^_/]+?)(?P<late>_late)?_(?P<student>[0-9]+)_[0-9]{3,}_(?P<file>.+)",
    re.IGNORECASE | re.DOTALL,
)
# name_PARTICIPANT_assignsubmission_file_file, or a directory; this name has none either
MOODLE = re.compile(
    r"(?P<owner>[^_/]*)_(?P<student>[0-9]+)_assignsubmission_file_?/?(?P<file>[^/]+)"
)
TEST_STUDENT = "studenttest"  # as whom an instructor tries out an assignment on Canvas
PLAIN = re.compile(r"(?P<student>[^/]+?)_(?P<file>[0-9]{2}_[^/]+)", re.DOTALL)


@dataclass(frozen=True)
class Member:
    """A file, in an archive or by itself, with its owner as its name alone tells."""

    source: Path
    name: str  # within the archive
    student: str | None
    file: str  # what the student called it
    late: bool = False
    in_time: bool = False  # the platform would have said so if it were late
    participant: bool = False  # the student is Moodle's number of a participant
    is_test: bool = False  # the name is that of Canvas's test student
    ids: tuple[str, ...] | None = None  # by what Gradescope knows who handed it in
    time: datetime | None = None  # when they did, in UTC, by the same
    packed: "Packed | None" = field(default=None, repr=False, compare=False)

    def version(self) -> int:
        """The name without the number that Canvas adds to a resubmission: ``lesson-1.ipynb``."""
        found = re.search(r"-([0-9]{1,4})\.ipynb$", self.file)
        return int(found[1]) if found else 0


@dataclass(frozen=True)
class Packed:
    """Where in an open archive a member is; several places where several have its name."""

    archive: zipfile.ZipFile
    places: tuple[zipfile.ZipInfo, ...]


class Odd(Exception):
    """Why a member is not collected."""


def members_of(source: Path, archives: ExitStack) -> Iterator[Member]:
    """The files of an archive, which stays open, or the one file that `source` is, with their
    owners."""
    if source.suffix.lower() != ".zip":
        if source.suffix.lower() in ARCHIVES:
            raise Odd("not a zip archive: unpack it and pack it again as zip")
        yield _whose(source, source.name, (CANVAS, MOODLE, PLAIN))
        return
    try:
        archive = archives.enter_context(zipfile.ZipFile(source))
        infos = [info for info in archive.infolist() if not info.is_dir()]
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        raise Odd("the archive cannot be read: download it again") from None
    if len(infos) > MOST_MEMBERS:
        raise Odd(f"more than {MOST_MEMBERS} files")
    places = defaultdict(list)
    for info in infos:
        if not _is_hidden(info.filename):
            places[info.filename].append(info)
    if metadata := metadata_of(places):
        yield from _of_gradescope(source, archive, places, metadata)
        return
    form = _form_of(list(places))
    flat = Counter(PurePosixPath(name).parent for name in places).most_common(1)
    for name, found in places.items():
        if form is CANVAS and PurePosixPath(name).parent != flat[0][0]:
            yield Member(source, name, None, _last(name))  # Canvas makes no directories
        else:
            yield replace(_whose(source, name, (form,)), packed=Packed(archive, tuple(found)))


def _of_gradescope(source, archive, places, metadata: str) -> Iterator[Member]:
    """The files of Gradescope's archive, each once for everybody who handed it in."""
    packed = Packed(archive, tuple(places.pop(metadata)))
    text = content_of(Member(source, metadata, None, metadata, packed=packed), LARGEST_METADATA)
    try:
        submissions = read_metadata(text)
    except ValueError as error:
        raise Odd(f"{METADATA} cannot be read ({error}): export it again") from None
    for name, found in places.items():
        path = PurePosixPath(name)
        folder = folder_of(path, PurePosixPath(metadata).parent)
        submission = submissions.get(folder, Submission())
        packed = Packed(archive, tuple(found))
        for ids in submission.submitters or ((),):
            yield Member(
                source, name, folder, path.name, ids=ids, time=submission.time, packed=packed
            )


def _is_hidden(name: str) -> bool:
    """What systems put into archives: ``__MACOSX/._lesson.ipynb``."""
    parts = PurePosixPath(name).parts
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in parts)


def _form_of(names: list[str]) -> re.Pattern:
    """The pattern that a platform gives to all names of an archive: the one that most names have,
    so that no single student's name can make it look like another platform's."""
    for form, part in ((MOODLE, _moodles), (CANVAS, _last)):
        fitting = sum(bool(form.fullmatch(part(name))) for name in names)
        if fitting * 2 > len(names):
            return form
    return PLAIN


def _last(name: str) -> str:
    return PurePosixPath(name).name


def _moodles(name: str) -> str:
    """A file, with the directory that names its owner, if any."""
    parts = PurePosixPath(name).parts
    at = next((i for i, part in enumerate(parts) if "_assignsubmission_file" in part), -1)
    return "/".join((parts[at], parts[-1])) if 0 <= at < len(parts) - 1 else _last(name)


def _whose(source: Path, name: str, forms: Sequence[re.Pattern]) -> Member:
    for form in forms:
        found = form.fullmatch(_moodles(name) if form is MOODLE else _last(name))
        if found:
            late = bool(found.groupdict().get("late"))
            is_test = form is CANVAS and found["owner"].casefold() == TEST_STUDENT
            return Member(
                source,
                name,
                found["student"],
                found["file"],
                late=late,
                in_time=form is CANVAS and not late,
                participant=form is MOODLE,
                is_test=is_test,
            )
    return Member(source, name, None, _last(name))


def content_of(member: Member, most: int) -> bytes:
    """A member's content, of which at most `most` bytes are read, whatever size it claims."""
    try:
        if member.packed is None:
            with member.source.open("rb") as file:
                data = file.read(most + 1)
        else:
            places = member.packed.places
            if len(places) != 1:
                raise Odd("two files with the same name")
            if places[0].compress_type not in METHODS:
                raise Odd("it is packed by an unusual method: unpack it, and pack it as usual")
            with member.packed.archive.open(places[0]) as file:
                data = file.read(most + 1)
    except Odd:
        raise
    except Exception as error:  # a wrong checksum, a password, an unknown method
        raise Odd(f"it cannot be unpacked ({type(error).__name__})") from None
    if len(data) > most:
        raise Odd(f"larger than {most / 2**20:g} MiB")
    return data
