"""``rlcourse new-course``: a small new course, copied from ``new_course`` next to it.

The template is itself a course that works: its package is called ``own_course``, and that name
is replaced by the new one everywhere.
"""

import importlib.util
import json
import keyword
import os
import re
import secrets
import shutil
import sys
from pathlib import Path

from rlcourse import published
from rlcourse.courses.finding import shipped_directory
from rlcourse.errors import UserError
from rlcourse.files import TEMPORARY

TEMPLATE = Path(__file__).with_name("new_course")
NAME = "own_course"  # of the template's package
SETTINGS = "nbgrader_config.py"  # taken from rlcourse's own course
DOTTED = {"gitignore": ".gitignore"}  # files that would take effect in the template itself


def new_course(directory: Path) -> Path:
    """Write the package of a new course into `directory`, named after it: all of it or nothing.

    Raises:
        UserError: something is already there, the name cannot be that of a package, or the
            files cannot be written.
    """
    target = Path(os.path.abspath(directory))
    _verify_name(target.name, target)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UserError(f"{target} already exists: choose another folder, or empty this one")
    temporary = target.with_name(f"{TEMPORARY}{target.name}.{secrets.token_hex(4)}")
    try:
        temporary.mkdir(parents=True)
        _fill(temporary, target.name)
        if target.exists():
            target.rmdir()
        temporary.rename(target)
    except OSError as error:
        raise UserError(f"{target} could not be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _verify_name(name: str, target: Path) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(
            "the folder's name becomes a package's: use lower-case letters, digits and _, such as "
            f"our_course, and not {name!r}"
        )
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise UserError(f"{name!r} is a Python keyword: choose another name")
    if _is_taken(name, target):
        raise UserError(f"there is a Python package {name!r} already: choose another name")


def _is_taken(name: str, target: Path) -> bool:
    """Whether `import name` finds something that is not merely the folder `target`."""
    if name in sys.stdlib_module_names:
        return True
    spec = importlib.util.find_spec(name)
    if spec is None:
        return False
    places = [Path(place).resolve() for place in spec.submodule_search_locations or ()]
    return spec.origin is not None or places != [target.resolve()]


def _fill(directory: Path, name: str) -> None:
    for source in sorted(TEMPLATE.rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            path = source.relative_to(TEMPLATE)
            path = path.with_name(DOTTED.get(path.name, path.name))
            _write(directory / str(path).replace(NAME, name), _filled(source, name))
    settings = (shipped_directory() / SETTINGS).read_text("utf-8")
    settings = settings.replace("this directory, ``course/``", "this directory")
    settings = settings.replace('course_id = "rlcourse"', f'course_id = "{name}"')
    _write(directory / name / SETTINGS, settings)


def _filled(source: Path, name: str) -> str:
    """A file of the template with the course's name and where rlcourse comes from."""
    text = source.read_text("utf-8").replace(NAME, name)
    address = published.requirement()
    if source.name == "pyproject.toml":
        # Never the bare name: on a package index it may be a stranger's.
        needed = json.dumps([f"rlcourse @ {address}"]) if address else f"[]  # {NOT_BY_NAME}"
        return text.replace("dependencies = []", f"dependencies = {needed}")
    if source.name == "README.md":
        link = f"[rlcourse]({published.REPOSITORY})" if address else "rlcourse"
        return text.replace("[rlcourse](RLCOURSE)", link)
    return text


NOT_BY_NAME = "rlcourse is installed first; put its address here, as in “rlcourse @ git+https://…”"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
