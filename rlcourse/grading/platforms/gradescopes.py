"""The archive of Gradescope's "Export Submissions": who handed each folder in, and when.

``assignment_N_export/`` holds a folder ``submission_N/`` for each submission, with the files as
students called them, and ``submission_metadata.yml``, which says whose they are. Both are
Gradescope's: students write only what is inside of their folders.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

import yaml

from rlcourse.moments import moment

METADATA = "submission_metadata.yml"
FOLDER = re.compile(r"submission_[0-9]+")
LARGEST_METADATA = 256 * 2**20  # bytes; it holds what every earlier attempt has printed


@dataclass(frozen=True)
class Submission:
    """By what each of its submitters is known, and when they handed in."""

    submitters: tuple[tuple[str, ...], ...] = ()
    time: datetime | None = None


def metadata_of(names: Iterable[str]) -> str | None:
    """The name of the metadata in an archive of these `names`; None if it is not Gradescope's.

    It is if everything else is in folders of submissions beside it, so that nobody can make another
    platform's archive look like one by the name of a file.
    """
    paths = [PurePosixPath(name) for name in names]
    for path in paths:
        if path.name == METADATA and len(path.parts) <= 2:
            others = [other for other in paths if other != path]
            if others and all(folder_of(other, path.parent) for other in others):
                return str(path)
    return None


def folder_of(path: PurePosixPath, root: PurePosixPath) -> str:
    """The submission's folder that a file is in; "" if there is none below `root`."""
    depth = len(root.parts)
    inside = path.parts[:depth] == root.parts and len(path.parts) > depth + 1
    name = path.parts[depth] if inside else ""
    return name if FOLDER.fullmatch(name) else ""


def read_metadata(text: bytes) -> dict[str, Submission]:
    """{folder: whose it is}.

    Raises:
        ValueError: it is not Gradescope's metadata.
    """
    try:
        found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return {
            str(folder): Submission(tuple(_submitters(entry)), _in_utc(entry.get(":created_at")))
            for folder, entry in found.items()
        }
    except (yaml.YAMLError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(f"not Gradescope's metadata: {type(error).__name__}") from None


def _submitters(entry: dict) -> Iterator[tuple[str, ...]]:
    for person in entry.get(":submitters") or ():
        ids = (person.get(":sid"), person.get(":email"))
        yield tuple(str(text).strip() for text in ids if text is not None and str(text).strip())


def _in_utc(time: object) -> datetime | None:
    if isinstance(time, str):
        with suppress(ValueError, OverflowError, LookupError):
            time = moment(re.sub(r"(\.[0-9]{6})[0-9]+ ?", r"\1", time.strip()))
    if not isinstance(time, datetime):
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
