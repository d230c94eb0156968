"""Archives as learning platforms pack them: names, and contents that are read with bounds.

What stands in front of a file's name is the platform's; the rest is the student's choice, and
proves nothing. No name in an archive is ever used as a path.
"""

import zipfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

# Of the others zipfile unpacks all that it has read, however much that becomes
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
PACKED = (".zip", ".gz", ".tgz", ".tar", ".7z", ".rar", ".bz2", ".xz")


class Odd(Exception):
    """Why something is not collected."""


class Archive:
    """A zip archive, which stays open, or one file by itself.

    Raises:
        Odd: it cannot be read.
    """

    def __init__(self, source: Path):
        self.source = source
        self._zip: zipfile.ZipFile | None = None
        self._places: dict[str, list[zipfile.ZipInfo]] = defaultdict(list)
        if source.suffix.lower() in PACKED[1:]:
            raise Odd("not a zip archive: unpack it and pack it again as zip")
        if source.suffix.lower() != ".zip":
            self._places[source.name] = []
            return
        try:
            self._zip = zipfile.ZipFile(source)
            infos = [info for info in self._zip.infolist() if not info.is_dir()]
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
            raise Odd("the archive cannot be read: download it again") from None
        for info in infos:
            if not _is_hidden(info.filename):
                self._places[info.filename].append(info)

    @property
    def names(self) -> list[str]:
        return list(self._places)

    def close(self) -> None:
        if self._zip:
            self._zip.close()

    def read(self, name: str, most: int) -> bytes:
        """A file's content, of which at most `most` bytes are read, whatever size it claims."""
        places = self._places[name]
        if self._zip and len(places) != 1:
            raise Odd("two files with the same name")
        if self._zip and places[0].compress_type not in METHODS:
            raise Odd("it is packed by an unusual method: unpack it, and pack it as usual")
        try:
            with self._zip.open(places[0]) if self._zip else self.source.open("rb") as file:
                data = file.read(most + 1)
        except Exception as error:  # a wrong checksum, a password, an unknown method
            raise Odd(f"it cannot be unpacked ({type(error).__name__})") from None
        if len(data) > most:
            raise Odd(f"larger than {most / 2**20:g} MiB")
        return data


def _is_hidden(name: str) -> bool:
    """What systems put into archives: ``__MACOSX/._lesson.ipynb``."""
    parts = PurePosixPath(name).parts
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in parts)


def last(name: str) -> str:
    """A name without the folders before it."""
    return PurePosixPath(name).name


def mostly(found: Iterable[object]) -> bool:
    """Whether most names have a platform's form, so that no single student's name can make an
    archive look like another platform's."""
    facts = [bool(one) for one in found]
    return 2 * sum(facts) > len(facts)
