"""Adapters learn, the weights under them do not, and what is saved is an ordinary model."""

import pytest
import torch
from echo import by_length, echo_policy, echo_recipe, echo_task, having

from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.policy.lora import WithoutAdapters, add_adapters, has_adapters, merge_adapters
from rlcourse.training import Pair, load_run, train, write_pairs

pytest.importorskip("peft")
LORA = {"rank": 4, "alpha": 8}


@pytest.fixture
def rollouts(policy):
    return policy.sample(["1 2?", "7?"], 4, 12, generator=torch.Generator().manual_seed(0))


def disturbed(policy):
    """Adapters that change something: B starts at zero."""
    add_adapters(policy, **LORA)
    for name, parameter in policy.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    return policy


def test_fresh_adapters_change_nothing_and_train_alone(policy, rollouts):
    before = policy.logprobs(rollouts).detach()
    total = sum(p.numel() for p in policy.parameters())
    add_adapters(policy, **LORA)
    torch.testing.assert_close(policy.logprobs(rollouts).detach(), before, rtol=0, atol=0)
    trained = [name for name, p in policy.named_parameters() if p.requires_grad]
    assert trained and all("lora_" in name for name in trained)
    assert sum(p.numel() for p in policy.parameters() if p.requires_grad) < total


def test_the_reference_is_the_policy_without_its_adapters(policy, rollouts):
    before = policy.logprobs(rollouts).detach()
    disturbed(policy)
    reference = WithoutAdapters(policy)
    assert (policy.logprobs(rollouts) - before).abs().max() > 0.01
    torch.testing.assert_close(reference.logprobs(rollouts), before)
    changed = policy.logprobs(rollouts)
    assert changed.requires_grad and (changed - before).abs().max() > 0.01  # they are back


def test_merging_makes_an_ordinary_model_that_does_the_same(policy, rollouts, tmp_path):
    names = [name for name, _ in policy.named_parameters()]
    expected = disturbed(policy).logprobs(rollouts).detach()
    merge_adapters(policy)
    assert not has_adapters(policy.model)
    assert [name for name, _ in policy.named_parameters()] == names
    torch.testing.assert_close(policy.logprobs(rollouts).detach(), expected, rtol=1e-4, atol=1e-5)
    assert not hasattr(policy.model, "peft_config")  # of which PEFT would warn the next time
    policy.save(tmp_path / "merged")
    loaded = Policy.load(tmp_path / "merged", device="cpu")
    torch.testing.assert_close(loaded.logprobs(rollouts).detach(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("algorithm", ["sft", "grpo", "dpo"])
def test_a_run_with_adapters_learns_keeps_little_and_saves_a_whole_model(algorithm, tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", [Pair(str(n), f"#### {n}", f"### {n}") for n in range(9)])
    own = having(algorithm, beta=0.05, pairs=str(tmp_path / "pairs.jsonl"))
    policy, task = echo_policy(), echo_task()
    recipe = echo_recipe(algorithm, lora=LORA, lr=2e-2, steps=6, **own)
    run = train(
        recipe, tmp_path / "run", policy=policy, task=task, reward=by_length, progress=False
    )
    assert not has_adapters(run.policy.model)
    moved = [
        (a - b).abs().max().item()
        for a, b in zip(run.policy.parameters(), policy.parameters(), strict=True)
    ]
    assert max(moved) > 1e-3
    saved = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    kept = torch.load(saved / "state.pt", weights_only=True)["weights"]
    assert kept and all("lora_" in name or "inv_freq" in name for name in kept)
    again = load_run(tmp_path / "run", device="cpu").policy
    for a, b in zip(again.parameters(), run.policy.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"rank": 0}, "lora.rank must be at least 1"),
        ({"rnak": 4}, "did you mean 'rank'"),
        ({"rank": 4, "alpha": "much"}, "lora.alpha must be a number"),
        ({"rank": 4, "targets": 7}, "lora.targets must be names"),
    ],
)
def test_wrong_adapters_are_refused(given, said):
    with pytest.raises(UserError, match=said):
        echo_recipe(lora=given)


def test_layers_that_are_not_there_are_named(policy):
    with pytest.raises(UserError, match="its linear layers are down_proj"):
        add_adapters(policy, 4, 8, ["no_such_layer"])
