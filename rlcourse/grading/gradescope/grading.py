"""One submission on Gradescope, from the files that were uploaded to ``results.json``.

This process imports no torch: it finds the notebook, starts the reader and the server of student
code, and keeps the submission's account.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcourse.errors import UserError
from rlcourse.files import replace_bytes
from rlcourse.grading.confinement.disposable import Disposable
from rlcourse.grading.confinement.disposable import Lost as LostReader
from rlcourse.grading.confinement.isolation import LAYERS
from rlcourse.grading.gradescope import results
from rlcourse.grading.handing_in.untrusted_files import find_notebook, read_bytes
from rlcourse.grading.locking import scratch_directory
from rlcourse.grading.rejected import REFUSED, Rejected
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Sandbox, reading_bounds, why_unread

# Gradescope ends a run after ten minutes; these end a submission before, and it keeps its points.
LIMITS = Limits(submission=120.0)


@dataclass(frozen=True)
class LateReader:
    """Becomes a ``Reader`` in the process that is to read: only there are torch and references."""

    release: str
    secret: bytes

    def __reduce__(self) -> tuple[Callable, tuple]:
        return _reader, (self.release, self.secret)

    def prepare(self, warm_up_keys: Any) -> None:
        raise NotImplementedError

    def do(self, request: bytes, line: Any) -> Any:
        raise NotImplementedError


def _reader(release: str, secret: bytes):
    import nbformat
    import torch

    from rlcourse.courses import current
    from rlcourse.grading.judging.marking import Reader

    torch.set_num_threads(1)
    return Reader(nbformat.reads(release, as_version=4), secret, LIMITS, current())


def grade(home: Path, autograder: Path) -> None:
    """Grade what lies in ``submission/`` of `autograder`, and write its ``results/results.json``.

    Raises:
        UserError: student code cannot be isolated here; nothing is graded or written.
    """
    started, private = time.monotonic(), home / "private"
    settings = json.loads((private / "settings.json").read_text("utf-8"))
    text = (private / "release.ipynb").read_text("utf-8")
    release = json.loads(text)
    try:
        data = _handed_in(autograder / "submission", settings["lesson"])
        work = LateReader(text, (private / "secret").read_bytes())
        hidden = [Path(path) for path in settings["hidden"]] + [private, autograder]
        library, rehearsal = home / "library", settings["rehearsal"]
        found = _read(data, work, library, rehearsal, hidden)
        if "rejected" in found:
            raise Rejected(*found["rejected"])
    except Rejected as rejected:
        result = results.of_rejected(rejected, release, settings)
    else:
        result = results.of_graded(found, release, settings)
    result["execution_time"] = round(time.monotonic() - started)
    (autograder / "results").mkdir(exist_ok=True)
    replace_bytes(autograder / "results" / "results.json", json.dumps(result, indent=2).encode())
    print(result["output"])


def _handed_in(submission: Path, lesson: str) -> bytes:
    try:
        return read_bytes(submission, find_notebook(submission, lesson))
    except OSError as error:
        raise Rejected(REFUSED, f"what was handed in cannot be read ({error.strerror})") from None


def _read(
    data: bytes, work: LateReader, library: Path, rehearsal: list[str], hidden: list[Path]
) -> dict:
    """What the reader found: marks, incidents and the notebook, or why it was rejected."""
    bounds = reading_bounds(LIMITS)
    with (
        scratch_directory() as scratch,
        Disposable(work, bounds, fork=False) as reader,
        Sandbox(library, scratch / "server", rehearsal, hidden) as sandbox,
    ):
        _verify_layers(sandbox)
        try:
            with sandbox.line() as line:
                return reader.run(data, line=line)
        except LostReader as lost:
            raise why_unread(lost) from None


def _verify_layers(sandbox: Sandbox) -> None:
    if weakness := sandbox.layers.weakness():
        raise UserError(f"nothing was graded: {weakness}.")
    standing = [name for name in LAYERS if name in sandbox.layers.standing]
    print(f"student code is isolated by: {', '.join(standing)}", file=sys.stderr)
