"""Slides show what their lessons drew, and name what a lesson no longer has."""

from dataclasses import replace

import pytest

from rlcourse.courses import shipped
from rlcourse.errors import UserError
from rlcourse.teaching.slides import slides_of, slides_page

COURSE = shipped()


@pytest.mark.parametrize("folder", COURSE.lessons[1:], ids=lambda lesson: lesson.name)
def test_every_lesson_has_slides_with_pictures_a_question_and_a_named_mistake(folder):
    cells = slides_of(folder, COURSE)
    assert sum(cell.metadata.slideshow.slide_type == "slide" for cell in cells) >= 5
    text = "\n".join(cell.source for cell in cells)
    assert "?**" in text and "$" in text and "then" not in text.splitlines()
    html = [o.data.get("text/html", "") for c in cells for o in c.get("outputs", []) if "data" in o]
    (box,) = [shown for shown in html if shown.startswith('<div class="check">')]
    assert "✗" in box and "✓" not in box and any("<img" in shown for shown in html)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("figure: nobody_drew", "0 cells contain"),
        ("output: import torch", "shows no output"),
        ("mistake: grpo_loss: no such words", "0 mistakes of grpo_loss"),
    ],
)
def test_what_the_lesson_does_not_have_is_named_with_its_slide(tmp_path, line, said):
    (tmp_path / "teaching" / "slides").mkdir(parents=True)
    (tmp_path / "teaching" / "slides" / "06_grpo.md").write_text(f"Words.\n\n## A\n\n{line}\n")
    with pytest.raises(UserError, match=f"slide '## A': .*{said}"):
        slides_of(replace(COURSE.lesson("06"), home=tmp_path), COURSE)


def test_the_page_shows_what_cells_showed_and_no_code():
    page = slides_page(COURSE.lesson("06"), COURSE)
    assert "<title>06 · Group" in page and 'class="fragment"' in page
    assert "rlcourse-picture" in page and "ready(" not in page
