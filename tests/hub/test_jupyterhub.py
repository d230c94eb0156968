"""Two students and an instructor on a real JupyterHub, each of them a user of their own.

It takes minutes, root and the network, and installs two programs: ``pytest tests/hub --hub``, as
the weekly workflow does.
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.error

import nbformat
import pytest
from hub import COURSE, GRADER, INSTRUCTOR, LESSON, USERS, Hub
from small_courses import write_course

from rlcourse import exercises
from rlcourse.authoring import stubs
from rlcourse.authoring.builder import build
from rlcourse.grading.gradescope.archive import course_wheel

NEEDED = ("unshare", "nsenter", "setpriv", "npm", "bash")
NAME = "mean_reward"
NOTEBOOK = f"{LESSON}/{LESSON}.ipynb"


def lacking() -> str:
    """Why no hub can be started here; "" where one can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "starting servers as other users takes root on Linux"
    if absent := [name for name in NEEDED if not shutil.which(name)]:
        return f"a hub needs {absent[0]}, which is not installed"
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True)
    return "" if tried.returncode == 0 else "this container may not make mount namespaces"


@pytest.fixture(scope="module")
def hub(request, tmp_path_factory):
    if not request.config.getoption("--hub"):
        pytest.skip("a hub with its users takes minutes and the network: --hub starts it")
    if why := lacking():
        pytest.skip(why)
    root = tmp_path_factory.mktemp("course")
    course = write_course(root / "repository" / "course", {LESSON: None})
    build(root=course.parent, progress=False)
    name, wheel = course_wheel()
    (root / name).write_bytes(wheel)
    hub = Hub(root / name)
    try:
        hub.prepare(course)
        hub.start()
        yield hub
    finally:
        hub.stop()


def answer(notebook: str, change=lambda text: text) -> str:
    """The notebook with the exercise solved, or with a mistake in it."""
    node = nbformat.reads(notebook, as_version=4)
    for cell in node.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == NAME:
            cell.source = change(stubs.solution(exercises.get(NAME).reference, marks=False))
    return nbformat.writes(node)


def wrong(text: str) -> str:
    body = text.rpartition('"""')
    return f"{body[0]}{body[1]}\n    return rewards.sum()\n"


def validated(hub: Hub, name: str, token: str) -> str:
    """What nbgrader's button *Validate* says, which runs the notebook as that user."""
    return str(
        hub.ask(
            "POST", f"/user/{name}/assignments/validate", {"path": NOTEBOOK}, token=token, form=True
        )
    )


@pytest.mark.slow
def test_from_release_to_feedback(hub):
    formgrader = f"/services/{COURSE}/formgrader/api"
    instructor = hub.log_in(INSTRUCTOR)
    hub.wait(lambda: hub.ask("GET", f"{formgrader}/assignments", token=instructor), "Formgrader")

    def press(what: str) -> dict:
        done = hub.ask("POST", f"{formgrader}/assignment/{LESSON}/{what}", {}, token=instructor)
        assert done["success"], done
        return done

    press("assign")
    press("release")
    ada, bob = hub.log_in("ada"), hub.log_in("bob")
    tokens = {"ada": ada, "bob": bob}

    # nobody gets at what belongs to another one
    for path in (f"{formgrader}/assignments", "/user/bob/api/contents"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            hub.ask("GET", path, token=ada)
        assert refused.value.code == 403
    with pytest.raises(urllib.error.HTTPError) as absent:
        hub.ask("GET", "/user/ada/formgrader/api/status", token=ada)
    assert absent.value.code == 404

    about = {"course_id": COURSE, "assignment_id": LESSON}

    def do(name: str, what: str, data: dict = about):
        found = hub.ask(
            "POST", f"/user/{name}/assignments/{what}", data, token=tokens[name], form=True
        )
        assert found["success"], found
        return found["value"]

    said = {}
    for name, change in (("ada", lambda text: text), ("bob", wrong)):
        do(name, "fetch")
        path = hub.home(name) / "rlcourse-lessons" / NOTEBOOK
        assert path.stat().st_uid == USERS[name]
        address = f"/user/{name}/api/contents/{NOTEBOOK}"
        content = hub.ask("GET", address, token=tokens[name])["content"]
        work = json.loads(answer(json.dumps(content), change))
        data = {"type": "notebook", "format": "json", "content": work}
        hub.ask("PUT", address, data, token=tokens[name])
        said[name] = validated(hub, name, tokens[name])
        do(name, "submit")
        # the command in their terminal means the same folder, whose lesson it leaves alone
        before = path.read_bytes()
        text = hub.as_user(name, "rlcourse lab --copy-only", hub.home(name))
        assert "rlcourse-lessons" in text and path.read_bytes() == before
        copies = list(hub.home(name).rglob(f"{LESSON}.ipynb"))  # but for what nbgrader handed in
        assert [copy for copy in copies if "nbgrader_cache" not in copy.parts] == [path]
    # bob can neither hand in in ada's name nor put an exchange of his own in the place of this one
    home, place = hub.home("bob"), hub.exchange / COURSE
    forged = f"{place}/inbound/ada+{LESSON}+2099-01-01 00:00:00 UTC+x"
    hub.as_user("bob", f"cp -r rlcourse-lessons/{LESSON} '{forged}'", home)
    assert hub.as_user("bob", f"mv {place} {place}-mine || echo no", home) == "no\n"
    assert said["ada"] == str({"success": True, "value": {}})  # nothing failed
    assert "the sum" in said["bob"], said["bob"]

    press("collect")
    table = hub.as_user(GRADER, "rlcourse grade 00", hub.course)
    assert "ada" in table and "bob" in table and f"{LESSON}: 2 graded" in table
    press("generate_feedback")
    press("release_feedback")
    for name in ("ada", "bob"):
        do(name, "fetch_feedback")
        (page,) = (hub.home(name) / "rlcourse-lessons" / LESSON / "feedback").rglob("*.html")
        assert page.stat().st_uid == USERS[name]
        assert ("those of the sum" in page.read_text()) == (name == "bob")
