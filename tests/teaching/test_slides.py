"""Slides quote their lessons, need no network, and fit; plans and the pack hold every lesson."""

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.courses import shipped
from rlcourse.errors import UserError
from rlcourse.teaching.deck import _slide, deck
from rlcourse.teaching.plans import plan, split
from rlcourse.teaching.slides import slides_page
from rlcourse.teaching.sources import Sources

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
from lab_driver import FLAGS, chromium

COURSE = shipped()


@pytest.mark.parametrize("folder", COURSE.lessons, ids=lambda lesson: lesson.name)
def test_every_lesson_has_slides_with_pictures_notes_and_a_question(folder):
    made = deck(folder, COURSE)
    shown = "".join(part for slide in made.slides for part in slide.parts)
    assert len(made.slides) >= 5 and not made.missing
    assert any(slide.notes for slide in made.slides)
    assert not [s.title for s in made.slides if s.kind == "asks" and s.title.endswith("?")]
    if (folder.home / "teaching" / "slides" / f"{folder.name}.md").is_file():
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


def test_weeks_are_balanced_and_hold_every_lesson():
    assert split([1, 1, 1, 3], 2) == [3, 1]
    for weeks in (10, 5):
        text = plan(COURSE, weeks)
        assert all(folder.heading in text for folder in COURSE.lessons)
        assert f"## Week {weeks}" in text


def test_a_pack_replaces_nothing(tmp_path):
    done = CliRunner().invoke(app, ["teaching-pack", str(tmp_path)])
    assert done.exit_code != 0 and "is there already" in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_pack_is_whole(tmp_path):
    done = CliRunner().invoke(app, ["teaching-pack", str(tmp_path / "pack")])
    assert done.exit_code == 0, done.output
    index = (tmp_path / "pack" / "index.html").read_text()
    links = re.findall(r'href="([^"]+)"', index)
    assert len(links) > len(COURSE.lessons)
    assert all((tmp_path / "pack" / link).is_file() for link in links)


@pytest.mark.slow
@pytest.mark.skipif(not chromium(), reason="no Chromium")
@pytest.mark.parametrize("number", ["06", "15"])
def test_no_slide_overflows_or_needs_the_network(tmp_path, number):
    from playwright.sync_api import sync_playwright

    (tmp_path / "slides.html").write_text(slides_page(COURSE.lesson(number), COURSE)[0])
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
