"""All exercises, in lesson order."""

from difflib import get_close_matches
from functools import cache
from importlib import import_module

from rlcourse.errors import UserError
from rlcourse.exercises.exercise import Exercise

# One declaration module per lesson, in the order of the course.
LESSONS = (
    "start_here",
    "policies",
    "policy_gradient",
    "baselines",
    "importance_sampling",
    "ppo",
    "grpo",
    "beyond_grpo",
    "reward_models",
    "dpo",
    "gsm8k",
)


@cache
def _by_name() -> dict[str, Exercise]:
    modules = [import_module(f"rlcourse.exercises.{lesson}") for lesson in LESSONS]
    return {exercise.name: exercise for module in modules for exercise in module.EXERCISES}


def every() -> list[Exercise]:
    """All exercises, in lesson order."""
    return list(_by_name().values())


def get(name: str) -> Exercise:
    """The exercise of that name; ``UserError`` with the nearest name when there is none."""
    exercises = _by_name()
    if name in exercises:
        return exercises[name]
    nearest = get_close_matches(str(name), exercises, n=1, cutoff=0.0)
    raise UserError(f"There is no exercise “{name}”; did you mean “{nearest[0]}”?")
