"""How this copy of the course was installed, and so which command installs one of its extras.

The bare name ``rlcourse`` is never advised: on a package index it may be a stranger's. PEP 610's
``direct_url.json``, which pip and uv write, says where this copy came from.
"""

import importlib.metadata
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

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


def require(extra: str, package: str, what: str) -> None:
    """Raise the error of ``needing`` if the package is not there. It is not imported."""
    with needing(extra, what):
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def install_command(extra: str) -> str:
    """The command that adds `extra` to this copy, such as ``pip install -e "/a/clone[lora]"``.

    It installs from where this copy came; if that is gone or unknown, from where the course is
    published. If it is nowhere, a sentence says what is needed.
    """
    if source := _source(extra) or _clone(extra) or _published(extra):
        return f"pip install {source}"
    return f"install the course again from where you got it, with its extra `{extra}`"


def _source(extra: str) -> str:
    """What pip installed this copy from, with the extra; "" if that is gone or unknown."""
    origin = _origin()
    address = origin.get("url", "")
    if "vcs_info" in origin:
        vcs, inside = origin["vcs_info"], origin.get("subdirectory")
        fragment = f"#subdirectory={inside}" if inside else ""
        return f'"{NAME}[{extra}] @ {vcs["vcs"]}+{address}@{vcs["commit_id"]}{fragment}"'
    if not address.startswith("file:"):
        return f'"{NAME}[{extra}] @ {address}"' if address else ""
    path = Path(url2pathname(urlsplit(address).path))
    if not os.path.exists(path):  # in a folder of somebody else's, which Path would raise for
        return ""
    editable = origin.get("dir_info", {}).get("editable")
    return f'{"-e " if editable else ""}"{path}[{extra}]"'


def _origin() -> dict:
    """What PEP 610's file says; {} if there is none, as after an installation from an index."""
    for distribution in importlib.metadata.distributions(name=NAME):
        if text := distribution.read_text("direct_url.json"):
            return json.loads(text)
    return {}


def _clone(extra: str) -> str:
    """The clone that this runs from without being installed, as with PYTHONPATH."""
    return f'-e "{CLONE}[{extra}]"' if (CLONE / "pyproject.toml").is_file() else ""


def _published(extra: str) -> str:
    address = published.requirement()
    return f'"{NAME}[{extra}] @ {address}"' if address else ""
