"""The site from outside: what it says of itself, how heavy it is, and its first page."""

from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SITE = "https://some-one.github.io/a-course/"  # of the address that conftest.py publishes
LESSONS = sorted(path.stem for path in (ROOT / "solutions").glob("*.ipynb"))
BY_OTHERS = {"run.html"}  # a report, as `rlcourse train` writes it


def test_every_page_says_what_it_is(soups):
    """To a reader, to a search engine and to who gets a link; lessons each in their own words."""
    for name, page in soups.items():
        if name in BY_OTHERS:
            continue
        assert page.html["lang"] and page.title.text.strip(), name
        assert page.find("h1") or name == "search.html", name  # whose heading a script writes
        assert "width=device-width" in page.find("meta", {"name": "viewport"})["content"], name
        said = page.find("meta", {"name": "description"})["content"]
        assert 20 <= len(said) <= 170 and "<" not in said, (name, said)
        if name != "404.html":
            assert page.find("meta", property="og:description")["content"] == said
    lessons = [soups[f"lessons/{lesson}.html"] for lesson in LESSONS]
    said = {page.find("meta", {"name": "description"})["content"] for page in lessons}
    assert len(said) == len(lessons)


def test_addresses_are_absolute_where_it_is_known_where_the_site_stands(site, soups):
    for name in ("index.html", "lessons/06_grpo.html"):
        page = soups[name]
        assert page.find("link", rel="canonical")["href"] == SITE + name
        picture = page.find("meta", property="og:image")["content"]
        assert picture.startswith(SITE) and (site / picture.removeprefix(SITE)).is_file()
    listed = ElementTree.parse(site / "sitemap.xml").getroot().findall("{*}url/{*}loc")
    pages = {address.text.removeprefix(SITE) for address in listed}
    assert {"index.html", "course/map.html"} <= pages and all((site / p).is_file() for p in pages)
    assert {f"lessons/{lesson}.html" for lesson in LESSONS} <= pages
    assert f"Sitemap: {SITE}sitemap.xml" in (site / "robots.txt").read_text("utf-8")
    assert f'href="{SITE}index.html"' in (site / "404.html").read_text("utf-8")  # at any depth


def test_the_home_page_leads_to_every_lesson_and_to_the_run(soups):
    home = soups["index.html"]
    cards = home.select(".cards a")
    assert [Path(card["href"]).stem for card in cards] == LESSONS
    assert [card for card in cards if card.img] == cards[1:]  # lesson 00 draws nothing
    assert all(int(card.img["width"]) > 0 for card in cards[1:])
    actions = [a["href"] for a in home.select(".actions a")]
    assert actions[:2] == [f"lessons/{LESSONS[0]}.html", "train-one.html"]
    assert "colab.research.google.com" in actions[2]
    assert home.find("a", href="run.html") and soups["run.html"].find("a", href="index.html")
    assert "hours" in [fact.text.split()[1] for fact in home.select(".facts li")]
    assert all(soup.find("link", rel="icon") for soup in soups.values())


@pytest.mark.browser
def test_pages_are_light(site, browser, served):
    """What they load, as it lies on the disk, before a server compresses it; without pictures."""
    limits = {"index.html": 300_000, "lessons/06_grpo.html": 600_000}
    heavy = {}
    for name, limit in limits.items():
        asked, page = set(), browser.new_page()
        page.on("request", lambda request, asked=asked: asked.add(urlsplit(request.url).path))
        page.goto(f"{served}/{name}", wait_until="networkidle")
        page.close()
        files = [site / path.lstrip("/") for path in asked]
        weight = sum(f.stat().st_size for f in files if f.suffix != ".png")
        if not 10_000 < weight < limit:
            heavy[name] = weight
    assert not heavy


@pytest.mark.browser
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_home_page_is_whole_without_javascript_and_moves_for_five_seconds_at_most(
    browser, served, motion
):
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, java_script_enabled=False, reduced_motion=motion
    )
    page = context.new_page()
    page.goto(f"{served}/index.html")
    length = page.evaluate(
        "Math.max(0, ...document.getAnimations().map(a => a.effect.getComputedTiming().endTime))"
    )
    assert (length == 0) if motion == "reduce" else (0 < length <= 5000)
    page.wait_for_timeout(length)
    steps = page.query_selector_all(".named li")
    assert [step.evaluate("e => getComputedStyle(e).opacity") for step in steps] == ["1"] * 3
    said = page.inner_text(".named")
    assert "✗ ppo_clip_loss" in said and "the larger of the two terms" in said
    for part in (".lede", ".actions a", ".facts"):  # what it is, what to click, what it takes
        place = page.locator(part).first.bounding_box()
        assert place["y"] + place["height"] < 844, part  # on the first screen
    context.close()
