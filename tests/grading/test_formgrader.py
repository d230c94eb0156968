"""Formgrader's own pages: what a student or a platform wrote is text on them, in HTML and in JS."""

import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import classroom as room
import nbgrader
import pytest
from jinja2 import Environment, FileSystemLoader
from nbgrader.api import Gradebook

from rlcourse.grading.books.gradebook import Course, Grades, load_source
from rlcourse.grading.nbgrader_plugin import render_escaped
from rlcourse.grading.pages.showing import Page, without_markup, without_setup

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
from lab_driver import FLAGS, _free_port, _wait_until_up, chromium

TEMPLATES = Path(nbgrader.__file__).parent / "server_extensions/formgrader/templates"
MARKUP = "<img src=x onerror=window.pwned=1>"
SCRIPT = '\\";window.pwned=1;var y="'  # for a name within the quotes of JavaScript
OBRIEN = "o'brien+cs@uni.edu"
# Imports a file that nbgrader has under another name, so that the page is an error in any case
BROKEN = "formgrade_404.tpl"
PAGES = sorted(path.name for path in TEMPLATES.glob("*.tpl") if path.name != BROKEN)
NAMES = {"student_id", "assignment_id", "notebook_id", "current_config", "exchange", "course_dir"}


@pytest.mark.parametrize("template", PAGES)
@pytest.mark.parametrize("name", [MARKUP, SCRIPT, "a\nb\u2028"])
def test_no_template_passes_markup_on(template, name):
    environment = Environment(loader=FileSystemLoader([str(TEMPLATES)]))
    handler = SimpleNamespace(settings={"nbgrader_jinja2_env": environment})
    resources = dict.fromkeys(("student", "last_name", "first_name", "filename"), name)
    resources |= {"index": 0, "total": 1, "notebook_path": name}
    values = dict.fromkeys(NAMES, name) | {"base_url": "", "resources": resources}
    page = render_escaped(handler, template, **values)
    assert MARKUP not in page and SCRIPT not in page
    for line in re.findall(r'^var \w+ = "(.*)$', page, re.MULTILINE):
        assert re.fullmatch(r'[^"\\\u2028]*";', line), line


def test_every_template_quotes_what_it_fills_in_by_double_quotes():
    """So an apostrophe can stand as it is, and the pages of o'brien@uni.edu find their owner."""
    for path in TEMPLATES.glob("*.tpl"):
        assert not re.search(r"'[^'\"\n{}<>]*\{\{", path.read_text("utf-8")), path.name


def test_an_apostrophe_and_a_plus_reach_the_script_as_they_are():
    environment = Environment(loader=FileSystemLoader([str(TEMPLATES)]))
    handler = SimpleNamespace(settings={"nbgrader_jinja2_env": environment})
    name = "manage_students_assignments.tpl"
    page = render_escaped(handler, name, student_id="o'brien+cs@uni.edu", base_url="")
    assert 'var student_id = "o\'brien+cs@uni.edu";' in page


def test_names_and_comments_are_text_on_the_pages_of_a_notebook():
    notebook = room.nbformat.v4.new_notebook(
        cells=[room.new_markdown_cell("x", metadata={"nbgrader": {"comment": f"**no** {MARKUP}"}})]
    )
    marked, resources = without_markup(notebook, {"student": MARKUP, "index": 3, "last_name": None})
    assert "<img" not in resources["student"] and resources["index"] == 3
    comment = marked.cells[0].metadata.nbgrader.comment
    assert "<img" not in comment and "<strong>no</strong>" in comment
    assert Page.do  # which registers it for every page


def test_the_cell_that_installs_the_course_is_on_no_page(template):
    notebook = room.solved(template)
    before = len(notebook.cells)
    shown, _ = without_setup(notebook, {})
    assert len(shown.cells) == before - 1
    assert not any("def set_up(" in cell.source for cell in shown.cells)


@pytest.fixture(scope="module")
def formgrader(template, tmp_path_factory):
    """A running server over a course whose gradebook holds hostile names; yields its address."""
    root = tmp_path_factory.mktemp("formgrader")
    shutil.copytree(template.parent, root / "repository")
    course, home = root / "repository" / "course", root / "home"
    opened = Course.open(course)
    with Grades(opened, room.LESSON, load_source(opened, room.LESSON)) as grades:
        for student in (MARKUP, SCRIPT, "ada", OBRIEN):
            grades.write(student, room.solved(course), {}, False, None)
            path = opened.autograded(student, room.LESSON)
            path.parent.mkdir(parents=True)
            path.write_text(room.json.dumps(room.solved(course)))
    with Gradebook(opened.directory.db_url) as book:
        book.update_or_create_student("ada", first_name=MARKUP, last_name=SCRIPT)
        found = book.find_comment("applause", room.LESSON, room.LESSON, "ada")
        found.manual_comment = MARKUP
        book.db.commit()
        submission = book.find_submission_notebook(room.LESSON, room.LESSON, MARKUP).id
    token, port = secrets.token_hex(16), _free_port()
    names = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    (home / "x").mkdir(parents=True)
    environment = {**os.environ, **dict.fromkeys(names, str(home))}
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root",
             f"--ServerApp.port={port}", f"--IdentityProvider.token={token}",
             f"--ServerApp.root_dir={course}"],
            cwd=course, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
        base = f"http://127.0.0.1:{port}"
        try:
            _wait_until_up(server, f"{base}/api/status?token={token}", home / "log")
            yield base, token, submission
        finally:
            server.kill()
            server.wait()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(not chromium(), reason="no Chromium")
def test_a_browser_runs_nothing_that_stands_in_a_name_or_a_comment(formgrader):
    from playwright.sync_api import sync_playwright

    base, token, submission = formgrader
    lesson, hostile = room.LESSON, (MARKUP, SCRIPT, "ada", OBRIEN)
    paths = ["manage_students", "gradebook", f"gradebook/{lesson}/{lesson}", "manage_assignments"]
    paths += [f"manage_submissions/{lesson}", f"submissions/{submission}/"]
    paths += [f"manage_students/{quote(name)}" for name in hostile]
    paths += [f"manage_students/{quote(name)}/{lesson}" for name in hostile]
    shown = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page()
        page.goto(f"{base}/api/status?token={token}")
        for path in paths:
            page.goto(f"{base}/formgrader/{path}", wait_until="networkidle")
            assert page.evaluate("window.pwned") is None, path
            assert page.query_selector("img[src=x]") is None, path
            shown[path] = page.inner_text("body")
        browser.close()
    assert MARKUP in shown["manage_students"]  # it is there, as text
    assert MARKUP in shown[f"manage_students/{quote(MARKUP)}"]
    assert f"/{room.LESSON}".strip("/") in shown[f"manage_students/{quote(OBRIEN)}"]
