"""The proof: every mistake is named, every alternative passes, every stub fails."""

import pytest

from rlcourse.checks.proving.proof import prove
from rlcourse.exercises import all as every
from rlcourse.exercises import get

# Many mistakes, or calls that draw samples.
LONG = [
    "aggregate", "backtracking_line_search", "bootstrap_interval", "cispo_loss", "dapo_loss",
    "decoupled_loss", "dpo_loss", "dr_grpo_loss", "gae", "grpo_loss", "grpo_step",
    "gspo_loss", "importance_weights", "kl_divergence", "off_policy_loss", "ppo_clip_loss",
    "sample_tokens", "truncated_weights",
]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(exercise.name, marks=[pytest.mark.slow] if exercise.name in LONG else [])
        for exercise in every()
    ],
)
def test_every_mistake_is_named_every_alternative_passes_and_the_stub_fails(name, seeds):
    wrong = [row for row in prove([get(name)], seeds) if not row.ok]
    assert not wrong, wrong[0]
