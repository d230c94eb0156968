"""The layers around student code, and which of them this machine offers.

The server that runs student code enters its namespaces once (``enter``); the process that is forked
for a submission is then stripped of everything else (``confine``). Each layer is tried by itself:
where one is refused, the others still stand, and the report says so. Nothing outside the standard
library is imported, because the server is confined before it imports anything.
"""

import contextlib
import functools
import os
import resource
import secrets
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# In the order in which the report shows them
LAYERS = {
    "user": "runs without privileges and, if root grades, as a user who owns nothing",
    "pid": "sees and signals no other process; everything it started dies with it",
    "mount": "sees only Python, its packages and an empty scratch directory of its own",
    "network": "has no network",
    "landlock": "opens no file outside Python's and its scratch directory",
    "seccomp": "starts no process or program, opens no socket, sends no signal",
    "limits": "is bounded in memory, threads, processor time and file size",
}
_NAMESPACES = "sysctl user.max_user_namespaces=10000, or grade as root outside a container"
ADVICE = {
    "user": _NAMESPACES,
    "pid": _NAMESPACES,
    "mount": _NAMESPACES,
    "network": _NAMESPACES,
    "landlock": "boot Linux 5.13 or newer with landlock among lsm=",
    "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or AArch64",
    "limits": "raise the hard limits of this shell (ulimit -H)",
}
# Required to run student code at all: one layer of each line
ESSENTIAL = {
    ("mount", "landlock"): "read every file that this user may read, solutions and grades too",
    ("pid", "seccomp"): "signal and trace the processes of this user, the grader too",
}
MEBIBYTE = 2**20
FIRST_UNUSED_USER = 0x70000000  # no system or container uses numbers from here on


@dataclass(frozen=True)
class Confinement:
    """What student code may see and use. Paths are absolute; sizes are bytes."""

    readable: tuple[str, ...]  # shown read-only
    root: str  # an empty directory on which the new root is mounted
    scratch: str  # a directory; each submission gets an empty one there
    hidden: tuple[str, ...] = ()  # kept out of sight although below a readable path
    scratch_size: int = 64 * MEBIBYTE
    # Beyond what the warm server has: the process may take that much more than it is born with,
    # most of which it shares. What `ps` shows for it is therefore more, by about half a GiB.
    memory: int = 1024 * MEBIBYTE
    file_size: int = 32 * MEBIBYTE
    cpu_seconds: int = 300
    threads: int = 64
    refuse: tuple[str, ...] = ()  # layers not to use, for tests and for narrowing down a fault


@dataclass
class Layers:
    """The layers that are in place; for the others, the system's error."""

    standing: set[str] = field(default_factory=set)
    missing: dict[str, str] = field(default_factory=dict)
    pids: int = -1  # the server's own PID namespace, opened while /proc was in sight
    sizes: int = -1  # its /proc/self/statm
    written: int = 1024 * MEBIBYTE  # of what it has mapped: its own to write to

    def attempt(self, name: str, action: Callable[[], None], refuse: tuple[str, ...] = ()) -> bool:
        """Try one layer and record the outcome."""
        try:
            if name in refuse:
                raise OSError("switched off")
            action()
        except (OSError, ValueError, KeyError) as error:
            self.missing[name] = str(error)
            return False
        self.standing.add(name)
        return True

    def weakness(self) -> str | None:
        """One sentence: what student code could do here, what is missing, and how to get it."""
        for names, could in ESSENTIAL.items():
            if not self.standing.intersection(names):
                reasons = " and ".join(
                    f"{name} ({self.missing.get(name, 'not there')}; {ADVICE[name]})"
                    for name in names
                )
                return f"student code could {could}, because of the layers {reasons} none stands"
        return None

    def as_json(self) -> dict:
        return {"standing": sorted(self.standing), "missing": self.missing}

    @classmethod
    def from_json(cls, found: dict) -> "Layers":
        return cls(set(found["standing"]), dict(found["missing"]))

    def mapped(self) -> int:
        """Bytes of address space that this process has mapped; 2 GiB if that is unknown."""
        with contextlib.suppress(OSError, ValueError):
            if self.sizes < 0:
                self.sizes = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            pages = [int(field) for field in os.pread(self.sizes, 100, 0).split()]
            self.written = pages[5] * resource.getpagesize()
            return pages[0] * resource.getpagesize()
        return 2048 * MEBIBYTE


