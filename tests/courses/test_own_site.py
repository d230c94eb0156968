"""``rlcourse site`` writes the pages of the course in whose folder it is called."""

import re
import shutil

import pytest
from test_errors import change

from rlcourse.authoring import build
from rlcourse.courses import current

pytestmark = pytest.mark.slow


def test_the_site_has_the_course_s_lessons_in_its_order_and_nothing_else(own, rlcourse):
    change(own / "course.toml", '    "01_critics",\n    "rlcourse:02_policy_gradient",\n', "")
    change(own / "course.toml", '    # "rlcourse:06_grpo",\n', '    "01_critics",\n')
    build(root=own, progress=False)
    status, _, complaint = rlcourse("site", cwd=own.parent)
    assert status == 1 and "run `rlcourse build 01_critics --execute` first" in complaint
    solutions = current(own).solutions
    shutil.copy(current(own).notebook("01_critics"), solutions)  # it is solved elsewhere
    status, said, complaint = rlcourse("site", cwd=own.parent)
    assert status == 0 and "open build/site/html/index.html" in said, complaint
    pages = own.parent / "build" / "site" / "html"
    home = (pages / "index.html").read_text("utf-8")
    assert "<title>Our course" in home
    titles = re.findall(r'<li><p><a[^>]*href="lessons/(\w+).html"', home)
    assert titles == ["03_baselines", "01_critics"]
    assert not (pages / "reference").exists() and not (pages / "lessons" / "06_grpo.html").exists()
    assert "explained_variance" in (pages / "lessons" / "01_critics.html").read_text("utf-8")
