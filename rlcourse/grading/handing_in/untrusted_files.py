"""A student's files, opened without trusting what they are. Nothing here imports torch."""

import errno
import os
import stat
from itertools import islice
from pathlib import Path

from rlcourse.grading.names import shown
from rlcourse.grading.rejected import MISSING, REFUSED, UNREADABLE, Rejected

LARGEST_FILE = 64 * 2**20  # nearly all of it outputs, which are not read
MOST_FILES = 10_000  # next to a notebook
NOTEBOOKS = (".ipynb", ".ipynb.txt", ".ipynb.json")  # browsers and mail programs add to a name


def read_bytes(root: Path, *parts: str, largest: int = LARGEST_FILE) -> bytes:
    """A regular file below `root`, no step of the way a symlink; ``Rejected`` for anything else."""
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            deeper = _open(part, os.O_RDONLY | os.O_DIRECTORY, directory)
            os.close(directory)
            directory = deeper
        # O_NONBLOCK: opening a named pipe would wait for somebody to write to it
        descriptor = _open(parts[-1], os.O_RDONLY | os.O_NONBLOCK, directory)
    finally:
        os.close(directory)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Rejected(REFUSED, f"{shown(parts[-1])} is not a regular file")
        if found.st_size > largest:
            size = f"{found.st_size / 2**20:.1f} MiB, with a limit of {largest / 2**20:g} MiB"
            raise Rejected(REFUSED, f"{shown(parts[-1])} is too large: {size}")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(largest)
    finally:
        os.close(descriptor)


def _open(name: str, flags: int, directory: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        raise Rejected(MISSING, f"there is no {shown(name)}") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Rejected(REFUSED, f"{shown(name)} is a symlink or not a directory") from None
        raise Rejected(UNREADABLE, f"{shown(name)}: {error.strerror}") from None


def find_notebook(directory: Path, lesson: str) -> str:
    """The name of the notebook in a student's directory: the lesson's, else the only one."""
    name = f"{lesson}.ipynb"
    with os.scandir(directory) as entries:
        names = [entry.name for entry in islice(entries, MOST_FILES + 1)]
    if len(names) > MOST_FILES:
        raise Rejected(REFUSED, f"more than {MOST_FILES} files")
    notebooks = sorted(
        entry
        for entry in names
        if entry.lower().endswith(NOTEBOOKS) and not entry.startswith(".")  # "._x", as macOS leaves
    )
    same = [entry for entry in notebooks if entry.lower() == name.lower()]
    similar = [entry for entry in notebooks if entry.lower().startswith(lesson.lower())]
    if name in notebooks:
        return name
    for candidates in (same, notebooks, similar):
        if len(candidates) == 1:  # "02_policy_gradient (1).ipynb", as browsers save it
            return candidates[0]
    if not notebooks:
        raise Rejected(MISSING, f"there is no notebook; expected {name}")
    raise Rejected(
        MISSING, f"{len(notebooks)} notebooks: hand in the right one alone, or rename it to {name}"
    )
