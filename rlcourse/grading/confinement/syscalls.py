"""The kernel's means of confinement, called directly: Python's library has none of them.

Every function raises ``OSError`` if the kernel refuses. Linux only, x86-64 and AArch64; nothing
outside the standard library is imported, because this runs before anything else does.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

_libc = ctypes.CDLL(None, use_errno=True)

# Flags of unshare(2) and setns(2)
NEWNS, NEWUTS, NEWIPC, NEWUSER = 0x00020000, 0x04000000, 0x08000000, 0x10000000
NEWPID, NEWNET = 0x20000000, 0x40000000

MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV, MS_NOEXEC = 4096, 16384, 1 << 18, 2, 4, 8
_MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP = 1, 4, 22
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38

# The same on every architecture
_MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 442, 444, 445, 446
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _syscall(number: int, *arguments, what: str) -> int:
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _check(_libc.syscall(ctypes.c_long(number), *converted), what)


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags`, into new ones."""
    _check(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Enter the namespace behind `descriptor` (for PIDs: children to come do)."""
    _check(_libc.setns(descriptor, kind), "setns")


def die_with_parent() -> None:
    """Be killed when the parent dies."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0), "prctl")


def set_dumpable(dumpable: bool) -> None:
    """If not, there is no core file, and no process of the same user may trace this one; if so, it
    owns its files in /proc again, after a change of user."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0), "prctl")


def drop_capabilities() -> None:
    """Give up every capability, for good; set-user-ID programs gain nothing."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break  # EPERM without CAP_SETPCAP, EINVAL past the last one
    header = struct.pack("=Ii", 0x20080522, 0)
    _check(_libc.capset(header, bytes(24)), "capset")


# Mounts


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    encoded = [text.encode() if text is not None else None for text in (source, target, kind)]
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), data.encode() or None), f"mount {target}")


def mount_tmpfs(target: str, size: int, mode: int = 0o700) -> None:
    """An empty file system in memory of at most `size` bytes."""
    data = f"size={size},nr_inodes=4096,mode={mode:o}"
    mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, data)


def bind_read_only(source: str, target: str) -> None:
    """Show `source`, and what is mounted below it, at `target`, read-only."""
    mount(source, target, None, MS_BIND | MS_REC)
    device = source.startswith("/dev/")  # it would not open with NODEV
    _set_attributes(target, _ATTR_RDONLY | _ATTR_NOSUID | (0 if device else _ATTR_NODEV))


def make_read_only(target: str) -> None:
    """Make everything that is mounted below `target` by now read-only."""
    _set_attributes(target, _ATTR_RDONLY)


def _set_attributes(target: str, wanted: int) -> None:
    attributes = struct.pack("=QQQQ", wanted, 0, 0, 0)
    _syscall(
        _MOUNT_SETATTR,
        _AT_FDCWD,
        ctypes.c_char_p(target.encode()),
        _AT_RECURSIVE,
        attributes,
        len(attributes),
        what="mount_setattr",
    )


def pivot_root(new_root: str) -> None:
    """Make `new_root` the root directory and detach the old one."""
    os.chdir(new_root)
    here = ctypes.c_char_p(b".")
    _syscall(_PIVOT_ROOT[platform.machine()], here, here, what="pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount")
    os.chdir("/")


# Landlock

_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_READ = _READ_FILE | _READ_DIR
_EXECUTE, _IOCTL_DEV = 1 << 0, 1 << 15
_WRITE_FILE, _MAKE_AND_REMOVE = 1 << 1, 0b1_1111_1111_0000  # remove, make_*
_MAKE_FILE, _REFER, _TRUNCATE = 1 << 8, 1 << 13, 1 << 14


