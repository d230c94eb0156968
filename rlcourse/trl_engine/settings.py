"""A recipe as arguments of TRL's trainers.

TRL's defaults are other people's choices (``dapo`` as the loss, shuffled data, dropout left on,
decay to 0 by the last step, gradient checkpointing …). Those of the one version that is supported
which differ from what our own loop does are set here; the others come from the recipe.

A setting says where it is declared what TRL calls it, if it means the same there, and whether only
the local engine knows it (``training.recipes.fields.setting``); a method's row says which
trainer does the same (``training.recipes.methods.TRL``). The rest is here, or read by our own code.
"""

import dataclasses
import difflib
import inspect
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcourse.errors import UserError
from rlcourse.training.recipes.fields import facts_of
from rlcourse.training.recipes.methods import resolved
from rlcourse.training.recipes.recipe import assigned
from rlcourse.training.recipes.settings import Recipe

OPTIMIZERS = {"adamw": "adamw_torch_fused", "adamw_8bit": "adamw_bnb_8bit"}


@dataclass(frozen=True)
class Batches:
    """How a step's rows are divided: among processes, optimizer steps and forward passes."""

    per_device: int  # rows in one forward and backward pass of one process
    accumulation: int  # of these passes in one optimizer step
    minibatches: int  # optimizer steps in one pass over the step's rows
    updates: int  # optimizer steps in a step of the recipe: minibatches × passes

    @classmethod
    def of(cls, recipe: Recipe, processes: int) -> "Batches":
        """The division that keeps the recipe's step what it is, whatever the processes.

        Raises:
            UserError: the rows do not divide evenly.
        """
        minibatches = recipe.minibatches
        rows = recipe.prompts_per_step * recipe.group_size
        share, rest = divmod(rows, processes * minibatches)
        if rest:
            parts = f" × {minibatches} minibatches" if minibatches > 1 else ""
            raise UserError(
                f"a step of {recipe.prompts_per_step} × {recipe.group_size} = {rows} rows does "
                "not divide by "
                f"{processes} processes{parts}: choose prompts_per_step so that it does"
            )
        most = recipe.micro_batch or share
        per_device = max(n for n in range(1, share + 1) if share % n == 0 and n <= most)
        return cls(
            per_device, share // per_device, minibatches, minibatches * recipe.num_iterations
        )


def require_possible(recipe: Recipe) -> None:
    """Raise ``UserError`` where TRL cannot do what this recipe says, or would do it otherwise."""
    name, method = recipe.algorithm, recipe.method
    if method.trl.trainer is None:
        other = f", or set algorithm={method.trl.instead}" if method.trl.instead else ""
        raise UserError(
            f"TRL does not do {name} as this course does: leave out --engine trl{other}"
        )
    _require_no_setting_of_the_local_engine(recipe)
    if recipe.dtype == "float16":
        raise UserError(
            "--engine trl has no loss scaling of its own: set dtype=bfloat16 or "
            "dtype=float32, or leave out --engine trl"
        )
    if method.trl.divides_by_all and recipe.minibatches > 1:
        raise UserError(
            f"TRL divides {name}'s loss by the tokens of all minibatches together: "
            "set minibatches=1"
        )
    several = recipe.num_iterations * recipe.minibatches > 1
    if several and not loss_asks_for(recipe, "old_logprobs"):
        raise UserError(
            f"TRL's {name} clips a ratio from its second update on, and ours has none: "
            "set num_iterations=1 and minibatches=1"
        )
    if recipe.device is not None and recipe.device not in ("cpu", "cuda", "mps"):
        raise UserError(
            f"with --engine trl each process has a GPU of its own: instead of "
            f"device={recipe.device}, set CUDA_VISIBLE_DEVICES"
        )


def _require_no_setting_of_the_local_engine(recipe: Recipe) -> None:
    for name, field in recipe.settings().items():
        facts = facts_of(field)
        if not facts["local"]:
            continue
        value, otherwise = getattr(recipe, name), facts["otherwise"]
        if value != otherwise:
            usual = "null" if otherwise is None else otherwise
            raise UserError(
                f"--engine trl does not do {name}={value} as this course does ({facts['local']}): "
                f"set {name}={usual}, or leave out --engine trl"
            )


