"""A submission that dies oddly or takes more than its share is named, and nobody else pays."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from rlcourse.exercises import all as all_exercises
from rlcourse.grading.library import write_library
from rlcourse.grading.sandbox import DIED, Cell, Limits, Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")


@pytest.fixture(scope="module")
def library():
    with tempfile.TemporaryDirectory(prefix="rlcourse-test-") as directory:
        os.chmod(directory, 0o755)
        write_library(Path(directory, "library"), list(all_exercises())[:1])
        yield Path(directory, "library")


def test_death_by_a_signal_without_a_name_is_an_incident(library):
    """Without a PID namespace, in which process 1 ignores such signals."""
    limits = Limits(step=10)
    with Sandbox(library, library.parent / "signal", refuse=("pid",), limits=limits) as sandbox:
        steps = [Cell("fatal", "import signal\nsignal.raise_signal(40)"), Cell("next", "print(1)")]
        transcript = sandbox.run(steps)
    (incident,) = transcript.incidents
    assert (incident.status, incident.where, incident.detail) == (DIED, "fatal", "signal 40")
    assert transcript.cells["next"].printed == "1\n"
