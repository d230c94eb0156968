"""Which learner a run has: of pairs, or of batches, with a fault in it where one is switched on."""

from rlcourse.training.faults.switched_on import changed_by
from rlcourse.training.learner import Learner
from rlcourse.training.online.batch_learner import learner as online_learner
from rlcourse.training.preferences.learner import learner as preference_learner
from rlcourse.training.recipes.methods import Method
from rlcourse.training.recipes.settings import Recipe


def learner_for(
    policy, recipe: Recipe, task, method: Method, reward, out=None, progress=False, teacher=None
) -> Learner:
    """The learner of ``recipe.algorithm``, which starts from `policy`.

    To be called before a checkpoint is loaded: references, pairs and heads come from the start.
    """
    if method.compares_pairs:
        return preference_learner(policy, recipe, task, method, reward, out, progress)
    change = changed_by(recipe.fault)
    return online_learner(policy, recipe, task, method, reward, out, change, teacher)
