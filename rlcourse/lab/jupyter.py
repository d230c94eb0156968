"""JupyterLab as students get it: opened at a lesson, quiet, and ended with this command."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rlcourse.courses import current
from rlcourse.courses.finding import VARIABLE
from rlcourse.errors import UserError
from rlcourse.installed import install_command
from rlcourse.lab.lessons import place

# Settings that switch things off for students; `jupyter lab` alone does not read this directory.
CONFIG = Path(__file__).parent / "jupyter_config"
GRACE = 10.0  # seconds for JupyterLab to end its kernels


def command(directory: Path, lesson: str, browser: bool, port: int) -> list[str]:
    """The command that starts JupyterLab on the lessons in `directory`, with `lesson` open."""
    path = place(directory, lesson).relative_to(directory).as_posix()
    words = [sys.executable, "-m", "jupyterlab", f"--port={port}"]
    words += [
        f"--ServerApp.root_dir={directory}",
        f"--LabApp.default_url=/lesson/{path}",  # of `opening`; also in the address that is printed
        "--ServerApp.answer_yes=True",  # Ctrl-C ends it at once
        "--log-level=ERROR",  # the address is still printed
    ]
    if not browser:
        words.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container everybody is root
        words.append("--allow-root")
    return words


def environment() -> dict[str, str]:
    """This process's environment, with the students' settings before all others, and the current
    course for every notebook, wherever its folder is."""
    path = [str(CONFIG), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    chosen = {"JUPYTER_CONFIG_PATH": os.pathsep.join(path), VARIABLE: str(current().directory)}
    return {**os.environ, **chosen}


def open_lab(directory: Path, lesson: str, browser: bool = True, port: int = 8888) -> int:
    """Run JupyterLab until it ends and return its exit status. Ctrl-C and SIGTERM end it, too."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise UserError(
            f"JupyterLab is not installed: {install_command('lab')}; any other program that opens "
            f"notebooks will do as well, and the lessons are in {directory}"
        )
    with _raised_as_interrupts():
        server = subprocess.Popen(command(directory, lesson, browser, port), env=environment())
        try:
            return server.wait()
        except KeyboardInterrupt:
            return _end(server)


@contextlib.contextmanager
def _raised_as_interrupts() -> Iterator[None]:
    """Within this context, SIGTERM and the end of the terminal act like Ctrl-C."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    names = ("SIGTERM", "SIGHUP", "SIGINT")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    heard = [n for n in numbers if signal.getsignal(n) is not signal.SIG_IGN]  # nohup ignores one
    before = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(server: subprocess.Popen) -> int:
    """Ask JupyterLab to end, then kill it. A terminal's Ctrl-C has reached it already, and asking
    again does no harm; a second one here kills it at once."""
    try:
        if os.name == "posix":
            server.terminate()
        server.wait(GRACE)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        server.kill()
        server.wait()
    return 0
