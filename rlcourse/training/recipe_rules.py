"""What the fields of a recipe must be to each other: one sentence for each contradiction."""

from rlcourse.errors import UserError

# Fields that are about completions sampled while the policy learns, and what they are when unused.
OF_SAMPLING = {
    "sampler_staleness": 0,
    "old_logprobs": "sampled",
    "truncate": {},
    "overlong_filter": False,
    "reference_every": 0,
}


def require_consistent(recipe) -> None:
    """Raise ``UserError`` where two fields of the recipe contradict each other."""
    method = recipe.method
    _require_completions_to_compare(recipe, method)
    if method.needs_beta and recipe.beta == 0:
        raise UserError(f"{recipe.algorithm} needs a beta greater than 0, such as beta=0.1")
    if recipe.lora and method.trains_head:
        raise UserError(f"{recipe.algorithm} trains a head, which has no adapters: remove lora")
    if recipe.overlong_buffer > recipe.max_tokens:
        raise UserError(
            f"overlong_buffer must be at most max_tokens, {recipe.max_tokens}, "
            f"not {recipe.overlong_buffer}"
        )
    rows = method.rows(recipe.prompts_per_step, recipe.group_size)
    if recipe.minibatches > rows:
        raise UserError(
            f"minibatches must be at most {rows}, the rows of a batch, not {recipe.minibatches}"
        )
    _require_a_use_for_each_policy(recipe, method)


def _require_completions_to_compare(recipe, method) -> None:
    compares = {"compares": method.compares_groups}
    compares["pairs"] = method.compares_pairs and recipe.pairs is None
    for verb, applies in compares.items():
        if applies and recipe.group_size < 2:
            raise UserError(
                f"{recipe.algorithm} {verb} the completions of a question: "
                f"group_size must be at least 2, not {recipe.group_size}"
            )


def _require_a_use_for_each_policy(recipe, method) -> None:
    """Sampler, old policy and reference: what is said of them must have something to act on."""
    name = recipe.algorithm
    for field, unused in OF_SAMPLING.items():
        if getattr(recipe, field) != unused and not method.samples:
            raise UserError(f"{name} samples nothing while it learns: remove {field}")
    if recipe.truncate and not method.weighs_tokens:
        raise UserError(
            f"{name} weighs whole completions, and truncate weighs tokens: remove truncate, or "
            "choose grpo, dr_grpo, dapo, cispo or ppo"
        )
    if recipe.sampler_staleness >= recipe.steps:
        raise UserError(
            f"sampler_staleness must be less than steps, {recipe.steps}, "
            f"not {recipe.sampler_staleness}: no batch would come from a trained policy"
        )
    if recipe.reference_every and recipe.beta == 0:
        raise UserError(
            "reference_every renews the reference of the KL divergence: set beta greater than 0"
        )
    if recipe.reference_every and recipe.lora:
        raise UserError(
            "with lora the reference is the model without its adapters, which reference_every "
            "cannot renew: remove one of the two"
        )
