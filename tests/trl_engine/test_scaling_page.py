"""Every command of course/scaling.md names recipes, settings and files that exist."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from rlcourse.planning.plan import plan
from rlcourse.planning.timing import KERNELS, KERNELS_OUTSIDE, LAUNCH
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
    assert len(COMMANDS) == 8
    for file in (ROOT / "course" / "accelerate").iterdir():
        assert f"`{file.name}`" in PAGE


def test_settings_that_the_page_shows_exist():
    """In tables and in prose."""
    shown = set(re.findall(r"--trl ([a-z_]+)=|`(vllm_[a-z_]+)", PAGE))
    known = trl.GRPOConfig.__dataclass_fields__
    assert {name for pair in shown for name in pair if name} <= set(known)
    for text in re.findall(r"^\| `([a-z_]+=.*?)` \|", PAGE, re.M):
        load_recipe("grpo", **parse_overrides([text]))


@pytest.mark.parametrize("static_cache, gpus", [(False, 1), (False, 8), (True, 1)])
def test_the_count_of_why_vllm_comes_first_is_that_of_plans(static_cache, gpus):
    recipe = load_recipe("gsm8k_grpo", prompts_per_step=8, static_cache=static_cache)
    found = plan(recipe, "A100-40GB")
    (fit,) = found.fits
    writing = sum(line.amount for line in fit.step if line.name == "sampling")
    updating = sum(line.amount for line in fit.step if line.name != "sampling") / gpus
    rows = recipe.prompts_per_step * recipe.group_size
    assert rows == 64 and found.work.lengths.completion == 300
    told = f"| {writing:.2f} s | {updating:.2f} s | {rows / (writing + updating):.1f} |"
    assert f"{gpus} GPU{'s' if gpus > 1 else ''} {told}" in PAGE
    kernels = found.work.shape.layers * KERNELS[False] + KERNELS_OUTSIDE
    assert f"{kernels:,} kernels of {1e6 * LAUNCH:.0f} microseconds" in PAGE
