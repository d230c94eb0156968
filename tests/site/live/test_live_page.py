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


@pytest.mark.weekly
def test_it_trains_in_the_tab(opened, site):
    """A step is pressed by keyboard; a second run leaves the first behind as a dashed line."""
    need_jax(site)
    page = opened()
    page.focus("#step")
    page.keyboard.press("Enter")
    of = "document.getElementById('of').textContent"
    sampled = f"{of}.startsWith('Step 1, being sampled now, not judged yet')"
    judged = "document.querySelector('#group li.right, #group li.wrong')"
    written = "document.querySelector('#group code').textContent"
    page.wait_for_function(f"{sampled} && {written} && !{judged}")  # at one moment
    page.wait_for_function(f"{of}.startsWith('Step 1, judged: ')")
    assert page.locator("#group li.right, #group li.wrong").count() == 8
    assert re.match(r"About \d+\.\d s a step on your machine, ", page.inner_text("#state"))
    assert page.get_attribute("#save", "aria-disabled") == "true"
    wait_for_step(page, 1)
    assert "What GRPO did in one step. The model wrote 32 answers" in page.inner_text("#did")
    page.click("#run")
    assert "s a step on the processor" in wait_for_step(page, 5)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "run"
    assert re.fullmatch(r"Step 5: held-out accuracy \.\d\d\.", page.inner_text("#said"))
    tinted = page.locator("#group .likelier, #group .rarer").count()
    weights = page.locator("#group .weight").all_inner_texts()
    assert tinted if any(weight != "+0.00" for weight in weights) else not tinted
    page.wait_for_selector("#step[aria-disabled=false]", timeout=60_000)
    with page.expect_download() as saved:
        page.click("#save")
    assert saved.value.suggested_filename == "train-one-grpo-seed-0.png"
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    page.click("#knobs-more summary")
    page.select_option("#algorithm", "dr_grpo")
    assert page.inner_text("#state") == "New settings: press Train."
    assert page.locator("path.ghost").get_attribute("d")


def test_a_fault_is_drawn_beside_the_healthy_run_of_its_seed(opened, site):
    """Recorded where the page has it; trained along, step by step, where it has not."""
    need_jax(site)
    page = opened("?fault=stale_sampler")
    for fault, link in (("max_for_min", "05_ppo"), ("stale_sampler", "10_debugging")):
        page.check(f"[name=fault][value={fault}]")
        assert page.inner_text(".of-ghost") == "healthy, same seed (recorded)"
        beside = page.locator(f".faults label:has([value={fault}])")
        assert beside.locator(f"a[href*='{link}']").count() == 1
    page.goto(f"{page.url.partition('?')[0]}?fault=sign_turned&seed=3")
    page.click("#step")
    wait_for_step(page, 1)
    assert page.inner_text(".of-ghost") == "healthy, same seed, trained beside it"
    assert "What GRPO, broken, did in one step." in page.inner_text("#did")


def test_a_loss_of_ones_own_is_judged_as_it_is_typed_and_trains(opened, site):
    """It sees nothing of the page, and a loop without end is ended."""
    need_jax(site)
    page = opened()
    page.click("#own summary")
    text = page.locator("#loss")
    right = text.input_value()

    def says(text_of_loss: str, said: str) -> None:
        text.fill(text_of_loss)
        page.locator("#verdict", has_text=said).wait_for(timeout=60_000)

    page.locator("#verdict", has_text="Right on every case.").wait_for()
    for prison in ("[].map.constructor('return self')()", "eval.call(0, '1')", "self.fetch('x')"):
        says(f"return {prison}", "It stops on the case")
    says("for (;;);", "It has not come to an end in two seconds")
    says(right.replace("-total", "total"), "the objective, not the loss: the sign is missing")
    assert page.locator("#verdict tbody tr").count() == 3
    page.click("#use")
    page.click("#step")
    wait_for_step(page, 1)
    assert "What your loss did in one step." in page.inner_text("#did")
    best, worst = page.locator("#group .right code"), page.locator("#group .wrong code")
    assert best.locator(".rarer").count() and worst.locator(".likelier").count()


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


def test_every_fault_links_to_a_section_that_there_is(soups):
    text = Path(build.HERE, "settings.js").read_text("utf-8")
    links = re.findall(r'section\("(\w+)", "([\w-]+)"', text)
    assert len(links) == 5  # one of them for two faults
    for page, anchor in links:
        assert soups[f"lessons/{page}.html"].find(id=anchor), (page, anchor)


def test_without_node_the_page_says_so_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    said = build.write_files(tmp_path)
    assert re.fullmatch(r"npm is not installed, so .* build again\.", said) and ". " not in said
    assert (tmp_path / "recorded.json").is_file()
