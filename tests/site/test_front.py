"""What a stranger sees first is real: the check was run, the run trained."""

import sys
from pathlib import Path

import pytest

from rlcourse import published
from rlcourse.training import load_recipe
from rlcourse.training.recipes.recipe import Recipe

sys.path.insert(0, str(Path(__file__).parents[2] / "course/site"))
import front
import home
import run
import web


def test_a_wrong_word_is_named_and_the_right_one_passes():
    shown = front.named_mistake()
    assert not shown.wrong.passed and shown.wrong.mistake and shown.right.passed
    assert "the larger of the two terms" in shown.wrong.message


def test_the_pictures_are_what_the_check_says_and_the_run_did():
    """Otherwise: python course/site/front.py"""
    assert front.PICTURE.read_text("utf-8") == front.picture()
    readme = front.README.read_text("utf-8")
    assert front.described() in readme and front.with_description(readme) == readme


def test_every_lesson_but_the_first_declares_its_time():
    texts = sorted(Path(front.ROOT, "course/lessons").glob("*/lesson.md"))
    silent = [text.parent.name for text in texts if not home.TIME.search(text.read_text("utf-8"))]
    assert silent == ["00_start_here"] and 20 <= home.hours() <= 40


def test_the_recorded_run_is_one_of_today_s_recipe():
    """Otherwise: python course/site/run.py, then python course/site/front.py"""
    kept, today = run.recorded(), load_recipe("grpo", seed=0, eval_every=5)
    # A setting that is younger than the recording had its default there.
    assert Recipe.of(kept.recipe).to_dict() == today.to_dict() and kept.finished
    steps = [step for step, *_ in kept.held_out()]
    assert steps == list(range(0, today.steps + 1, 5))


@pytest.mark.parametrize(
    ("repository", "site"),
    [
        ("", ""),
        ("https://gitlab.com/some-one/a-course", ""),
        ("https://github.com/Some-One/a-course/", "https://some-one.github.io/a-course/"),
        ("https://github.com/some-one/some-one.github.io", "https://some-one.github.io/"),
    ],
)
def test_where_the_site_stands_follows_from_the_repository(repository, site):
    assert published.site(repository) == site
    assert ("Sitemap" in web.robots(site)) == bool(site)
