"""Gradescope: the archive of "Export Submissions", which says who handed in, and when.

``assignment_N_export/`` holds a folder ``submission_N/`` for each submission, with the files as
students called them, and ``submission_metadata.yml``. Both are Gradescope's: students write only
what is inside of their folders. Grades go to other platforms from Gradescope itself.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePosixPath

import yaml

from rlcourse.grading.platforms.archives import Archive, Odd
from rlcourse.grading.platforms.platform import File, Platform, Worksheet
from rlcourse.moments import moment

METADATA = "submission_metadata.yml"
FOLDER = re.compile(r"submission_[0-9]+")
LARGEST_METADATA = 256 * 2**20  # bytes; it holds what every earlier attempt has printed
NO_TIME = "it counts as on time, because Gradescope's table says no time of it that can be read"


class Gradescope(Platform):
    name = "Gradescope"

    def files(self, archive: Archive, worksheet: Worksheet | None) -> Iterable[File] | None:
        names = archive.names
        metadata = next((name for name in names if _is_metadata(name, names)), None)
        return None if metadata is None else _files(archive, metadata)


def _is_metadata(name: str, names: list[str]) -> bool:
    """Whether everything else is in folders of submissions beside it, so that nobody can make
    another platform's archive look like this one by the name of a file."""
    path = PurePosixPath(name)
    if path.name != METADATA or len(path.parts) > 2 or len(names) < 2:
        return False
    return all(_folder(PurePosixPath(other), path.parent) for other in names if other != name)


def _folder(path: PurePosixPath, root: PurePosixPath) -> str:
    """The submission's folder that a file is in; "" if there is none below `root`."""
    depth = len(root.parts)
    inside = path.parts[:depth] == root.parts and len(path.parts) > depth + 1
    return path.parts[depth] if inside and FOLDER.fullmatch(path.parts[depth]) else ""


def _files(archive: Archive, metadata: str) -> Iterator[File]:
    """Each file once for everybody who handed it in."""
    try:
        text = archive.read(metadata, LARGEST_METADATA)
        entries = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        said = {str(folder): (_submitters(of), _time(of)) for folder, of in entries.items()}
    except (yaml.YAMLError, AttributeError, TypeError, ValueError, RecursionError) as error:
        reason = f"{METADATA} cannot be read ({type(error).__name__}): export it again"
        raise Odd(reason) from None
    for name in archive.names:
        path = PurePosixPath(name)
        if name != metadata:
            folder = _folder(path, PurePosixPath(metadata).parent)
            submitters, time = said.get(folder, ((), None))
            doubt = "" if time else NO_TIME
            for ids in submitters or ((),):
                yield File(archive, name, path.name, folder, ids, time=time, doubt=doubt)


def _submitters(entry: dict) -> tuple[tuple[str, ...], ...]:
    people = entry.get(":submitters") or ()
    ids = ([person.get(":sid"), person.get(":email")] for person in people)
    return tuple(tuple(filter(None, (str(i or "").strip() for i in of))) for of in ids)


def _time(entry: dict) -> datetime | None:
    time = entry.get(":created_at")
    if isinstance(time, str):
        with suppress(ValueError, OverflowError, LookupError):
            time = moment(re.sub(r"(\.[0-9]{6})[0-9]+ ?", r"\1", time.strip()))
    if not isinstance(time, datetime):
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
