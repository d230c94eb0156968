"""``rlcourse new-course``: a small new course, copied from ``new_course`` next to it.

The template is itself a course that works: its package is called ``own_course``, and that name
is replaced by the new one everywhere.
"""

import importlib.util
import keyword
import os
import re
import shutil
from pathlib import Path

from rlcourse.courses.finding import shipped_directory
from rlcourse.errors import UserError

TEMPLATE = Path(__file__).with_name("new_course")
NAME = "own_course"  # of the template's package
SETTINGS = "nbgrader_config.py"  # taken from rlcourse's own course


def new_course(directory: Path) -> Path:
    """Write the package of a new course into `directory`, named after it.

    Raises:
        UserError: something is already there, or the name cannot be that of a package.
    """
    target = Path(os.path.abspath(directory))
    name = target.name
    if target.exists():
        raise UserError(f"{target} already exists: choose another folder")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UserError(
            "the folder's name becomes a package's: use lower-case letters, digits and _, such as "
            f"our_course, and not {name!r}"
        )
    if importlib.util.find_spec(name):
        raise UserError(f"there is a Python package {name!r} already: choose another name")
    shutil.copytree(TEMPLATE, target, ignore=shutil.ignore_patterns("__pycache__"))
    (target / "gitignore").rename(target / ".gitignore")  # it would take effect in the template
    (target / NAME).rename(target / name)
    shutil.copy(shipped_directory() / SETTINGS, target / name)
    for path in filter(Path.is_file, target.rglob("*")):
        text = path.read_text("utf-8").replace(NAME, name)
        text = text.replace('course_id = "rlcourse"', f'course_id = "{name}"')
        path.write_text(text, encoding="utf-8", newline="\n")
    return target
