"""A run with a fault: the settings that it needs, and the change that makes the mistake."""

from collections.abc import Callable
from inspect import signature

from rlcourse.errors import UserError
from rlcourse.training.faults.catalog import FAULTS
from rlcourse.training.online.batch_learner import Parts
from rlcourse.training.recipes.methods import Method, resolved


def with_settings(recipe, method: Method):
    """The recipe of a run with a fault, which replaces the recipe's defaults by what it needs.

    Raises:
        UserError: the algorithm, made of `method`, has no part in which the mistake could sit.
    """
    if recipe.fault is None:
        return recipe
    fault = FAULTS[recipe.fault]
    fits = method.samples and method.step is None
    fits &= fault.where != "advantages" or method.compares_groups
    if not fits or (fault.needs and fault.needs not in signature(resolved(method.loss)).parameters):
        raise UserError(
            f"{recipe.algorithm} has no part that {recipe.fault} could change: use it with grpo"
        )
    default = {name: field.default for name, field in recipe.settings().items()}
    brought = fault.settings.items()
    return recipe.but(**{k: v for k, v in brought if getattr(recipe, k) == default[k]})


def changed_by(fault: str | None) -> Callable[[Parts], Parts]:
    """What the fault of that name does to the parts of a run; without one, nothing."""
    if fault is None or FAULTS[fault].where == "settings":
        return lambda parts: parts
    from rlcourse.training.faults import faulty

    return getattr(faulty, fault)
