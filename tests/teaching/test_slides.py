"""Slides quote their lessons, need no network, and fit."""

import sys
from pathlib import Path

import pytest

from rlcourse.courses import shipped
from rlcourse.errors import UserError
from rlcourse.teaching.deck import _slide, slides_of
from rlcourse.teaching.slides import slides_page
from rlcourse.teaching.sources import Sources

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
from lab_driver import FLAGS, chromium

COURSE = shipped()


@pytest.mark.parametrize("folder", COURSE.lessons[1:], ids=lambda lesson: lesson.name)
def test_every_lesson_has_slides_with_pictures_notes_and_a_question(folder):
    slides = slides_of(folder, COURSE)
    shown = "".join(part for slide in slides for part in slide.parts)
    assert len(slides) >= 5 and any(slide.notes for slide in slides)
    assert not [s.title for s in slides if s.kind == "asks" and s.title.endswith("?")]
    _, box = shown.split('<div class="check">')  # exactly one
    assert "✗" in box and "✓" not in box and 'class="ask"' in shown
    assert "<img" in shown and "<math" in shown


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("> Nobody wrote this", "no sentence that begins"),
        ("figure: nobody_drew", "0 cells contain"),
        ("mistake: grpo_loss: no such words", "0 mistakes of grpo_loss"),
        ("hello", "no entry of a slide"),
    ],
)
def test_what_the_lesson_does_not_have_is_named_with_its_slide(line, said):
    with pytest.raises(UserError, match=said) as caught:
        _slide("page: slide 'A'", "A", line, Sources(COURSE.lesson("06"), COURSE))
    assert "slide 'A'" in str(caught.value)


@pytest.mark.slow
@pytest.mark.skipif(not chromium(), reason="no Chromium")
@pytest.mark.parametrize("number", ["06", "15"])
def test_no_slide_overflows_or_needs_the_network(tmp_path, number):
    from playwright.sync_api import sync_playwright

    (tmp_path / "slides.html").write_text(slides_page(COURSE.lesson(number), COURSE))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        asked, failed = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto(f"file://{tmp_path}/slides.html")
        for i in range(page.evaluate("Reveal.getTotalSlides()")):
            over = page.evaluate(
                """i => { Reveal.slide(i, 0, 99); fit();
                const box = document.querySelector('section.present .fit');
                return [box.scrollHeight - box.clientHeight,
                box.scrollWidth - box.clientWidth] }""",
                i,
            )
            assert max(over) <= 1, (i, over)
        browser.close()
    assert not failed and all(url.startswith(("file:", "data:")) for url in asked)
