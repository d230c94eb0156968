"""What a run keeps of its completions on the way: those that it learned from, once each."""

from itertools import pairwise

import pytest
from echo import by_length

from rlcourse.reports import read_metrics, read_run
from rlcourse.training import train
from rlcourse.training.measuring.keeping import GROUPS, KeptGroups, kept_steps


@pytest.mark.parametrize("total", [1, 5, 24, 25, 100, 1000])
def test_kept_steps_are_spread_over_the_run(total):
    steps = sorted(kept_steps(total))
    assert len(steps) == min(total, 24) and steps[0] == 1 and steps[-1] == total
    gaps = [b - a for a, b in pairwise(steps)]
    assert not gaps or max(gaps) - min(gaps) <= 1


@pytest.fixture
def seen(monkeypatch):
    """[(step, rollouts)] that a run was shown, besides what it kept."""
    shown, original = [], KeptGroups.__call__

    def keep(self, step, rollouts):
        shown.append((step, rollouts))
        original(self, step, rollouts)

    monkeypatch.setattr(KeptGroups, "__call__", keep)
    return shown


def test_what_is_kept_is_what_was_learned_from(tmp_path, policy, task, recipe, seen):
    train(recipe("grpo"), tmp_path / "run", policy=policy, task=task, progress=False)
    lines = read_metrics(tmp_path / "run/groups.jsonl")
    assert [line["step"] for line in lines] == [1, 2, 3, 4] == [step for step, _ in seen]
    for line, (_, rollouts) in zip(lines, seen, strict=True):
        kept = [one for group in line["groups"] for one in group["completions"]]
        rows = range(min(len(rollouts), GROUPS * rollouts.group_size))
        assert len(kept) == len(rows)
        expected = sorted(
            ("".join(policy.tokenizer.decode([t]) for t in rollouts.tokens[i][rollouts.mask[i]]),
             rollouts.rewards[i].item(), round(rollouts.advantages[i].item(), 4))
            for i in rows
        )  # fmt: skip
        assert expected == sorted(
            ("".join(one["tokens"]), one["reward"], round(one["advantage"][0], 4)) for one in kept
        )
    assert read_run(tmp_path / "run").kept_groups == lines


def test_every_token_has_its_advantage_where_they_differ(tmp_path, policy, task, recipe):
    options = {"policy": policy, "task": task, "reward": by_length, "progress": False}
    train(recipe("ppo"), tmp_path / "run", **options)
    kept = read_metrics(tmp_path / "run/groups.jsonl")[0]["groups"][0]["completions"]
    for one in kept:
        assert len(one["advantage"]) in (1, len(one["tokens"]))
    assert any(len(one["advantage"]) > 1 for one in kept)


@pytest.mark.parametrize(
    ("algorithm", "own"), [("sft", {}), ("dpo", {"beta": 0.1, "group_size": 8})]
)
def test_a_run_without_groups_keeps_none(tmp_path, policy, task, recipe, algorithm, own):
    options = {"policy": policy, "task": task, "reward": by_length, "progress": False}
    train(recipe(algorithm, **own), tmp_path / "run", **options)
    assert not (tmp_path / "run/groups.jsonl").exists()
    assert "rl-scrub" not in (tmp_path / "run/report.html").read_text("utf-8")
