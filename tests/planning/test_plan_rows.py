"""A plan says how many rows a step could have, and how many of them fit at once."""

import pytest

from rlcourse.planning.memory import memory_of
from rlcourse.planning.plan import USABLE, plan, plan_table
from rlcourse.planning.rows import WORTHWHILE
from rlcourse.planning.timing import GPUS
from rlcourse.planning.work import work_of
from rlcourse.training import load_recipe


@pytest.mark.parametrize("name", ["gsm8k_grpo", "gsm8k_t4", "gsm8k_sft", "gsm8k_ppo", "gsm8k_dpo"])
@pytest.mark.parametrize("gpu", ["T4", "L4", "A100-80GB"])
def test_each_size_fits_with_the_largest_micro_batch(name, gpu):
    (fit,) = plan(name, gpu).fits
    usable = USABLE * GPUS[gpu].memory * 1e9
    assert bool(fit.rows) == (fit.changes is not None)
    changed = load_recipe(name).but(**fit.changes or {})
    for one in fit.rows:
        recipe = changed.but(prompts_per_step=one.prompts_per_step)
        work = work_of(recipe.but(micro_batch=one.micro_batch))
        assert memory_of(work).peak == one.peak <= usable
        assert one.rows == work.rows * work.minibatches
        if one.micro_batch < work.rows:
            larger = work_of(recipe.but(micro_batch=2 * one.micro_batch))
            assert memory_of(larger).peak > usable
    sizes = [one.prompts_per_step for one in fit.rows]
    assert sizes == [changed.prompts_per_step * 2**i for i in range(len(sizes))]


def test_the_list_ends_where_more_rows_gain_little():
    (fit,) = plan("gsm8k_grpo", "A100-40GB").fits
    gains = [b.rate / a.rate for a, b in zip(fit.rows, fit.rows[1:], strict=False)]
    assert len(gains) > 1 and all(gain >= WORTHWHILE for gain in gains[:-1])
    assert gains[-1] < WORTHWHILE


def test_the_table_shows_the_sizes_and_whose_decision_they_are():
    table = plan_table(plan("gsm8k_grpo", "A100-40GB"))
    assert "Rows of a step that fit A100-40GB" in table
    assert "prompts_per_step is another experiment" in table
    assert len(plan("gsm8k_grpo", "L4").to_dict()["gpus"][0]["rows"]) > 1
