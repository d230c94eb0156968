"""Each layer does what it says, with others switched off, for root and for an ordinary user."""

import os
from pathlib import Path

import classroom as room
import pytest

from rlcourse.doctor import examine
from rlcourse.grading.confinement import isolation, probing
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Sandbox
from rlcourse.grading.running.steps import Cell

# One line of output for each thing that student code managed to do.
TRY_EVERYTHING = f"""
import ctypes, os, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)

def attempt(name, action):
    try:
        if action() is not False: print("did", name)
    except BaseException as error: pass

def fork():
    pid = os.fork()
    if not pid: os._exit(0)
    os.waitpid(pid, 0)

def bound(n):
    try: hoard = bytearray(n); return False
    except MemoryError: pass

attempt("read the repository", lambda: open("{room.REPOSITORY}/pyproject.toml").read())
attempt("list the repository", lambda: os.listdir("{room.REPOSITORY}/tests"))
attempt("write to /var/tmp", lambda: open("/var/tmp/rlcourse-attack", "w").close())
attempt("write to the scratch directory", lambda: open("mine", "w").write("x"))
attempt("start a process", fork)
attempt("make a socket", lambda: socket.socket().close())
attempt("signal others", lambda: os.kill(-1, 0))
attempt("see other processes", lambda: len(os.listdir("/proc")) > 20)
attempt("be process 1", lambda: os.getpid() == 1)
attempt("see a network", lambda: any(n != "lo" for _, n in socket.if_nameindex()))
attempt("be bounded in memory", lambda: bound(2 * 2**30))
attempt("be root over files", lambda: open("/etc/shadow").read())
"""
ALL = tuple(isolation.LAYERS)


def did(library, off=()):
    """(what student code managed with these layers off, the layers that stood)."""
    server = library.parent / f"server-{'-'.join(off)}"
    with Sandbox(library, server, refuse=off) as sandbox:
        transcript = room.run(sandbox, [Cell("try", TRY_EVERYTHING)], Limits(step=20))
        lines = transcript.cells["try"].printed.splitlines()
        return {line.removeprefix("did ") for line in lines}, sandbox.layers


def needs(layers, *names):
    for name in names:
        if name not in layers.standing:
            pytest.skip(f"no {name} layer here: {layers.missing.get(name)}")


WALLED_IN = {"write to the scratch directory", "be bounded in memory", "be process 1"}


@pytest.mark.slow
def test_with_every_layer_nothing_is_possible_but_to_work(library):
    managed, layers = did(library)
    needs(layers, *ALL)
    assert managed == WALLED_IN


@pytest.mark.slow
@pytest.mark.parametrize("off", ["mount", "landlock", "seccomp", "pid"])
def test_no_layer_is_the_only_one_that_protects(library, off):
    managed, layers = did(library, off=(off,))
    needs(layers, *(name for name in ALL if name != off))
    assert off not in layers.standing and layers.missing[off] == "switched off"
    allowed = WALLED_IN | {"start a process", "make a socket"}  # without seccomp, in the namespaces
    assert managed <= allowed, managed - allowed
    assert "write to the scratch directory" in managed
    if off != "seccomp":
        assert not managed & {"start a process", "make a socket"}


@pytest.mark.slow
def test_without_any_layer_the_attempts_succeed_so_the_tests_above_say_something(library):
    managed, layers = did(library, off=ALL)
    assert not layers.standing
    Path("/var/tmp/rlcourse-attack").unlink(missing_ok=True)
    assert {
        "read the repository",
        "start a process",
        "make a socket",
        "signal others",
    } <= managed
    assert "be bounded in memory" not in managed


@pytest.mark.slow
def test_the_lessons_functions_are_stubs_in_the_students_library(library, sandbox):
    source = "from rlcourse.algorithms import reinforce_loss, masked_mean, completion_mask\n"
    source += "import torch, rlcourse, sys\n"
    source += "print(masked_mean(torch.ones(2), torch.ones(2)).item())\n"
    source += "print([m for m in sys.modules if 'exercises' in m])\n"
    source += (
        "for name in ('checks.judging.exam', 'student.checking', 'authoring', 'grading.engine'):\n"
    )
    source += "    try: __import__('rlcourse.' + name); print('LEAK', name)\n"
    source += "    except ImportError: pass\n"
    source += "reinforce_loss(None, None, None)"
    answer = room.run(sandbox, [Cell("x", source)]).cells["x"]
    assert answer.printed.startswith("1.0\n") and "LEAK" not in answer.printed
    assert answer.error.type == "NotImplementedError"
    text = "".join(path.read_text() for path in library.rglob("*.py"))
    assert "completion_logprobs" not in text and "Mistake(" not in text


def test_the_doctor_reports_every_layer():
    found = {f.name: f for f in examine() if f.group == "isolation"}
    assert set(found) == set(isolation.LAYERS)
    layers = probing.probe()
    for name, finding in found.items():
        assert finding.state == ("ok" if name in layers.standing else "absent")
        assert finding.state == "ok" or finding.advice


def test_a_probe_changes_nothing_here_and_names_what_is_off():
    before = os.listdir("/proc/self/ns"), os.getuid(), os.readlink("/proc/self/ns/mnt")
    layers = probing.probe(refuse=("seccomp", "network"))
    assert {"seccomp", "network"} <= set(layers.missing)
    assert before == (os.listdir("/proc/self/ns"), os.getuid(), os.readlink("/proc/self/ns/mnt"))


def test_hidden_paths_are_cut_out_of_readable_ones(tmp_path):
    for name in ("a/b/secret", "a/c"):
        (tmp_path / name).mkdir(parents=True)
    whole, listed = isolation.without(
        (str(tmp_path / "a"),), (str(tmp_path / "a/b/secret"), "/nowhere")
    )
    assert whole == [str(tmp_path / "a/c")]
    assert sorted(listed) == [str(tmp_path / "a"), str(tmp_path / "a/b")]