def restrict_files(
    readable: Iterable[str],
    listable: Iterable[str],
    writable: Iterable[str],
    anything: bool = True,
) -> None:
    """Landlock: from here on, nothing but these paths, no TCP, no signals to processes outside.

    `readable` paths can be read, `listable` directories only listed, `writable` ones both; in these
    files alone can be made, and nothing removed, unless `anything` may be.
    """
    version = _libc.syscall(ctypes.c_long(_LANDLOCK_CREATE), None, ctypes.c_size_t(0), 1)
    if version <= 0:
        raise OSError("the kernel has no Landlock")
    write = _WRITE_FILE | _MAKE_AND_REMOVE
    write |= (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    handled = _READ | _EXECUTE | write | (_IOCTL_DEV if version >= 5 else 0)
    tcp = 3 if version >= 4 else 0
    scoped = 3 if version >= 6 else 0  # abstract sockets, signals
    attributes = struct.pack("=QQQ", handled, tcp, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _syscall(_LANDLOCK_CREATE, attributes, size, 0, what="landlock_create_ruleset")
    try:
        make = write if anything else write & (_WRITE_FILE | _MAKE_FILE | _TRUNCATE)
        for paths, rights in ((readable, _READ), (listable, _READ_DIR), (writable, _READ | make)):
            for path in paths:
                _allow(rules, path, rights)
        _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
        _syscall(_LANDLOCK_RESTRICT, rules, 0, what="landlock_restrict_self")
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    if not os.path.exists(path):
        return
    if not os.path.isdir(path):
        rights &= _READ_FILE | _WRITE_FILE | _TRUNCATE
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, descriptor)
        _syscall(_LANDLOCK_ADD, rules, 1, rule, 0, what=f"landlock_add_rule {path}")
    finally:
        os.close(descriptor)


# Seccomp

# name: (x86-64, AArch64); None where the architecture has no such call. Where the kernel has an old
# and a new call for the same, both are here; a test holds the table to that.
_FORBIDDEN = {
    # Processes and programs; signals to others, and looks into them
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "uselib": (134, None), "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "process_mrelease": (448, 448), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "prlimit64": (302, 261),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    # Sockets
    "socket": (41, 198), "bind": (49, 200), "connect": (42, 203), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242),
    # Namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "move_mount": (429, 429),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "mount_setattr": (442, 442),
    "statmount": (457, 457), "listmount": (458, 458), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # Ways past the calls, and what the machine has only one of
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_setup": (206, 0), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "syslog": (103, 116),
    # Memory that outlives a process, or that others find
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193),
    "semtimedop": (220, 192), "semctl": (66, 191), "mq_open": (240, 180), "mq_unlink": (241, 181),
    # Who opens what
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    # The kernel itself
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "ioperm": (173, None), "iopl": (172, None), "modify_ldt": (154, None),
    # The machine's clock, name, terminal, swap, quotas and accounts
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162),
    "vhangup": (153, 58), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443),
}  # fmt: skip
# The page cache and the disks are shared: their contents could be queried, dropped or flushed.
# They fail as if the kernel had no such call, so that libraries take another way.
_ABSENT = {
    "fadvise64": (221, 223), "preadv2": (327, 286), "pwritev2": (328, 287), "mincore": (27, 232),
    "readahead": (187, 213), "cachestat": (451, 451), "sync": (162, 81), "syncfs": (306, 267),
    "sync_file_range": (277, 84), "flock": (73, 32), "openat2": (437, 437),
}  # fmt: skip
# Each would have the disk write out what it holds, though nobody wrote to the file; and what a
# submission writes is thrown away when it ends. So they do nothing, and say that it is done.
_DONE = {"fsync": (74, 82), "fdatasync": (75, 83), "msync": (26, 227)}
# Landlock lets an owner change these of a file, wherever it lies; and without a PID namespace the
# processes of the same user are in reach.
_FORBIDDEN_OUTSIDE = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "file_setattr": (469, 469), "truncate": (76, 45),
    "sched_setaffinity": (203, 122), "setpgid": (109, 154), "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}  # fmt: skip
_FCNTL, _IOCTL, _MADVISE, _PRCTL = (72, 25), (16, 29), (28, 233), (157, 167)
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15  # who gets a signal when a descriptor is ready
# Of a file of one's own, or without the layer *user* of a library: who opens it next waits most of
# a minute, or is watched. And the size of a pipe, which is memory of the kernel's.
_F_SETLEASE, _F_NOTIFY, _F_SETPIPE_SZ = 1024, 1026, 1031
_MADV_COLD, _MADV_PAGEOUT = 20, 21  # of pages that others map, too
_MADV_MERGEABLE, _PR_SET_MEMORY_MERGE = 12, 67  # one page for whoever holds the same, and is timed
_PR_SCHED_CORE = 62  # a core for itself: what shares the core with it would stand still
_OPENAT, _OPEN, _F_SETFL = (257, 56), (2, None), 4
_O_TMPFILE = 0x400000  # a file that has no name
_O_DIRECT, _O_DSYNC = (0x4000, 0x10000), 0x1000  # the disk itself, for each call
_FIOSETOWN, _SIOCSPGRP, _SETFLAGS, _SETXATTR = 0x8901, 0x8902, 0x40086602, 0x401C5820
_CLONE, _CLONE3, _TGKILL = (56, 220), (435, 435), (234, 131)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_CLONE_THREAD = 0x00010000
_UNKNOWN = 470  # the first number that this table does not know, on every architecture
_ERRNO, _KILL, _ALLOW = 0x00050000, 0x80000000, 0x7FFF0000
_EPERM, _ENOSYS, _EOPNOTSUPP = 1, 38, 95


