"""User numbers that the system lends an ordinary user: student code gets one that owns nothing.

In a user namespace, who is not root maps nobody but oneself. ``newuidmap`` and ``newgidmap`` map
the numbers, too, that ``/etc/subuid`` and ``/etc/subgid`` give the user; they have to be started
outside of the namespace, and so wait there until it is made.
"""

import os
import pwd
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

MOST = 65536
SECONDS = 20.0


def waiting() -> tuple[subprocess.Popen, int] | None:
    """A process that is ready to map the numbers, and how many; None where none are lent."""
    users, groups = _lent("/etc/subuid"), _lent("/etc/subgid")
    programs = shutil.which("newuidmap") and shutil.which("newgidmap")
    if not (users and groups and programs):
        return None
    count = min(users[1], groups[1], MOST)
    commands = [
        f"{program} {os.getpid()} 0 {own} 1 1 {first} {count}"
        for program, own, (first, _) in (
            ("newgidmap", os.getgid(), groups),
            ("newuidmap", os.getuid(), users),
        )
    ]
    script = " && ".join(["read go", *commands])
    command, null = ["/bin/sh", "-c", script], subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=null, stderr=null), count


def mapped(mapper: tuple[subprocess.Popen, int] | None) -> int:
    """Have the numbers mapped into this new namespace: 0 to this user, then as many as is returned
    to numbers that are lent; 0 where nothing was mapped."""
    if mapper is None:
        return 0
    process, count = mapper
    with suppress(OSError, subprocess.TimeoutExpired):
        process.communicate(b"go\n", timeout=SECONDS)
        return count if process.returncode == 0 else 0
    process.kill()
    process.wait()
    return 0


def _lent(file: str) -> tuple[int, int] | None:
    """(the first, how many) of the numbers that a file gives this user."""
    names = {str(os.getuid())}
    with suppress(KeyError):
        names.add(pwd.getpwuid(os.getuid()).pw_name)
    with suppress(OSError, UnicodeDecodeError):
        for line in Path(file).read_text("utf-8").splitlines():
            owner, *numbers = line.strip().split(":")
            if owner in names and len(numbers) == 2 and all(map(str.isdecimal, numbers)):
                first, count = map(int, numbers)
                if count:
                    return first, count
    return None
