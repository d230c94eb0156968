import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import classroom
import mixed_class
import pytest
from shared import made_once
from warm import warm_commands

from rlcourse.exercises import all as all_exercises
from rlcourse.grading import engine
from rlcourse.grading.running.library import write_library
from rlcourse.grading.running.sandbox import Sandbox


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A course that is built once; tests take copies of it."""
    return made_once(tmp_path_factory, "template", classroom.make_course) / "course"


@pytest.fixture(scope="session")
def mixed(template, tmp_path_factory):
    """(course, report) of a class of all kinds, graded once; nobody writes to it."""
    root = tmp_path_factory.mktemp("mixed") / "repository"
    shutil.copytree(template.parent, root)
    return root / "course", mixed_class.graded(root / "course")


@pytest.fixture(scope="session")
def warm():
    """A PATH on which the commands `rlcourse` and `nbgrader` start at once."""
    with warm_commands() as path:
        yield path


@pytest.fixture
def course(template, tmp_path):
    """A fresh course directory with nothing handed in."""
    shutil.copytree(template.parent, tmp_path / "repository")
    return tmp_path / "repository" / "course"


@pytest.fixture(scope="session")
def reachable():
    """A directory that other users may enter; pytest's own they may not."""
    with tempfile.TemporaryDirectory(prefix="rlcourse-test-") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


@pytest.fixture(scope="session")
def library(reachable):
    """The students' library, in which the functions of the class's lesson are stubs."""
    lesson = [e for e in all_exercises() if e.lesson == classroom.LESSON]
    write_library(reachable / "library", lesson)
    return reachable / "library"


@pytest.fixture(scope="session")
def sandbox(library):
    """A warm server with every layer that there is, for tests of anything but the layers."""
    with Sandbox(library, library.parent / "server") as sandbox:
        yield sandbox


class Shared:
    """Stands for the engine's ``Sandbox``: one server for all that would start the same."""

    kept: ClassVar[dict[str, Sandbox]] = {}
    home: ClassVar[Path]
    owner = os.getpid()

    def __new__(cls, library, scratch, rehearsal=(), hidden=(), refuse=(), memory=None):
        if not classroom.sharing or os.getpid() != cls.owner:
            return Sandbox(library, scratch, rehearsal, hidden, refuse, memory)
        return super().__new__(cls)

    def __init__(self, library, scratch, rehearsal=(), hidden=(), refuse=(), memory=None):
        sha = hashlib.sha256(repr((rehearsal, refuse, memory)).encode())
        for path in sorted(path for path in library.rglob("*") if path.is_file()):
            sha.update(bytes(path.relative_to(library)) + path.read_bytes())
        key = sha.hexdigest()
        if key not in self.kept:
            place = self.home / str(len(self.kept))
            shutil.copytree(library, place / "library")
            kept = Sandbox(place / "library", place / "server", rehearsal, hidden, refuse, memory)
            self.kept[key] = kept.__enter__()
        self._sandbox = self.kept[key]
        self.layers, self.line = self._sandbox.layers, self._sandbox.line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def close(self):
        pass


@pytest.fixture(scope="session", autouse=True)
def shared_servers():
    """Gradings of this process share warm servers, except within ``servers_watched``: each takes
    seconds to start."""
    with tempfile.TemporaryDirectory(prefix="rlcourse-shared-") as directory:
        os.chmod(directory, 0o755)
        Shared.home, engine.Sandbox = Path(directory), Shared
        yield
        engine.Sandbox = Sandbox
        for sandbox in Shared.kept.values():
            sandbox.close()
