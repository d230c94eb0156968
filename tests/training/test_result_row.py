"""`rlcourse report --row`: a run as a row that can be sent in, and the page that asks for it."""

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.errors import UserError
from rlcourse.training import load_recipe
from rlcourse.training.runs.row import HEAD, result_row, told

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "course" / "reproduce.md").read_text("utf-8")
PUBLISHED = "gsm8k_smollm2_1.7b_published"


def measured(value):
    return {"value": value, "low": value - 0.01, "high": value + 0.01}


@pytest.fixture
def finished(tmp_path):
    """The directory of a run, as far as the row reads it."""
    recipe = load_recipe(PUBLISHED, seed=43, micro_batch=2, data=str(tmp_path / "gsm8k"))
    (tmp_path / "recipe.yaml").write_text(recipe.to_yaml())
    evaluations = {
        when: {
            "problems": 1319,
            "samples": 8,
            "accuracy": measured(value),
            "sampled_accuracy": measured(value + 0.1),
            "sampled_format_reward": measured(value + 0.2),
        }
        for when, value in (("before", 0.2), ("after", 0.4))
    }
    facts = {
        "versions": {"python": "3.11", "rlcourse": "1", "torch": "2", "transformers": "5"},
        "hardware": {"processor": "some", "device": "cuda:0", "gpu": "A100, 40 GiB"},
    }
    (tmp_path / "result.json").write_text(json.dumps(evaluations | facts))
    return tmp_path


def test_a_row_has_recipe_figures_and_machine(finished):
    head, rule, row = result_row(finished).splitlines()
    assert head.count("|") == rule.count("|") == row.count("|") == len(HEAD) + 1
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        f"`{PUBLISHED}` `micro_batch=2`",
        "43",
        "0.3000 [0.2900, 0.3100] → 0.5000 [0.4900, 0.5100]",
        "0.4000 [0.3900, 0.4100] → 0.6000 [0.5900, 0.6100]",
        "0.2000 [0.1900, 0.2100] → 0.4000 [0.3900, 0.4100]",
        "1,319 x 8",
        "A100, 40 GiB, rlcourse 1, torch 2, transformers 5",
    ]


def test_no_path_of_somebodys_machine_is_sent(finished):
    text = (finished / "recipe.yaml").read_text()
    changed = yaml.safe_load(text) | {"policy": str(finished / "models" / "own" / "policy")}
    (finished / "recipe.yaml").write_text(yaml.safe_dump(changed))
    assert str(finished) not in result_row(finished)
    assert "`policy=own`" in result_row(finished)


@pytest.mark.parametrize("name", [PUBLISHED, f"{PUBLISHED}_shuffled", "gsm8k_class", "ppo"])
def test_a_shipped_recipe_is_the_nearest_to_itself(name):
    assert told(load_recipe(name)) == f"`{name}`"


def test_what_has_no_row_is_said(finished, tmp_path):
    with pytest.raises(UserError, match="holds no finished run"):
        result_row(tmp_path / "nowhere")
    found = json.loads((finished / "result.json").read_text())
    (finished / "result.json").write_text(json.dumps(found | {"before": None}))
    with pytest.raises(UserError, match="no evaluations before and after"):
        result_row(finished)


def test_the_command_prints_it(finished):
    done = CliRunner().invoke(app, ["report", str(finished), "--row"])
    assert done.exit_code == 0 and done.stdout.strip() == result_row(finished)


def test_the_page_has_the_figures_of_the_recipes_heads_and_commands_that_start():
    guide = (ROOT / "course" / "gsm8k.md").read_text("utf-8")
    ours = set(re.findall(r"\| (\.\d{4}) \| (\.\d{4}) \|", PAGE))
    theirs = set(re.findall(r"\| 0(\.\d{4}) \| 0(\.\d{4}) \|", guide))
    assert len(ours) == 5 and ours == theirs
    for command in re.findall(r"rlcourse train (\S+)((?: \w+=\S+)*)", PAGE):
        name, settings = command
        load_recipe(name, **dict(text.split("=") for text in settings.split()))
