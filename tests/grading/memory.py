"""What processes hold together: each page that is shared counted once."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 0.05  # between two looks


@dataclass
class Peak:
    """The most that was seen."""

    bytes: int = 0


@contextmanager
def watched(pid: int, itself: bool = True) -> Iterator[Peak]:
    """The peak of a process and its descendants, or of these alone, while the block runs."""
    peak, ended = Peak(), threading.Event()

    def look() -> None:
        while not ended.wait(SECONDS):
            pids = family(pid)[0 if itself else 1 :]
            peak.bytes = max(peak.bytes, sum(map(own_memory, pids)))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield peak
    finally:
        ended.set()
        looking.join()


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    children, found = defaultdict(list), [pid]
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(place.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        children[parent].append(int(place.parent.name))
    for one in found:
        found += children[one]
    return found


def own_memory(pid: int) -> int:
    """A process's share of the memory (PSS), in bytes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
