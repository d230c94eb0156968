"""JupyterLab as students get it: opened at a lesson, quiet, and ended with this command."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from rlcourse.courses import current
from rlcourse.courses.finding import VARIABLE
from rlcourse.errors import UserError
from rlcourse.installed import install_command
from rlcourse.lab.lessons import place

# Settings that switch things off for students; `jupyter lab` alone does not read this directory.
CONFIG = Path(__file__).parent / "jupyter_config"


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
    """Run JupyterLab until it ends, in this process's place where the system can do that: a signal
    then ends it at once. Elsewhere return its exit status."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise UserError(
            f"JupyterLab is not installed: {install_command('lab')}; any other program that opens "
            f"notebooks will do as well, and the lessons are in {directory}"
        )
    words = command(directory, lesson, browser, port)
    if os.name == "posix":
        os.execve(words[0], words, environment())
    return subprocess.call(words, env=environment())
