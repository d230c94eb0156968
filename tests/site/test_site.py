"""The site: built from what is there, self-contained, legible for everyone at every width.

Some pages are looked at in Chromium, and every page with ``--every-page``.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from rlcourse import exercises

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LESSONS = sorted(path.stem for path in (ROOT / "solutions").glob("*.ipynb"))
SOME = ["index.html", "course/map.html", "lessons/06_grpo.html", "reference/algorithms.html"]
SOME += ["recorded-run.html", "train-one.html"]


def test_every_link_leads_somewhere(site, soups):
    """Files and places on pages, of links as of pictures."""
    ids = {page: {tag["id"] for tag in soup.find_all(id=True)} for page, soup in soups.items()}
    broken = []
    for page, soup in soups.items():
        for tag in soup.find_all(["a", "img", "link", "script"]):
            address = urlsplit(tag.get("href") or tag.get("src") or "")
            if address.scheme or address.netloc:
                continue
            path = (site / page).parent / unquote(address.path) if address.path else site / page
            name = os.path.relpath(path, site)
            if not path.is_file() or (
                address.fragment and name in ids and unquote(address.fragment) not in ids[name]
            ):
                broken.append(f"{page}: {address.geturl()}")
    assert not broken


def test_pages_load_nothing_from_elsewhere(site, soups):
    for page, soup in soups.items():
        loaded = [tag["src"] for tag in soup.find_all(src=True)]
        links = soup.find_all("link")
        loaded += [tag["href"] for tag in links if tag["rel"] != ["canonical"]]
        assert not [name for name in loaded if urlsplit(name).netloc], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", sheet.read_text("utf-8")), sheet


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_is_open_and_its_answers_are_not(soups, lesson):
    """Opens on Colab; as many stubs as exercises, hints folded; what is drawn is described. In the
    other of its two states the functions are written, and each check says so."""
    page, solutions = soups[f"lessons/{lesson}.html"], soups[f"solutions/{lesson}.html"]
    opened = [a["href"] for a in page.find_all("a", string="Open in Colab")]
    notebook = f"some-one/a-course/blob/main/notebooks/{lesson}/{lesson}.ipynb"
    assert opened == [f"https://colab.research.google.com/github/{notebook}"]
    mine = [exercise for exercise in exercises.all(contests=True) if exercise.lesson == lesson]
    assert mine
    stubs = [pre for pre in page.find_all("pre") if "raise NotImplementedError" in pre.text]
    assert len(stubs) == len(mine)
    assert len([pre for pre in page.select(".start pre") if pre in stubs]) == len(mine)
    assert len(page.select(".solved > details:not([open]) pre")) >= len(mine)
    checks = [box for box in page.select(".solved .shown") if "✓" in box.text]
    assert len(checks) >= len(mine) and not page.select(".start .shown")
    assert [radio["id"] for radio in page.select(".states input[checked]")] == ["as-solved"]
    hints = page.select(".hints details")
    assert len(hints) == sum(len(exercise.hints) for exercise in mine)
    assert not [hint for hint in hints if hint.has_attr("open")]
    for exercise in mine:
        assert solutions.find(id=exercise.name.replace("_", "-")), exercise.name
    assert "raise NotImplementedError" not in solutions.text
    for picture in page.select(".shown img"):
        assert len(picture["alt"]) > 10
        assert int(picture["width"]) and int(picture["height"])  # else a link to below it misses


def test_every_formula_is_drawn_when_the_site_is_built(soups):
    formulas = [tag for soup in soups.values() for tag in soup.select(".math")]
    assert len(formulas) > 500
    assert not [tag.text for tag in formulas if tag.code or not tag.math]


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "theme", "some"),
    [
        (1400, "light", SOME[::2]),
        (390, "dark", SOME[1::2]),
        pytest.param(1400, "light", SOME[1::2], marks=pytest.mark.weekly),
        pytest.param(390, "dark", SOME[::2], marks=pytest.mark.weekly),
    ],
)
def test_pages_are_whole_and_legible(
    request, browser, served, faults_of, soups, width, theme, some
):
    """No request to elsewhere, no error, no formula that fails, no serious finding of axe."""
    every = request.config.getoption("--every-page")
    themes = ("light", "dark") if every else (theme,)
    found = {}
    for scheme in themes:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        for name in soups if every else some:
            page = context.new_page()
            if faults := faults_of(page, f"{served}/{name}", width):
                found[f"{name}, {scheme}"] = faults
            page.close()
        context.close()
    assert not found, json.dumps(found, indent=1)


SOUGHT = {
    **{"reinforce": "02", "policy gradient": "02", "rloo": "03", "baseline": "03", "kl": "04"},
    **{"importance weights": "04", "ppo": "05", "grpo": "06", "grpo advantage": "06", "dapo": "07"},
    **{"reward model": "08", "dpo": "09", "dpo advantage": "09", "gsm8k": "11"},
}


def test_the_search_finds_a_lesson_first_by_what_people_type(site):
    """The site's own search and index, in Node.js."""
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")
    command = ["node", Path(__file__).with_name("search.mjs"), site, *SOUGHT]
    first = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert first and [page[:10] for page in first] == [f"lessons/{n}" for n in SOUGHT.values()]


def test_the_page_of_the_search_has_a_field_of_its_own(soups):
    """On a phone the theme's field is in the list of pages, which is folded away."""
    page = soups["search.html"]
    assert page.h1.text == "Search"
    assert page.select("article form input[name=q]")
