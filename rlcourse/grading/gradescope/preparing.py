"""Once, in Gradescope's image: write down what grading a submission would otherwise work out."""

import json
import shutil
from pathlib import Path

import nbformat
import torch

from rlcourse.courses import current
from rlcourse.grading.judging.judge import LessonExam
from rlcourse.grading.running.library import write_library_of
from rlcourse.grading.running.steps import Cell

SETTINGS, RELEASE, SECRET, LIBRARY = "settings.json", "release.ipynb", "secret", "library"


def prepare(source: Path, home: Path) -> None:
    """From the unpacked archive in `source`, make `home` ready for ``grading``."""
    settings = json.loads((source / SETTINGS).read_text("utf-8"))
    release = nbformat.read(source / RELEASE, as_version=4)
    course = current()
    torch.set_num_threads(1)
    exam = LessonExam(release, (source / SECRET).read_bytes(), course=course)
    shutil.rmtree(home / LIBRARY, ignore_errors=True)
    hidden = write_library_of(home / LIBRARY, course, settings["lesson"], exam.exercises.values())
    settings["hidden"] = [str(path) for path in (*hidden, source.resolve())]
    settings["rehearsal"] = [s.source for s in exam.steps(release) if isinstance(s, Cell)]
    private = home / "private"
    private.mkdir(mode=0o700, exist_ok=True)
    for name in (RELEASE, SECRET):
        shutil.copyfile(source / name, private / name)
    (private / SETTINGS).write_text(json.dumps(settings), "utf-8")
