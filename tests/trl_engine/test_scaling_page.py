"""Every command of course/scaling.md names recipes, settings and files that exist."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from rlcourse.training import load_recipe, parse_overrides
from rlcourse.trl_engine.settings import (
    Batches,
    parse_settings,
    require_free,
    require_possible,
    trl_arguments,
)

trl = pytest.importorskip("trl", reason="the extra `trl` is not installed")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "course" / "scaling.md").read_text("utf-8")
BLOCKS = [block.replace("\\\n", " ") for block in re.findall(r"```bash\n(.*?)```", PAGE, re.S)]
COMMANDS = [
    line
    for block in BLOCKS
    for line in block.replace("'", "").splitlines()
    if "rlcourse train" in line
]


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line[-40:])
def test_a_command_of_the_page_would_start(line):
    words = shlex.split(line)
    after = words[words.index("train") + 1 :]
    options = {flag: i for i, flag in enumerate(words)}
    assert "--engine" in after and "--out" in after
    settings = [after[i + 1] for i, word in enumerate(after) if word == "--trl"]
    overrides = [word for before, word in pairwise(after) if "=" in word and before != "--trl"]
    recipe = load_recipe(after[0], **parse_overrides(overrides))
    processes = int(words[options["--num_processes"] + 1]) if "--num_processes" in options else 1
    require_possible(recipe)
    Batches.of(recipe, processes)
    require_free(parse_settings(settings), trl_arguments(recipe, processes), trl.GRPOConfig)
    if "--config_file" in options:
        assert (ROOT / words[options["--config_file"] + 1]).is_file()


def test_the_page_has_a_command_for_each_way():
    assert len(COMMANDS) == 9
    for file in (ROOT / "course" / "accelerate").iterdir():
        assert f"`{file.name}`" in PAGE


def test_settings_that_the_page_shows_exist():
    """In tables and in prose."""
    shown = set(re.findall(r"--trl ([a-z_]+)=|`(vllm_[a-z_]+)", PAGE))
    known = trl.GRPOConfig.__dataclass_fields__
    assert {name for pair in shown for name in pair if name} <= set(known)
    for text in re.findall(r"^\| `([a-z_]+=.*?)` \|", PAGE, re.M):
        load_recipe("grpo", **parse_overrides([text]))
