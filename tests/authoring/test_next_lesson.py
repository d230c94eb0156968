"""Every lesson ends with links to its neighbors, and its mentions of others are links to them."""

import nbformat
import pytest
from small_courses import write_course

from rlcourse.authoring.mentions import with_links
from rlcourse.courses import current, shipped

COURSE = shipped()


def linked(lesson):
    return f"[{lesson.heading}](../{lesson.name}/{lesson.name}.ipynb)"


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.name)
def test_a_lesson_ends_with_links_to_its_neighbors(lesson):
    last = nbformat.read(COURSE.notebook(lesson.name), as_version=4).cells[-1].source
    before, after = COURSE.beside(lesson.name)
    assert before or after
    wanted = [f"Previous lesson: {linked(before)}"] if before else []
    wanted += [f"Next lesson: {linked(after)}"] if after else []
    assert last == " · ".join(wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("As in lesson 06.", "As in lesson [06](../06_grpo/06_grpo.ipynb)."),
        (
            "Lessons 00, 02 and 06 say",
            "Lessons [00](../00_start_here/00_start_here.ipynb), 02 and "
            "[06](../06_grpo/06_grpo.ipynb) say",
        ),
        ("(lesson 06), lesson 06", "(lesson [06](../06_grpo/06_grpo.ipynb)), lesson 06"),
        ("`lesson 06`, [lesson 06](x)", "`lesson 06`, [lesson 06](x)"),
        ("lesson 11 has it", "lesson 11 has it"),
    ],
)
def test_the_first_mention_of_a_lesson_that_the_course_has_is_a_link(tmp_path, text, wanted):
    names = ("00_start_here", "06_grpo", "02_policy_gradient")
    course = current(write_course(tmp_path / "course", dict.fromkeys(names)))
    assert with_links(text, "02_policy_gradient", course) == wanted
