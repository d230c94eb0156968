"""The filter of system calls: right numbers, and no call left open whose twin is closed."""

import re
from pathlib import Path

import pytest

from rlcourse.grading.confinement import syscalls

TABLE = {
    **syscalls._FORBIDDEN,
    **syscalls._FORBIDDEN_OUTSIDE,
    **syscalls._ABSENT,
    **syscalls._DONE,
}
HEADERS = {
    0: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    1: Path("/usr/include/asm-generic/unistd.h"),
}
# Calls that do the same in an older and in a newer way. Each family is treated alike.
FAMILIES = [
    ("fork", "vfork"), ("execve", "execveat", "uselib"),
    ("kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
     "process_mrelease"),
    ("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp"),
    ("inotify_init", "inotify_init1", "inotify_add_watch", "fanotify_init", "fanotify_mark"),
    ("socket", "bind", "connect", "listen", "accept", "accept4"),
    ("mount", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree",
     "open_tree_attr", "mount_setattr", "umount2", "pivot_root", "chroot"),
    ("statmount", "listmount"), ("unshare", "setns"), ("name_to_handle_at", "open_by_handle_at"),
    ("io_setup", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    ("shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop",
     "semtimedop", "semctl", "mq_open", "mq_unlink", "memfd_create", "memfd_secret"),
    ("sched_setscheduler", "sched_setparam", "sched_setattr", "setpriority", "ioprio_set"),
    ("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
    ("keyctl", "add_key", "request_key"),
    ("chmod", "fchmod", "fchmodat", "fchmodat2"), ("chown", "fchown", "lchown", "fchownat"),
    ("utime", "utimes", "futimesat", "utimensat"),
    ("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr",
     "fremovexattr", "removexattrat", "file_setattr"),
    ("fadvise64", "readahead", "mincore", "cachestat", "preadv2", "pwritev2"),
    ("settimeofday", "clock_settime", "adjtimex", "clock_adjtime"), ("quotactl", "quotactl_fd"),
    ("sethostname", "setdomainname"), ("swapon", "swapoff"), ("perf_event_open", "bpf"),
    ("userfaultfd", "memfd_create"), ("pidfd_open", "pidfd_getfd", "pidfd_send_signal"),
    ("migrate_pages", "move_pages"), ("sched_setaffinity", "setpgid"),
    ("sync", "syncfs", "sync_file_range"), ("fsync", "fdatasync", "msync"),
]  # fmt: skip
# Calls of which both the old and the new form stay open: they reach nothing but one's own.
OPEN = [
    ("open", "openat", "creat"), ("dup", "dup2", "dup3"), ("pipe", "pipe2"),
    ("eventfd", "eventfd2"), ("signalfd", "signalfd4"), ("epoll_create", "epoll_create1"),
    ("rename", "renameat", "renameat2"), ("mknod", "mknodat"), ("link", "linkat"),
    ("symlink", "symlinkat"), ("unlink", "unlinkat"), ("mkdir", "mkdirat"),
    ("stat", "newfstatat", "statx"), ("access", "faccessat", "faccessat2"),
    ("select", "pselect6"), ("poll", "ppoll"), ("epoll_wait", "epoll_pwait", "epoll_pwait2"),
]  # fmt: skip


def numbers(column: int) -> dict[str, int]:
    if not HEADERS[column].exists():
        pytest.skip("no kernel headers here")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[column].read_text())
    return {name: int(number) for name, number in found}


@pytest.mark.parametrize("column", HEADERS, ids=["x86-64", "AArch64"])
def test_every_number_is_the_kernels(column):
    known = numbers(column)
    wrong = {
        name: (pair[column], known.get(name))
        for name, pair in TABLE.items()
        if known.get(name, pair[column] if max(p or 0 for p in pair) > 420 else None)
        != pair[column]
    }
    assert wrong == {}


def treatment(name: str) -> str:
    """Where a call stands: in one of the tables, or open."""
    for table in ("_FORBIDDEN", "_FORBIDDEN_OUTSIDE", "_ABSENT", "_DONE"):
        if name in getattr(syscalls, table):
            return table
    return "open"


@pytest.mark.parametrize("family", FAMILIES + OPEN, ids=lambda family: family[0])
def test_an_old_call_and_a_new_one_for_the_same_are_treated_alike(family):
    assert len(set(map(treatment, family))) == 1, {name: treatment(name) for name in family}
    assert (treatment(family[0]) == "open") == (family in OPEN)


def test_a_call_that_nobody_has_looked_at_stays_closed():
    """A newer kernel's calls do not exist until the table knows them."""
    assert max(number or 0 for pair in TABLE.values() for number in pair) == syscalls._UNKNOWN - 1


def test_no_call_stands_in_two_tables():
    tables = syscalls._FORBIDDEN, syscalls._FORBIDDEN_OUTSIDE, syscalls._ABSENT, syscalls._DONE
    assert len(TABLE) == sum(map(len, tables))
