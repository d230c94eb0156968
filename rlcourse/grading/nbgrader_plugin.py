"""The same engine under nbgrader's own autograde: the command, Formgrader's button, the API.

``install`` replaces nbgrader's ``Autograde`` by a converter that hands the work to a process of its
own, ``GenerateAssignment`` by one that looks before it deletes, and what makes the pages of
feedback and of Formgrader by ``showing``: the server in which an instructor's browser session lives
neither imports torch nor reads a submission. ``course/nbgrader_config.py`` calls it, and names
``Refuse`` as the only step of the converter that is replaced: should the replacement fail, nothing
is graded at all.
"""

import json
import subprocess
import sys
from functools import lru_cache
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape
from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from rlcourse.errors import UserError


class IsolatedAutograde(Autograde):
    """nbgrader's autograde, by ``rlcourse grade``; ``--force`` and ``--student`` mean the same."""

    allow_weak_isolation = Bool(
        False, help="Grade even if student code can read files or reach processes."
    ).tag(config=True)

    def start(self) -> None:
        """Grade, and write to the log. Raises ``NbGraderException`` if nothing could be graded."""
        student = self.coursedir.student_id
        options = [] if student in ("", "*") else [f"--student={student}"]
        options += ["--force"] * self.force
        options += ["--allow-weak-isolation"] * self.allow_weak_isolation
        command = [sys.executable, "-m", "rlcourse", "grade", "--json", *options]
        command += [f"--course={self.coursedir.root}", "--", self.coursedir.assignment_id]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for line in done.stderr.splitlines():
            self.log.warning("%s", line)
        if done.returncode != 0:
            message = done.stderr.strip().splitlines()[-1:] or ["the grader gave no answer"]
            self.log.error("%s", message[0])
            raise NbGraderException(message[0])
        for row in json.loads(done.stdout)["submissions"]:
            said = "; ".join(row["incidents"]) or row["status"]
            log = self.log.warning if row["incidents"] else self.log.info
            log("%s: %g of %g points, %s", row["student"], row["score"], row["possible"], said)


class CarefulGenerateAssignment(GenerateAssignment):
    """nbgrader's own; but what it would refuse, it refuses before it deletes the old release."""

    def start(self) -> None:
        """Write the release. Raises ``NbGraderException`` if a cell with points is gone."""
        from rlcourse.grading.books.opening import open_gradebook
        from rlcourse.grading.books.released import enter_generated

        try:
            if not self.no_database:
                open_gradebook(self.coursedir).close()  # nbgrader would make it for all to read
                enter_generated(self.coursedir, self.config)
        except UserError as error:
            self.log.error("%s", error)
            raise NbGraderException(str(error)) from None
        super().start()


class Refuse(NbGraderPreprocessor):
    """The only remaining step of the autograde that runs student code next to the gradebook."""

    def preprocess(self, nb, resources):
        raise NbGraderException(
            "nbgrader's own autograde is switched off in this course, because it runs student code "
            "unprotected: use `rlcourse grade`, or run nbgrader where rlcourse is installed."
        )


def render_escaped(handler, name: str, **values: Any) -> str:
    """A page of Formgrader, whose templates insert names unescaped: here they are text."""
    environment = escaping(handler.settings["nbgrader_jinja2_env"])
    return environment.get_template(name).render(**values)


@lru_cache(maxsize=4)
def escaping(environment: Environment) -> Environment:
    """The same templates, with everything filled in as text."""
    return environment.overlay(autoescape=True, finalize=_as_text)


def _as_text(value: Any) -> Any:
    """Text for HTML, and for the JavaScript string in which some templates put a name.

    All of them quote by ``"``. An apostrophe stays as it is: in JavaScript an entity would be five
    more characters, and the page of ``o'brien`` would ask for somebody who is not there.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    text = str(escape(value)).replace("&#39;", "'")
    for special in "\\\n\r\u2028\u2029":
        text = text.replace(special, f"&#{ord(special)};")
    return Markup(text)


def install() -> None:
    """Put the isolated converters everywhere nbgrader looks for its own."""
    import nbgrader.apps.api
    import nbgrader.apps.autogradeapp
    import nbgrader.apps.generateassignmentapp
    import nbgrader.apps.generatefeedbackapp

    from rlcourse.grading.pages.showing import IsolatedExporter, IsolatedFeedback

    for module in (nbgrader.apps.api, nbgrader.apps.autogradeapp):
        module.Autograde = IsolatedAutograde
    for module in (nbgrader.apps.api, nbgrader.apps.generateassignmentapp):
        module.GenerateAssignment = CarefulGenerateAssignment
    for module in (nbgrader.apps.api, nbgrader.apps.generatefeedbackapp):
        module.GenerateFeedback = IsolatedFeedback
    formgrader = sys.modules.get("nbgrader.server_extensions.formgrader.formgrader")
    base = sys.modules.get("nbgrader.server_extensions.formgrader.base")
    if base is not None:
        base.BaseHandler.render = render_escaped
    if formgrader is not None:  # it reads the settings, and makes its exporter after that
        formgrader.HTMLExporter = IsolatedExporter  # type: ignore[attr-defined]
