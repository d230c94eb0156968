"""Commands of this environment that start at once: each is a fork of one process that has imported
what they need, which takes seconds of a processor every time.

What is started so gets the directory, the environment, the words and the three standard streams of
whoever starts it, and its exit status is that of the command. That `rlcourse` and `nbgrader` start
from nothing is tested by tests/packaging and tests/test_cli.py.
"""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

# What `rlcourse` and `nbgrader` on the PATH are: a small script that hands everything over.
SCRIPT = """\
#!{python} -IS
import json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({place!r})
socket.send_fds(line, [b"f"], [0, 1, 2])
told = {{"words": [{name!r}, *sys.argv[1:]], "cwd": os.getcwd(), "environment": dict(os.environ)}}
line.sendall(json.dumps(told).encode() + b"\\n")
sys.exit(int(line.makefile().readline() or 1))
"""


@contextmanager
def warm_commands() -> Iterator[str]:
    """A PATH on which `rlcourse` and `nbgrader` are forks of one warm process."""
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(prefix="rlcourse-warm-") as folder:
        place = f"{folder}/socket"
        for name in ("rlcourse", "nbgrader"):
            script = Path(folder, name)
            script.write_text(SCRIPT.format(python=sys.executable, place=place, name=name))
            script.chmod(0o755)
        server = subprocess.Popen(
            [sys.executable, __file__, place],
            env={**os.environ, "PATH": scripts, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,  # whose end ends it, however this process ends
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            assert server.stdout is not None and server.stdout.readline() == b"ready\n"
            yield f"{folder}{os.pathsep}{scripts}"
        finally:
            server.kill()
            server.communicate()


def serve(place: str) -> None:
    """Import what commands need, then fork a process for each that is asked for."""
    import nbgrader.apps.nbgraderapp
    import torch

    import rlcourse.cli
    import rlcourse.grading.engine

    torch.set_num_threads(1)
    mains = {"rlcourse": rlcourse.cli.main, "nbgrader": nbgrader.apps.nbgraderapp.main}
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        print("ready", flush=True)
        while 0 not in select.select([listening, 0], [], [])[0]:
            line, _ = listening.accept()
            if os.fork() == 0:  # it waits for the command, whatever that ends with
                listening.close()
                os._exit(_answer(line, mains))
            line.close()
            with suppress(ChildProcessError):  # of those that are done
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _answer(line: socket.socket, mains: Mapping) -> int:
    _, streams, _, _ = socket.recv_fds(line, 1, 3)
    told = json.loads(line.makefile().readline())
    command = os.fork()
    if command == 0:
        line.close()
        _become(told, streams, mains)
    for stream in streams:
        os.close(stream)
    status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    line.sendall(f"{status if status >= 0 else 128 - status}\n".encode())
    return 0


def _become(told: dict, streams: list[int], mains: Mapping) -> None:
    """Be the command, to its end."""
    import atexit

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(told["cwd"])
    os.environ.clear()
    os.environ.update(told["environment"])
    sys.argv = told["words"]
    status: object = 1
    try:
        status = mains[told["words"][0]]()
    except SystemExit as end:
        status = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    if isinstance(status, str):
        print(status, file=sys.stderr)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    serve(sys.argv[1])