def loss_asks_for(recipe: Recipe, name: str) -> bool:
    """Whether the algorithm's loss has such a parameter, in the local engine."""
    return name in inspect.signature(resolved(recipe.method.loss)).parameters


def config_class(recipe: Recipe) -> type:
    """TRL's dataclass of arguments for this recipe's trainer."""
    import trl

    return getattr(trl, f"{recipe.method.trl.trainer}Config")


# What our own loop does, where TRL 1.16 or Transformers does otherwise by default.
ALWAYS = {
    "lr_scheduler_type": "constant",  # `trainers` puts ours in its place
    "train_sampling_strategy": "sequential",  # `data` has put the rows in order
}
SAMPLING = {"disable_dropout": True, "router_aux_loss_coef": 0.0, "shuffle_dataset": False}
FIXED: dict[str, dict[str, Any]] = {
    "GRPO": SAMPLING | {"use_bias_correction_kl": False},
    "RLOO": SAMPLING,
}


def trl_arguments(recipe: Recipe, processes: int, reward_weights: Iterable[float] = ()) -> dict:
    """Arguments of the trainer's config that decide what is learned, and so are not to change."""
    batches, trl = Batches.of(recipe, processes), recipe.method.trl
    assert trl.trainer is not None, "`require_possible` has refused the others"
    known = {field.name for field in dataclasses.fields(config_class(recipe))}
    named = {facts_of(field)["trl"]: name for name, field in recipe.settings().items()}
    arguments = {theirs: getattr(recipe, name) for theirs, name in named.items() if theirs in known}
    arguments = ALWAYS | FIXED[trl.trainer] | arguments | trl.arguments
    clip, high = (recipe.arguments()[name] for name in ("clip", "clip_high"))
    return arguments | {
        "max_steps": recipe.steps * batches.updates,
        "per_device_train_batch_size": batches.per_device,
        "gradient_accumulation_steps": batches.accumulation,
        "optim": OPTIMIZERS[recipe.optimizer],
        "adam_beta1": recipe.betas[0],
        "adam_beta2": recipe.betas[1],
        "bf16": recipe.dtype == "bfloat16",
        "beta": recipe.beta,
        "top_k": recipe.top_k or 0,
        "top_p": 1.0 if recipe.top_p is None else recipe.top_p,
        "steps_per_generation": batches.accumulation * batches.minibatches,
        "epsilon": clip,
        "epsilon_high": high if loss_asks_for(recipe, "clip_high") else clip,
        "reward_weights": list(reward_weights),
    }


def housekeeping(directory: Path, use_cpu: bool) -> dict:
    """Arguments that do not touch what is learned; ``--trl`` may change them."""
    return {
        "output_dir": str(directory),
        "use_cpu": use_cpu,
        "logging_strategy": "steps",
        "logging_steps": 1,
        "logging_nan_inf_filter": False,  # a NaN ends the run, see `progress`
        "save_strategy": "no",  # `progress` says when
        "save_total_limit": 2,
        "eval_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "push_to_hub": False,
        "ddp_find_unused_parameters": False,
    }


OWN = ("output_dir", "use_cpu", "logging_steps", "logging_strategy", "save_strategy")


def parse_settings(assignments: Iterable[str]) -> dict:
    """``["use_vllm=true"]`` → ``{"use_vllm": True}``: what only TRL knows, and no recipe."""
    values = dict(map(assigned, assignments))
    for key, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"the value of --trl {key} must be finite")
    return values


def require_free(settings: dict, decided: Iterable[str], config: type) -> None:
    """Raise ``UserError`` for a setting that the recipe decides, or that TRL does not have."""
    known = [field.name for field in dataclasses.fields(config)]
    for key in settings:
        if key in decided or key in OWN:
            raise UserError(
                f"--trl {key} cannot be set: it follows from the recipe or the command line"
            )
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f": did you mean '{close[0]}'?" if close else ""
            raise UserError(f"TRL's {config.__name__} has no '{key}'{hint}")
