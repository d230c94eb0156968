"""The echo policy and task as files, and TRL with the local engine's own completions.

What the two engines sample differs, because they draw differently. Given the same completions,
everything after them is held to be the same: rewards, advantages, loss, gradient, clipping, AdamW,
learning rate. So the weights after some steps are.
"""

import json
from pathlib import Path

import torch
from echo import echo_policy, echo_recipe, echo_task

from rlcourse.policy import Policy
from rlcourse.seeds import derived_generator
from rlcourse.training.data.batches import problems_of_step
from rlcourse.training.data.scoring import sampled


def write_echo(directory: Path) -> dict:
    """Files of the echo policy and of its task; the recipe's fields that name them."""
    echo_policy().save(directory / "echo_policy")
    task = directory / "echo_task"
    task.mkdir()
    lines = [json.dumps({"question": p.question, "answer": p.answer}) for p in echo_task().train]
    for name in ("train.jsonl", "test.jsonl"):
        (task / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"policy": str(directory / "echo_policy"), "task": str(task)}


def recipe_of(places: dict, algorithm: str = "grpo", **changes):
    """The echo recipe on these files, with every part of the optimizer doing something."""
    values = {"max_grad_norm": 0.5, "weight_decay": 0.1, "schedule": "linear", "warmup": 1}
    values |= {"prompts_per_step": 4, "eval_problems": 0, "checkpoint_every": 0}
    return echo_recipe(algorithm, **(values | places | changes))


def digits_reward(completions, answers, extract=None) -> torch.Tensor:
    """A reward that a random policy earns in many different amounts."""
    return torch.tensor([sum(map(str.isdigit, text)) / 8 for text in completions])


def reward_digits(monkeypatch) -> None:
    """`digits_reward` in place of correctness, in both engines."""
    for module in ("rlcourse.training.data.scoring", "rlcourse.trl_engine.rewards"):
        monkeypatch.setattr(f"{module}.correctness_reward", digits_reward)


def local_completions(recipe, task) -> "callable":
    """What TRL is to take for sampling: this process's share of what the local engine draws."""

    def generate(self, prompt_ids, *unused):
        step = self.state.global_step // (recipe.num_iterations * recipe.minibatches)
        policy = Policy(self.accelerator.unwrap_model(self.model), self.processing_class)
        problems = problems_of_step(task.train, recipe.prompts_per_step, step, recipe.seed)
        generator = derived_generator(policy.device, recipe.seed, "step", step)
        rollouts = sampled(policy, problems, recipe, generator)
        share = len(prompt_ids) * self.accelerator.process_index
        tokens = [row[real].tolist() for row, real in zip(rollouts.tokens, rollouts.mask)]  # noqa: B905
        completions = tokens[share : share + len(prompt_ids)]
        return (completions, None) if type(self).__name__ == "GRPOTrainer" else completions

    return generate


def assert_same_weights(one, other, start) -> None:
    """The way from one to the other is rounding, next to the way that both came from `start`.

    Of all weights together: AdamW makes a step of the learning rate's length even of a gradient
    that is all rounding, so single weights may differ.
    """
    theirs, first = (dict(module.named_parameters()) for module in (other, start))
    apart, moved = [], []
    for name, weight in one.named_parameters():
        apart.append((weight - theirs[name]).flatten())
        moved.append((weight - first.get(name, torch.zeros_like(weight))).flatten())
    moved = torch.cat(moved).norm().item()
    assert moved > 0
    assert torch.cat(apart).norm().item() < 1e-4 * moved


def assert_equal_weights(one, other) -> None:
    """The same parameters, bit by bit."""
    theirs = dict(other.named_parameters())
    for name, weight in one.named_parameters():
        assert torch.equal(weight, theirs[name]), name
