"""What several tests need: folders that take long to make, and answers as students write them."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType

import pytest
from filelock import FileLock


def made_once(tmp_path_factory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder of this run of the tests that ``make(folder)`` has filled."""
    root = tmp_path_factory.getbasetemp()
    place = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / name
    done = place.with_name(f"{name}.done")
    with FileLock(f"{place}.lock"):
        if not done.exists():
            place.mkdir()
            make(place)
            done.touch()
    return place


def lock(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Pretend that this user may not look into a folder, which root always may."""
    stat = os.stat

    def refused(path, *args, **kwargs):
        if isinstance(path, str | Path) and folder in Path(path).parents:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *args, **kwargs)

    patch.setattr(os, "stat", refused)


def one_in(share: int, items: Iterable) -> list:
    """Parameters for a test that costs many seconds an item, exercises or names of lessons: one in
    `share` is tried with each change, the others weekly."""
    tiers = pytest.mark.slow, pytest.mark.weekly
    return [
        pytest.param(item, id=getattr(item, "name", item), marks=tiers[number % share > 0])
        for number, item in enumerate(items)
    ]


def as_written(reference: FunctionType) -> FunctionType:
    """The library's function, and those it calls, as if a student had typed them; the library's
    own are no answers to a check."""
    names = dict(reference.__globals__)
    code = reference.__code__.replace(co_filename="<a student's cell>")
    for name in code.co_names:
        if getattr(names.get(name), "__module__", "").startswith("rlcourse.algorithms."):
            names[name] = as_written(names[name])
    copy = FunctionType(
        code, names, reference.__name__, reference.__defaults__, reference.__closure__
    )
    copy.__kwdefaults__ = reference.__kwdefaults__
    return copy


# The pages of the instructor's guide that are followed step by step; blocks marked bash are tested.
GUIDE = Path(__file__).parents[1] / "course"
PATHS = ("README", "canvas", "moodle", "gradescope", "jupyterhub", "late", "regrading", "backup")


def commands(page: str, language: str = "bash") -> list[str]:
    """The lines of a page's blocks, those that a backslash continues as one."""
    text = re.sub(r"\\\n\s*", " ", "\n".join(blocks(page, language)))
    return [line for line in text.splitlines() if line.strip()]


def blocks(page: str, language: str) -> list[str]:
    text = (GUIDE / f"{page}.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