def enter(wanted: Confinement, layers: Layers) -> None:
    """Move this process into namespaces of its own and fork into the new PID namespace.

    Returns in a child only; the parent waits for it and passes its end on. Root needs no user
    namespace for this and changes user later; everybody else becomes root of a namespace in which
    there is nobody else.
    """
    from rlcourse.grading.confinement import syscalls

    if os.getuid() != 0 and not layers.attempt("user", _own_user_namespace, wanted.refuse):
        for name in ("pid", "network", "mount"):
            layers.missing[name] = "needs a user namespace"
        return
    if layers.attempt("pid", lambda: syscalls.unshare(syscalls.NEWPID), wanted.refuse):
        _become_init()
    layers.attempt("network", lambda: syscalls.unshare(syscalls.NEWNET), wanted.refuse)
    with contextlib.suppress(OSError):
        syscalls.unshare(syscalls.NEWIPC | syscalls.NEWUTS)
    layers.pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    layers.sizes = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    layers.attempt("mount", lambda: _own_root(wanted), wanted.refuse)


def _own_user_namespace() -> None:
    """A user namespace in which this process is root, and nobody else is anybody."""
    from rlcourse.grading.confinement import syscalls

    user, group = os.getuid(), os.getgid()
    syscalls.set_dumpable(True)  # or /proc/self/uid_map belongs to root
    syscalls.unshare(syscalls.NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def _become_init() -> None:
    """Fork; the child is process 1, and the parent stays outside until it ends."""
    child = os.fork()
    if not child:
        return
    from rlcourse.grading.confinement import syscalls

    syscalls.die_with_parent()
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0x7F)


def _own_root(wanted: Confinement) -> None:
    """A root directory that holds the readable paths and nothing else."""
    from rlcourse.grading.confinement import syscalls

    syscalls.unshare(syscalls.NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)  # later ones stay here
    syscalls.mount_tmpfs(wanted.root, 16 * MEBIBYTE, mode=0o755)
    for path, shown in _from_outside_in(wanted):
        inside = wanted.root + path
        if shown:
            _show(path, wanted.root)
        elif os.path.isdir(inside) and not os.path.islink(inside):
            syscalls.mount_tmpfs(inside, 4096, mode=0o755)
    os.makedirs(wanted.root + wanted.scratch, exist_ok=True)
    syscalls.make_read_only(wanted.root)  # an ordinary user owns what was made here
    syscalls.mount_tmpfs(wanted.root + wanted.scratch, 16 * MEBIBYTE)  # the server's own
    syscalls.pivot_root(wanted.root)


def _show(path: str, root: str) -> None:
    from rlcourse.grading.confinement import syscalls

    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        if not os.path.lexists(target):
            os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    elif os.path.exists(path):
        Path(target).touch()
    else:
        return
    syscalls.bind_read_only(path, target)


def _from_outside_in(wanted: Confinement) -> list[tuple[str, bool]]:
    """(path, whether it is shown), parents first, without what its parent's rule says already.

    A shown path may be inside a hidden one, and the other way round.
    """
    rules = dict.fromkeys(wanted.readable, True) | dict.fromkeys(wanted.hidden, False)
    needed: list[tuple[str, bool]] = []
    for path in sorted(rules, key=lambda path: path.split("/")):
        above = [shown for other, shown in needed if path.startswith(f"{other}/")]
        if rules[path] != (above[-1] if above else False):
            needed.append((path, rules[path]))
    return needed


def fork(layers: Layers) -> int:
    """Like ``os.fork``; the child is process 1 of its own PID namespace, if there is one."""
    if "pid" not in layers.standing:
        return os.fork()
    from rlcourse.grading.confinement import syscalls

    syscalls.unshare(syscalls.NEWPID)
    try:
        return os.fork()
    finally:
        with contextlib.suppress(OSError):  # the child may not, and has no need to
            syscalls.setns(layers.pids, syscalls.NEWPID)


