"""The page "Train one" in Chromium: it trains, it is legible, and it says what it cannot do."""

import re
import shutil
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from rlcourse.training.recipes.recipe import load_recipe

pytestmark = [pytest.mark.slow, pytest.mark.browser]
sys.path.insert(0, str(Path(__file__).parents[3] / "course/site"))
from live import build  # noqa: E402


@pytest.fixture
def opened(browser, served):
    """opened(query, before, **context) → the page, after a script that prepares it."""
    contexts = []

    def open_page(query: str = "", before: str = "", **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.add_init_script(before)
        page.goto(f"{served}/train-one.html{query}")
        return page

    yield open_page
    for context in contexts:
        context.close()


def wait_for_step(page, step: int) -> str:
    said = f"document.getElementById('state').textContent.startsWith('Step {step} of')"
    page.wait_for_function(said, timeout=300_000)
    return page.inner_text("#state")


def need_jax(site):
    if not (site / "live/jax/index.js").is_file():
        pytest.skip("the site was built without npm")


def test_it_trains_in_the_tab(opened, site):
    """A step is pressed by keyboard; a second run leaves the first behind as a dashed line."""
    need_jax(site)
    page = opened()
    page.focus("#step")
    page.keyboard.press("Enter")
    wait_for_step(page, 1)
    assert page.locator("#group li.right, #group li.wrong").count() == 8
    page.click("#run")
    assert "by Wasm" in wait_for_step(page, 5)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "run"
    assert re.fullmatch(r"Step 5: held-out accuracy \.\d\d\.", page.inner_text("#said"))
    tinted = page.locator("#group .likelier, #group .rarer").count()
    weights = page.locator("#group .weight").all_inner_texts()
    assert tinted if any(weight != "+0.00" for weight in weights) else not tinted
    page.wait_for_selector("#step[aria-disabled=false]", timeout=60_000)
    page.select_option("#algorithm", "dr_grpo")
    assert page.inner_text("#state") == "New settings: press Train."
    assert page.locator("path.ghost").get_attribute("d")


def test_a_machine_that_cannot_train_plays_the_recorded_run(opened):
    page = opened(before="delete window.Worker")
    page.click("#step")
    assert wait_for_step(page, 1) == "Step 1 of 40 · a recorded run"


def test_without_javascript_the_recorded_run_is_a_table(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("#recorded tbody tr").count() == 9
    assert page.is_visible("#recorded") and not page.is_visible("#live .app")


def test_opened_as_a_file_it_shows_that_table_and_says_what_to_run(opened, browser, site):
    page = opened()
    page.wait_for_selector("#run")
    assert not page.is_visible("#recorded")
    page = browser.new_page()
    page.goto(Path(site, "train-one.html").as_uri())
    page.wait_for_selector("#recorded")
    assert "run python -m http.server in the folder of the site" in page.inner_text("#recorded")
    page.close()


def test_the_address_holds_the_settings_and_the_line_is_a_recipe(opened):
    """With every algorithm and fault, all knobs turned, `rlcourse train` would take the line."""
    page = opened("?algorithm=rloo&seed=3&lr=nonsense")
    assert page.input_value("#algorithm") == "rloo"
    assert page.input_value("#lr") == "0.0003"
    assert "lr=nonsense" in page.inner_text("#state")
    page = opened("?algorithm=rloo&seed=3&group_size=7&lr=.5&clip=0.20")
    assert (page.input_value("#group_size"), page.input_value("#lr")) == ("8", "0.003")
    said = page.inner_text("#state")
    assert "group_size=7" in said and "lr=.5" in said and "clip" not in said
    page.select_option("#algorithm", "grpo")
    for name, value in {"group_size": "4", "num_iterations": "2", "clip": "0.5"}.items():
        page.select_option(f"#{name}", value)
    page.select_option("#beta", "0.04")
    for algorithm in ("reinforce", "rloo", "grpo", "dr_grpo"):
        page.select_option("#algorithm", algorithm)
        for fault in page.locator("[name=fault]").all():
            if fault.is_enabled():
                fault.check()
                _, _, name, *words = page.inner_text("#command").split()
                recipe = load_recipe(name, **dict(word.split("=") for word in words))
                assert (recipe.algorithm, recipe.seed) == (algorithm, 3)
                assert recipe.prompts_per_step * recipe.group_size == 32
    held = parse_qs(urlsplit(page.url).query)
    assert held["group_size"] == ["4"]
    assert page.evaluate("document.getElementById('link').search") == urlsplit(page.url).query.join(
        ["?", ""]
    )


def test_without_node_the_page_says_so_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    said = build.write_files(tmp_path)
    assert re.fullmatch(r"npm is not installed, so .* build again\.", said) and ". " not in said
    assert (tmp_path / "recorded.json").is_file()
