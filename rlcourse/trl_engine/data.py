"""What TRL trains on: the rows of all steps, written out in the order in which they come.

The local engine's `problems_of_step` says which problems a step has. Written out for all steps and
read without shuffling, TRL meets the same problems at the same steps, however many processes share
them, and a resumed run continues at the same place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from rlcourse.policy.rollouts import Rollouts
from rlcourse.tasks import Task
from rlcourse.training.data.batches import problems_of_step
from rlcourse.training.data.scoring import demonstrated
from rlcourse.training.preferences.pairs import Pair
from rlcourse.training.recipes.settings import Recipe

IGNORED = -100  # a label that no loss counts


@dataclass(frozen=True)
class Rows:
    """Rows for a ``datasets.Dataset``, and the completion tokens of each step where known."""

    rows: list[dict]
    tokens: list[int] | None = None


def question_rows(policy, task: Task, recipe: Recipe) -> Rows:
    """A row a question, for trainers that sample: the prompt's text, and what rewards read."""
    rows = []
    for step in range(recipe.steps):
        for problem in problems_of_step(
            task.train, recipe.prompts_per_step, step, recipe.seed, recipe.shuffle
        ):
            prompt = policy.format_prompt(problem.question, system=recipe.system)
            rows.append({"prompt": prompt, "answer": problem.answer})
    return Rows(rows)


def demonstration_rows(policy, task: Task, recipe: Recipe) -> Rows:
    """A row a demonstration, tokenized; the prompt's tokens are ignored by the loss.

    A step's rows come once for each of its passes, ``recipe.num_iterations``.
    """
    demonstrations = task.train if task.demonstrations is None else task.demonstrations
    rows, tokens = [], []
    for step in range(recipe.steps):
        problems = problems_of_step(
            demonstrations, recipe.prompts_per_step, step, recipe.seed, recipe.shuffle
        )
        batch = demonstrated(policy, problems, recipe, task)
        rows += [
            {"input_ids": prompt + read, "labels": [IGNORED] * len(prompt) + read}
            for prompt, read in token_lists(batch)
        ] * recipe.num_iterations
        tokens.append(int(batch.mask.sum()))
    return Rows(rows, tokens)


def pair_rows(policy, pairs: Sequence[Pair], recipe: Recipe, whole: bool) -> Rows:
    """A row a pair, tokenized: prompt and completions apart, or `whole` as a reward model reads."""
    rows, tokens = [], []
    for step in range(recipe.steps):
        some = problems_of_step(pairs, recipe.prompts_per_step, step, recipe.seed, recipe.shuffle)
        prompts = [policy.format_prompt(pair.prompt, system=recipe.system) for pair in some]
        chosen = policy.demonstrations(prompts, [pair.chosen for pair in some])
        rejected = policy.demonstrations(prompts, [pair.rejected for pair in some])
        for (prompt, better), (_, worse) in zip(
            token_lists(chosen), token_lists(rejected), strict=True
        ):
            if whole:
                rows.append({"chosen_ids": prompt + better, "rejected_ids": prompt + worse})
            else:
                rows.append({"prompt_ids": prompt, "chosen_ids": better, "rejected_ids": worse})
        tokens.append(int(chosen.mask.sum() + rejected.mask.sum()))
    return Rows(rows, tokens)


def token_lists(batch: Rollouts) -> list[tuple[list[int], list[int]]]:
    """Each row's prompt and completion as token ids, without padding."""
    return list(
        zip(
            unpadded(batch.prompt_tokens, batch.prompt_mask),
            unpadded(batch.tokens, batch.reads),
            strict=True,
        )
    )


def unpadded(tokens: Tensor, mask: Tensor) -> list[list[int]]:
    """Rows (N, T) as lists, without what the mask (N, T) leaves out."""
    return [row[real].tolist() for row, real in zip(tokens, mask.bool(), strict=True)]
