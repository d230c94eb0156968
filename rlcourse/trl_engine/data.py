"""What TRL trains on: the questions of all steps, written out in the order in which they come.

The local engine's `problems_of_step` says which problems a step has. Written out for all steps and
read without shuffling, TRL meets the same problems at the same steps, however many processes share
them, and a resumed run continues at the same place.
"""

from torch import Tensor

from rlcourse.tasks import Task
from rlcourse.training.data.batches import problems_of_step
from rlcourse.training.recipes.settings import Recipe


def question_rows(policy, task: Task, recipe: Recipe) -> list[dict]:
    """A row a question, for a ``datasets.Dataset``: the prompt's text, and what rewards read."""
    rows = []
    for step in range(recipe.steps):
        for problem in problems_of_step(
            task.train, recipe.prompts_per_step, step, recipe.seed, recipe.shuffle
        ):
            prompt = policy.format_prompt(problem.question, system=recipe.system)
            rows.append({"prompt": prompt, "answer": problem.answer})
    return rows


def unpadded(tokens: Tensor, mask: Tensor) -> list[list[int]]:
    """Rows (N, T) as lists, without what the mask (N, T) leaves out."""
    return [row[real].tolist() for row, real in zip(tokens, mask.bool(), strict=True)]