def confine(
    wanted: Confinement, layers: Layers, mapped: int, outside_scratch: str | None = None
) -> None:
    """Strip this freshly forked process: scratch directory, limits, user, rights, system calls.

    `mapped` is the address space that the server uses, to which the memory limit is added;
    `outside_scratch` is made, and used, where no file system can be mounted. The order matters, as
    each step takes away what the ones before it needed.
    """
    from rlcourse.grading.confinement import syscalls

    scratch = wanted.scratch
    if "mount" in layers.standing:
        syscalls.unshare(syscalls.NEWNS)
        syscalls.mount_tmpfs(scratch, wanted.scratch_size, mode=0o777)
    else:
        os.umask(0)
        scratch = outside_scratch or f"{scratch}/submission"
        os.mkdir(scratch, 0o777)
    os.chdir(scratch)
    tempfile.tempdir = None
    os.environ.update(HOME=scratch, TMPDIR=scratch)
    os.umask(0o077)
    if "user" in layers.standing:  # threads are counted for each user of each namespace
        with contextlib.suppress(OSError):
            syscalls.unshare(syscalls.NEWUSER)
    layers.attempt("limits", lambda: _limit(wanted, mapped, layers.written), wanted.refuse)
    if os.getuid() == 0 and "user" not in layers.standing:
        layers.attempt("user", _become_nobody, wanted.refuse)
    with contextlib.suppress(OSError):
        syscalls.drop_capabilities()
        syscalls.set_dumpable(False)
    with contextlib.suppress(OSError):  # a change of user would have undone it
        syscalls.die_with_parent()
    bounded = "mount" in layers.standing
    layers.attempt("landlock", lambda: _restrict_files(wanted, bounded), wanted.refuse)
    outside = not {"mount", "pid"} <= layers.standing
    forbid = lambda: syscalls.forbid_system_calls(outside, bounded)  # noqa: E731
    layers.attempt("seccomp", forbid, wanted.refuse)


def _limit(wanted: Confinement, mapped: int, written: int) -> None:
    bound(resource.RLIMIT_AS, mapped + wanted.memory)
    bound(resource.RLIMIT_DATA, written + wanted.memory)  # address space can be given back
    bound(resource.RLIMIT_FSIZE, wanted.file_size)
    bound(resource.RLIMIT_CPU, wanted.cpu_seconds, more=5)  # a signal that says why comes first
    bound(resource.RLIMIT_CORE, 0)
    bound(resource.RLIMIT_NOFILE, 128)
    bound(resource.RLIMIT_MEMLOCK, 0)
    bound(resource.RLIMIT_SIGPENDING, 128)  # and timers: those of a user are counted together
    bound(resource.RLIMIT_NPROC, wanted.threads)  # of all with this number, in this namespace


def bound(kind: int, value: int, more: int = 0) -> None:
    """Set a resource limit, and the hard one to `more`, or to what the system allows."""
    hard = resource.getrlimit(kind)[1]
    highest = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(kind, (min(value, highest), min(value + more, highest)))


def _become_nobody() -> None:
    """Become a user of this process alone: the system counts threads by user. Where the machine
    has not that many users (in some containers), nobody, whom all submissions then share."""
    with contextlib.suppress(OSError):
        _become(FIRST_UNUSED_USER + secrets.randbelow(2**28))
        return
    _become(65534)


def _become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _restrict_files(wanted: Confinement, bounded: bool) -> None:
    """`bounded`: the scratch directory is a file system of its own. Where it is not, what lies in
    it has to be seen to be counted: files at the top of it, which stay until the process ends."""
    from rlcourse.grading.confinement import syscalls

    readable, listable = without(wanted.readable, wanted.hidden)
    homes = {os.path.dirname(path) for path in wanted.readable if "-packages/" in path}
    syscalls.restrict_files(readable, [*listable, *homes], [os.getcwd()], anything=bounded)


@functools.cache  # the server asks once, for all that it forks
def without(readable: tuple[str, ...], hidden: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The readable paths with the hidden ones cut out: (readable whole, directories to list)."""
    whole, listed, open_ends = [], [], list(readable)
    while open_ends:
        path = open_ends.pop()
        if path in hidden:
            continue
        if not any(inside.startswith(f"{path}/") for inside in hidden):
            whole.append(path)
        elif os.path.isdir(path) and not os.path.islink(path):
            listed.append(path)
            with contextlib.suppress(OSError):
                open_ends += [entry.path for entry in os.scandir(path)]
    return list(dict.fromkeys(whole)), list(dict.fromkeys(listed))
