"""A recipe as arguments of TRL's trainers. Nothing is left to a default of TRL's that matters.

TRL's defaults are other people's choices (``dapo`` as the loss, shuffled data, dropout left on,
decay to 0 by the last step, gradient checkpointing …), and they change between versions. So every
one that touches what is learned is set here, from the recipe or to what our own loop does.

Which settings only the local engine knows is said where they are declared, see
``training.recipes.groups.setting``; here the others become arguments, or are read by our own code.
"""

import dataclasses
import difflib
import inspect
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from rlcourse.errors import UserError
from rlcourse.training.recipes.methods import resolved
from rlcourse.training.recipes.settings import Recipe

TRAINERS = {
    **dict.fromkeys(("grpo", "dr_grpo", "dapo", "gspo"), "GRPO"),
    **{"rloo": "RLOO", "sft": "SFT", "dpo": "DPO", "reward_model": "Reward"},
}
INSTEAD = {"ppo": "grpo", "reinforce": "rloo", "rejection_sampling": "grpo", "cispo": "dapo"}
INSTEAD |= {"distill": ""}  # nothing near it
# How TRL spells what tells these four apart. `grpo` as a loss type is: the mean over each
# completion's tokens, then over completions. Of gspo, whose completions have one ratio each, that
# is the mean over completions.
LOSSES = {
    "grpo": {"loss_type": "grpo"},
    "dr_grpo": {"loss_type": "dr_grpo", "scale_rewards": "none"},
    "dapo": {"loss_type": "dapo"},
    "gspo": {"loss_type": "grpo", "importance_sampling_level": "sequence"},
}
OPTIMIZERS = {"adamw": "adamw_torch_fused", "adamw_8bit": "adamw_bnb_8bit"}
DIVIDED_BY_ALL_TOKENS = ("dapo",)  # loss types that TRL divides by the tokens of all minibatches


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
        minibatches, sampled = recipe.minibatches, recipe.method.samples
        rows = recipe.prompts_per_step * (recipe.group_size if sampled else 1)
        share, rest = divmod(rows, processes * minibatches)
        if rest:
            size = f" × {recipe.group_size}" if sampled else ""
            parts = f" × {minibatches} minibatches" if minibatches > 1 else ""
            raise UserError(
                f"a step of {recipe.prompts_per_step}{size} = {rows} rows does not divide by "
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
    if name not in TRAINERS:
        other = f", or set algorithm={INSTEAD[name]}" if INSTEAD.get(name) else ""
        raise UserError(
            f"TRL does not do {name} as this course does: leave out --engine trl{other}"
        )
    _require_no_setting_of_the_local_engine(recipe)
    if recipe.dtype == "float16":
        raise UserError(
            "--engine trl has no loss scaling of its own: set dtype=bfloat16 or "
            "dtype=float32, or leave out --engine trl"
        )
    loss_type = LOSSES.get(name, {}).get("loss_type")
    if loss_type in DIVIDED_BY_ALL_TOKENS and recipe.minibatches > 1:
        raise UserError(
            f"TRL divides {name}'s loss by the tokens of all minibatches together: "
            "set minibatches=1"
        )
    ours = loss_parameters(recipe)
    several = recipe.num_iterations * recipe.minibatches > 1
    if method.samples and several and "old_logprobs" not in ours:
        raise UserError(
            f"TRL's {name} clips a ratio from its second update on, and ours has none: "
            "set num_iterations=1 and minibatches=1"
        )
    if TRAINERS[name] == "DPO" and recipe.temperature != 1:
        raise UserError(f"TRL's {name} scores completions at temperature 1: set temperature=1")
    if recipe.device is not None and recipe.device not in ("cpu", "cuda", "mps"):
        raise UserError(
            f"with --engine trl each process has a GPU of its own: instead of "
            f"device={recipe.device}, set CUDA_VISIBLE_DEVICES"
        )


def _require_no_setting_of_the_local_engine(recipe: Recipe) -> None:
    for name, field in recipe.settings().items():
        facts = field.json_schema_extra
        if not isinstance(facts, dict) or not facts["local"]:
            continue
        value, otherwise = getattr(recipe, name), facts["otherwise"]
        if value != otherwise:
            usual = "null" if otherwise is None else otherwise
            raise UserError(
                f"--engine trl does not do {name}={value} as this course does ({facts['local']}): "
                f"set {name}={usual}, or leave out --engine trl"
            )


def loss_parameters(recipe: Recipe) -> Collection[str]:
    """What the algorithm's loss asks for, in the local engine."""
    return inspect.signature(resolved(recipe.method.loss)).parameters


def trl_arguments(recipe: Recipe, processes: int, reward_weights: Iterable[float] = ()) -> dict:
    """Arguments of the trainer's config that decide what is learned, and so are not to change."""
    batches = Batches.of(recipe, processes)
    kind = TRAINERS[recipe.algorithm]
    arguments = {
        "seed": recipe.seed,
        "max_steps": recipe.steps * batches.updates,
        "per_device_train_batch_size": batches.per_device,
        "gradient_accumulation_steps": batches.accumulation,
        "learning_rate": recipe.lr,
        "lr_scheduler_type": "constant",  # `trainers` puts ours in its place
        "warmup_steps": 0,
        "optim": OPTIMIZERS[recipe.optimizer],
        "adam_beta1": recipe.betas[0],
        "adam_beta2": recipe.betas[1],
        "adam_epsilon": 1e-8,
        "weight_decay": recipe.weight_decay,
        "max_grad_norm": recipe.max_grad_norm,
        "bf16": recipe.dtype == "bfloat16",
        "fp16": False,
        "gradient_checkpointing": recipe.gradient_checkpointing,
        "average_tokens_across_devices": True,
        "label_smoothing_factor": 0.0,
        "train_sampling_strategy": "sequential",  # `data` has put the rows in order
    }
    if kind != "Reward":
        arguments["router_aux_loss_coef"] = 0.0
    if kind != "SFT":
        arguments["disable_dropout"] = True
    return arguments | _OF_KIND[kind](recipe, batches, list(reward_weights))


def _sampling(recipe: Recipe, batches: Batches, reward_weights: list[float]) -> dict:
    clip = recipe.arguments()["clip"]
    return {
        "num_generations": recipe.group_size,
        "max_completion_length": recipe.max_tokens,
        "steps_per_generation": batches.accumulation * batches.minibatches,
        "num_iterations": recipe.num_iterations,
        "temperature": recipe.temperature,
        "top_k": recipe.top_k or 0,
        "top_p": 1.0 if recipe.top_p is None else recipe.top_p,
        "min_p": None,
        "repetition_penalty": 1.0,
        "beta": recipe.beta,
        "epsilon": clip,
        "epsilon_high": clip,
        "reward_weights": reward_weights,
        "mask_truncated_completions": False,
        "shuffle_dataset": False,
        "sync_ref_model": False,
        "remove_unused_columns": False,  # the rewards read the others
    }


def _grpo(recipe: Recipe, batches: Batches, reward_weights: list[float]) -> dict:
    arguments = _sampling(recipe, batches, reward_weights) | {
        "scale_rewards": "group",
        "importance_sampling_level": "token",
        "multi_objective_aggregation": "sum_then_normalize",
        "delta": None,
        "top_entropy_quantile": 1.0,
        "entropy_coef": 0.0,
        "use_adaptive_entropy": False,
        "off_policy_mask_threshold": None,
        "use_bias_correction_kl": False,
        "cast_lm_head_to_fp32": False,
    }
    if "clip_high" in loss_parameters(recipe):
        arguments["epsilon_high"] = recipe.arguments()["clip_high"]
    return arguments | LOSSES[recipe.algorithm]


def _rloo(recipe: Recipe, batches: Batches, reward_weights: list[float]) -> dict:
    return _sampling(recipe, batches, reward_weights) | {
        "normalize_advantages": False,
        "reward_clip_range": None,
    }


def _sft(recipe: Recipe, batches: Batches, _) -> dict:
    return {
        "loss_type": "nll",
        "max_length": None,
        "packing": False,
        "padding_free": False,
        "shuffle_dataset": False,
        "dataset_kwargs": {"skip_prepare_dataset": True},  # `data` has tokenized it
    }


def _dpo(recipe: Recipe, batches: Batches, _) -> dict:
    return {
        "loss_type": ["sigmoid"],
        "beta": recipe.beta,
        "label_smoothing": 0.0,
        "f_divergence_type": "reverse_kl",
        "ld_alpha": None,
        "use_weighting": False,
        "max_length": None,
        "padding_free": False,
        "precompute_ref_log_probs": False,
        "sync_ref_model": False,
    }


def _reward(recipe: Recipe, batches: Batches, _) -> dict:
    return {"center_rewards_coefficient": None, "max_length": None}


_OF_KIND = {"GRPO": _grpo, "RLOO": _rloo, "SFT": _sft, "DPO": _dpo, "Reward": _reward}


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
    values = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UserError(f"'--trl {text}' sets nothing: write --trl KEY=VALUE")
        try:
            values[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UserError(f"the value in '--trl {text}' is not valid YAML") from None
        if isinstance(values[key.strip()], float) and not math.isfinite(values[key.strip()]):
            raise UserError(f"the value in '--trl {text}' must be finite")
    return values


# vLLM rounds otherwise than the model in training: its samples are slightly another policy's. TRL
# weighs each completion by the ratio of the two and leaves out those above the bound: Yao et al.
# 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training".
VLLM = {
    "vllm_mode": "colocate",
    "vllm_importance_sampling_correction": True,
    "vllm_importance_sampling_mode": "sequence_mask",
    "vllm_importance_sampling_clip_max": 3.0,
}


def with_vllm(settings: dict, config: type) -> dict:
    """The settings, and where they ask for vLLM what it takes, unless they say otherwise."""
    if not settings.get("use_vllm"):
        return settings
    known = {field.name for field in dataclasses.fields(config)}
    return {key: value for key, value in VLLM.items() if key in known} | settings


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
