"""How this copy of the course was installed, and so which command installs one of its extras.

The bare name ``rlcourse`` is never advised: on a package index it may be a stranger's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rlcourse import published
from rlcourse.errors import UserError

NAME = "rlcourse"
CLONE = Path(__file__).resolve().parents[1]


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Within this context, a missing package raises an error that names the extra it belongs to.

    Raises:
        UserError: `what` needs a package that is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", NAME):
            raise
        raise UserError(
            f"{what} needs {missing}, which is not installed: {install_command(extra)}"
        ) from None


def require(extra: str, *packages: str, what: str) -> None:
    """Raise the error of ``needing`` if a package is not there. None is imported."""
    with needing(extra, what):
        for package in packages:
            if find_spec(package) is None:
                raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def install_command(extra: str) -> str:
    """The command that adds `extra` to this copy, such as ``pip install -e "/a/clone[lora]"``.

    Outside of a clone it installs from where the course is published. If it is nowhere, a sentence
    says what is needed.
    """
    if (CLONE / "pyproject.toml").is_file():
        return f'pip install -e "{CLONE}[{extra}]"'
    if address := published.requirement():
        return f'pip install "{NAME}[{extra}] @ {address}"'
    return f"install the course again from where you got it, with its extra `{extra}`"