def forbid_system_calls(outside: bool = False, bounded: bool = True) -> None:
    """Seccomp: no new process or program, no signal, socket, trace, mount or namespace.

    `outside`: files or processes of others are in sight, so that nothing about them may be changed
    either, be it a mode, an owner, a time or a schedule. Not `bounded`: files are counted by their
    names, so each has one. Threads stay possible. A forbidden call fails with EPERM, as a missing
    right would.
    """
    if platform.machine() not in _ARCHITECTURES:
        raise OSError(f"no system call numbers for {platform.machine()}")
    column, architecture = _ARCHITECTURES[platform.machine()]
    load, jump_equal, jump_at_least, jump_set, give = 0x20, 0x15, 0x35, 0x45, 0x06
    program = [
        (load, 0, 0, 4),
        (jump_equal, 1, 0, architecture),
        (give, 0, 0, _KILL),
        (load, 0, 0, 0),
        (jump_at_least, 0, 1, 0x40000000),  # the x32 numbers: the same calls by other names
        (give, 0, 0, _KILL),
        (jump_at_least, 0, 1, _UNKNOWN),  # what a newer kernel may have
        (give, 0, 0, _ERRNO | _ENOSYS),
        (jump_equal, 0, 1, _CLONE3[column]),  # its flags cannot be seen; glibc then takes clone
        (give, 0, 0, _ERRNO | _ENOSYS),
        (jump_equal, 0, 4, _CLONE[column]),
        (load, 0, 0, 16),  # the flags, first argument
        (jump_set, 1, 0, _CLONE_THREAD),
        (give, 0, 0, _ERRNO | _EPERM),
        (give, 0, 0, _ALLOW),
        (jump_equal, 0, 4, _TGKILL[column]),
        (load, 0, 0, 16),
        (jump_equal, 1, 0, os.getpid()),  # abort() and raise() go to oneself
        (give, 0, 0, _ERRNO | _EPERM),
        (give, 0, 0, _ALLOW),
    ]
    fcntl = (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_SETLEASE, _F_NOTIFY, _F_SETPIPE_SZ)
    disk = _O_DIRECT[column] | _O_DSYNC
    program += _refuse_bits(_FCNTL[column], 2, disk, where=(1, _F_SETFL))
    program += _refuse_values(_FCNTL[column], 1, fcntl)
    madvise = (_MADV_COLD, _MADV_PAGEOUT, _MADV_MERGEABLE)
    program += _refuse_values(_MADVISE[column], 2, madvise)
    # who would not die with the server outlives it where there is no PID namespace
    program += _refuse_values(
        _PRCTL[column], 0, (_PR_SET_PDEATHSIG, _PR_SET_MEMORY_MERGE, _PR_SCHED_CORE)
    )
    if outside:
        ioctl = (_FIOSETOWN, _SIOCSPGRP, _SETFLAGS, _SETXATTR)
        program += _refuse_values(_IOCTL[column], 1, ioctl)
    for numbers, argument in ((_OPENAT, 2), (_OPEN, 1)):
        bits = disk if bounded else disk | _O_TMPFILE
        program += _refuse_bits(numbers[column], argument, bits)
    forbidden = _FORBIDDEN | (_FORBIDDEN_OUTSIDE if outside else {})
    for table, error in ((_ABSENT, _ENOSYS), (_DONE, 0), (forbidden, _EPERM)):
        for numbers in table.values():
            if (number := numbers[column]) is not None:
                program += [(jump_equal, 0, 1, number), (give, 0, 0, _ERRNO | error)]
    program.append((give, 0, 0, _ALLOW))
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    descriptor = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    _check(_libc.prctl(_PR_SET_SECCOMP, 2, descriptor, 0, 0), "seccomp")


def _refuse_values(number: int, argument: int, values: Iterable[int]) -> list[tuple]:
    """A part of a filter: the call fails if its argument is one of the values."""
    values = list(values)
    part = [(0x15, 0, 2 + 2 * len(values), number), (0x20, 0, 0, 16 + 8 * argument)]
    for value in values:
        part += [(0x15, 0, 1, value), (0x06, 0, 0, _ERRNO | _EPERM)]
    return [*part, (0x06, 0, 0, _ALLOW)]


def _refuse_bits(
    number: int | None, argument: int, bits: int, where: tuple[int, int] | None = None
) -> list[tuple]:
    """A part of a filter: the call fails if its argument has one of the bits; with `where`, an
    argument and its value, only if that argument has that value. The next part sees what this one
    lets pass.
    """
    if number is None:
        return []
    part = [
        (0x20, 0, 0, 16 + 8 * argument),
        (0x45, 0, 1, bits),
        (0x06, 0, 0, _ERRNO | _EOPNOTSUPP),
    ]
    if where:
        part = [(0x20, 0, 0, 16 + 8 * where[0]), (0x15, 0, len(part), where[1]), *part]
    return [(0x15, 0, len(part) + 1, number), *part, (0x20, 0, 0, 0)]
