"""The interactive figures on their pages in Chromium: by keyboard, in every theme and width, or not
at all where no script runs."""

import json
import re
from pathlib import Path

import axe_playwright_python
import pytest
from shared import one_in

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
pytestmark = [pytest.mark.slow, pytest.mark.browser]

FIGURES = {
    "bandit": "02_policy_gradient",
    "baseline": "03_baselines",
    "weights": "04_importance_sampling",
    "clip": "05_ppo",
    "group": "06_grpo",
    "dpo": "09_dpo",
}


@pytest.fixture
def opened(browser, served):
    """opened(page's name, **context) → the page."""
    contexts = []

    def open_page(name: str, **options):
        contexts.append(browser.new_context(reduced_motion="reduce", **options))
        page = contexts[-1].new_page()
        page.goto(f"{served}/{name}.html")
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_moved_by_keyboard_and_set_back(opened, name):
    page = opened(f"lessons/{FIGURES[name]}")
    figure = page.locator(f"[data-figure={name}] section")
    figure.locator("svg").first.wait_for()
    says = figure.locator("p[role=status]")
    at_first, chart = says.inner_text(), figure.locator(".charts").inner_html()
    control = figure.locator("input[type=range], .switches button").first
    control.focus()
    page.keyboard.press("Space" if name == "group" else "ArrowRight")
    assert says.inner_text() != at_first
    assert figure.locator(".charts").inner_html() != chart
    figure.get_by_role("button", name="Reset").click()
    assert says.inner_text() == at_first
    for slider in figure.get_by_role("slider").all():
        assert slider.get_attribute("aria-valuetext")


@pytest.mark.parametrize(
    ("width", "theme", "some"),
    [
        (1400, "light", list(FIGURES)[::2]),
        (390, "dark", list(FIGURES)[1::2]),
        pytest.param(1400, "light", list(FIGURES)[1::2], marks=pytest.mark.weekly),
        pytest.param(390, "dark", list(FIGURES)[::2], marks=pytest.mark.weekly),
    ],
)
def test_figures_are_legible_and_fit(opened, width, theme, some):
    found = {}
    for name in some:
        options = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
        page = opened(f"lessons/{FIGURES[name]}", **options)
        page.locator(f"[data-figure={name}] svg").first.wait_for()
        page.evaluate(AXE)
        run = f"axe.run('[data-figure={name}]', {{resultTypes: ['violations']}})"
        violations = json.loads(page.evaluate(f"{run}.then(r => JSON.stringify(r.violations))"))
        wide = page.evaluate("document.documentElement.scrollWidth")
        if violations or wide > width:
            found[name] = [v["id"] for v in violations] + [f"{wide} pixels"]
        page.close()
    assert not found


@pytest.mark.parametrize("name", one_in(6, FIGURES))
def test_the_static_picture_is_folded_and_without_javascript_open(opened, name):
    with_script = opened(f"lessons/{FIGURES[name]}")
    with_script.locator(f"[data-figure={name}] svg").first.wait_for()
    picture = with_script.locator(f"[data-figure={name}] > details img").first
    assert not picture.is_visible()
    with_script.get_by_text("The picture that the cell draws").click()
    picture.wait_for(state="visible")  # once it is loaded
    without = opened(f"lessons/{FIGURES[name]}", java_script_enabled=False)
    without.locator(f"[data-figure={name}] > details img").first.wait_for(state="visible")
    assert without.locator("section.figure").count() == 0


@pytest.mark.parametrize("nth", [0, 1])
def test_a_recorded_run_is_scrubbed_and_played(opened, nth):
    page = opened("recorded-run")
    run = page.locator(".rl-scrub").nth(nth)
    slider, question = run.get_by_role("slider", name="Step"), run.locator(".question")
    boxes = run.locator("li")
    first = boxes.all_inner_texts()
    assert len(first) == 8
    slider.focus()
    page.keyboard.press("End")
    step, total = map(int, re.findall(r"\d+", run.locator("output").inner_text()))
    assert step == total and boxes.all_inner_texts() != first
    assert slider.get_attribute("aria-valuetext").startswith(f"step {step}, mean reward 0.")
    run.get_by_role("button", name="Play").click()
    moved = "nth => document.querySelectorAll('.rl-scrub input[type=range]')[nth].value === '2'"
    page.wait_for_function(moved, arg=nth)
    run.get_by_role("button", name="Pause").click()
    run.get_by_role("radio", name="2").check()
    other = question.inner_text()
    run.get_by_role("radio", name="1").check()
    assert question.inner_text() != other


def test_without_javascript_the_recorded_runs_are_tables(opened):
    page = opened("recorded-run", java_script_enabled=False)
    assert page.locator(".rl-scrub table").first.locator("tbody tr").count() == 24
    assert page.locator(".rl-scrub table").count() == 2
