"""A recipe says everything that decides a training run: algorithm, policy, task, and each number.

Recipes are YAML files behind which stands one dataclass. Every key can be overridden on the
command line (``lr=1e-4``, ``rewards.format=0.2``); a wrong key or value is refused with the
nearest right one.
"""

import dataclasses
import os
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

import yaml

from rlcourse.errors import UserError
from rlcourse.training.faults import FAULTS
from rlcourse.training.methods import METHODS, Method
from rlcourse.training.recipe_rules import require_consistent
from rlcourse.training.recipe_values import (
    check_range,
    checked_lora,
    checked_rewards,
    checked_truncate,
    converted,
    nearest,
)

EXTRACTS = ("marked", "tagged", "strict_tagged", "lenient")
FORMATS = ("gradual", "all_or_nothing")
# What a warm start takes over from the recipe that names it; all else is its own.
WITH_WARM_START = (
    *("policy", "task", "data", "task_options", "system", "extract", "seed", "dtype"),
    *("device", "micro_batch", "gradient_checkpointing", "lora"),
)
SHIPPED = Path(__file__).parent / "recipes"
POLICY_VARIABLE = "RLCOURSE_POLICY"


def _setting(default, help, low=None, high=None, choices=None, above=None):
    """A recipe field: its default, its help text, and the values that it accepts."""
    facts = {"help": help, "low": low, "high": high, "choices": choices, "above": above}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=facts)
    return field(default=default, metadata=facts)


# ruff: noqa: RUF009  (each field is declared by `_setting`, which returns a dataclass field)
@dataclass(frozen=True)
class Recipe:
    """Everything that decides a run. ``Recipe.help()`` lists the fields; all values are checked."""

    algorithm: str = _setting("grpo", "how the policy learns", choices=METHODS)
    policy: str = _setting("tiny", "'tiny' (embedded), or a Hugging Face model's name or path")
    task: str = _setting("word_problems", "'word_problems', 'gsm8k', or a path to JSONL data")
    data: str | None = _setting(None, "directory of the task's data; null: embedded or downloaded")
    task_options: dict = _setting({}, "options handed to the task, such as its level")
    system: str | None = _setting(None, "system message put before every question")
    extract: str | None = _setting(
        None, "where an answer is read: see rlcourse.tasks; null: the task's", choices=EXTRACTS
    )
    format: str = _setting(
        "gradual", "how rewards.format judges: see rlcourse.tasks", choices=FORMATS
    )
    shuffle: bool = _setting(True, "false: questions in the order of the task's file")
    warm_start: str | None = _setting(None, "recipe that is run first, such as sft")
    seed: int = _setting(0, "the only source of randomness", low=0)
    fault: str | None = _setting(
        None, "a mistake to train with, for lesson 10: see rlcourse diagnose", choices=FAULTS
    )

    steps: int = _setting(50, "training steps: one batch of rollouts each", low=1)
    prompts_per_step: int = _setting(
        16, "questions in a step (demonstrations for sft, pairs for dpo and reward_model)", low=1
    )
    group_size: int = _setting(8, "completions sampled for each question", low=1)
    max_tokens: int = _setting(64, "longest completion, in tokens", low=1)
    temperature: float = _setting(1.0, "sampling temperature", above=0.0, high=10.0)
    top_k: int | None = _setting(None, "sample from the k likeliest tokens only", low=1)
    top_p: float | None = _setting(
        None, "sample from the likeliest tokens that hold this probability", above=0.0, high=1.0
    )
    rewards: dict = _setting(
        {"correctness": 1.0, "format": 0.0}, "weight of each reward function in the reward"
    )
    keep_reward: float = _setting(1.0, "rejection_sampling keeps this reward or more")
    pairs: str | None = _setting(
        None, "JSONL of prompt, chosen, rejected; null: pairs of the policy's own completions"
    )
    questions: int = _setting(400, "questions whose completions make these pairs", low=1)

    sampler_staleness: int = _setting(
        0, "steps that a batch is older than the policy that learns from it", low=0
    )
    old_logprobs: str = _setting(
        "sampled",
        "the ratio's denominator: as sampled, or computed anew by the trainer",
        choices=("sampled", "recomputed"),
    )
    truncate: dict = _setting(
        {}, "weights trainer/sampler for tokens, such as {mode: truncate, cap: 2}"
    )
    overlong_filter: bool = _setting(
        False, "learn nothing from completions that were cut off at max_tokens"
    )
    advantage_eps: float = _setting(1e-4, "added to the standard deviation of a group", low=0.0)

    num_iterations: int = _setting(1, "μ: passes over each batch of rollouts", low=1)
    minibatches: int = _setting(1, "optimizer steps in each of these passes", low=1)
    lr: float = _setting(3e-4, "learning rate", above=0.0, high=1.0)
    schedule: str = _setting(
        "constant", "lr after warmup", choices=("constant", "linear", "cosine")
    )
    warmup: int = _setting(5, "steps in which the learning rate rises to lr", low=0)
    betas: tuple[float, float] = _setting((0.9, 0.95), "AdamW's two averaging factors")
    weight_decay: float = _setting(0.0, "AdamW's weight decay", low=0.0, high=1.0)
    max_grad_norm: float = _setting(1.0, "longer gradients are shortened to this", above=0.0)
    clip: float = _setting(0.2, "ε: the ratio is clipped to [1 − ε, 1 + ε]", above=0.0)
    clip_high: float | None = _setting(None, "dapo's ε upward; null: the same as clip", above=0.0)
    cap: float = _setting(5.0, "cispo: a token's ratio weighs this at most", above=0.0)
    resample: int = _setting(
        2, "dapo: batches more at most, until enough groups hold right and wrong answers", low=0
    )
    overlong_buffer: int = _setting(
        0, "dapo: tokens before max_tokens in which the reward falls by 1; 0: none", low=0
    )
    beta: float = _setting(0.0, "weight of the KL divergence from the start", low=0.0)
    reference_every: int = _setting(
        0, "steps after which the policy becomes the reference of that divergence; 0: never", low=0
    )
    gamma: float = _setting(1.0, "ppo's discount of a reward one token later", low=0.0, high=1.0)
    lam: float = _setting(
        0.95, "ppo's λ: 0 trusts the critic, 1 the rewards alone", low=0.0, high=1.0
    )
    critic_lr: float = _setting(1e-3, "learning rate of ppo's critic", above=0.0, high=1.0)
    label_smoothing: float = _setting(
        0.0, "share of pairs that dpo takes to be mislabeled", low=0.0, high=0.5
    )

    micro_batch: int | None = _setting(
        None, "rows read at once in training: less memory, the same gradient; null: all", low=1
    )
    gradient_checkpointing: bool = _setting(
        False, "compute activations twice instead of keeping them: less memory"
    )
    static_cache: bool | None = _setting(
        None, "sample with a cache of fixed size, as one CUDA graph a token; null: on CUDA"
    )
    lora: dict = _setting({}, "adapters in place of all weights, such as {rank: 16, alpha: 32}")

    eval_problems: int = _setting(200, "held-out problems before and after; 0: none", low=0)
    eval_samples: int = _setting(8, "completions of each, for pass@k", low=1)
    eval_temperature: float = _setting(1.0, "their temperature", above=0.0, high=10.0)
    eval_top_k: int | None = _setting(None, "top_k of these completions", low=1)
    eval_top_p: float | None = _setting(None, "top_p of these completions", above=0.0, high=1.0)
    eval_every: int = _setting(0, "steps between greedy evaluations on the way; 0: none", low=0)
    checkpoint_every: int = _setting(10, "steps between checkpoints; 0: none before the end", low=0)
    dtype: str = _setting(
        "float32",
        "precision of the arithmetic; weights stay float32",
        choices=("float32", "bfloat16"),
    )
    device: str | None = _setting(None, "'cpu', 'cuda', 'cuda:1', 'mps'; null: the best there is")

    def __post_init__(self):
        for name in _TYPES:
            object.__setattr__(self, name, _checked(name, getattr(self, name)))
        require_consistent(self)

    @property
    def method(self) -> Method:
        """What the algorithm is made of, and facts about it."""
        method = METHODS[self.algorithm]
        return method.also_using("truncated_weights") if self.truncate else method

    def warm_start_recipe(self) -> "Recipe | None":
        """The recipe that is run first, with this one's policy, task and precision; or None."""
        if self.warm_start is None:
            return None
        shared = {name: getattr(self, name) for name in WITH_WARM_START}
        return load_recipe(self.warm_start).but(eval_problems=0, **shared)

    def but(self, **changes) -> "Recipe":
        """The same recipe with these fields changed (of ``rewards`` and the like, these keys)."""
        changes = _known(changes, "the recipe")
        for name, value in changes.items():
            if _TYPES[name] is dict and isinstance(value, dict):
                changes[name] = {**getattr(self, name), **value}
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict:
        """Plain values, in the fields' order, as ``recipe.yaml`` holds them."""
        values = dataclasses.asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def to_yaml(self) -> str:
        """The recipe as a YAML file's text."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)

    @staticmethod
    def help() -> str:
        """One line a field: name, default, and what it is."""
        lines = []
        for f in fields(Recipe):
            made = f.default_factory
            default = f.default if made is dataclasses.MISSING else made()
            lines.append(f"{f.name:22} {default!s:12} {f.metadata['help']}")
        return "\n".join(lines)


# Keys of earlier versions, and what they are called now.
RENAMED = {"prompts": "prompts_per_step", "updates": "num_iterations"}
_FIELDS = {f.name: f for f in fields(Recipe)}
_TYPES = typing.get_type_hints(Recipe)


def load_recipe(name_or_path: str | Path, **overrides) -> Recipe:
    """The recipe of that name (``sft``, ``grpo``, …) or file, with some values overridden.

    Where neither says which policy, it is the environment's ``RLCOURSE_POLICY``, a Hugging Face
    model's name or path, or else the embedded one.

    Raises:
        UserError: no such recipe, unreadable YAML, or a wrong key or value.
    """
    path = _recipe_path(str(name_or_path))
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the recipe {path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise UserError(
            f"the recipe {path} is not valid YAML: {' '.join(str(error).split())}"
        ) from None
    if not isinstance(values, dict):
        raise UserError(f"the recipe {path} must hold lines such as 'algorithm: grpo'")
    if chosen := os.environ.get(POLICY_VARIABLE):
        values = {"policy": chosen} | values
    recipe = Recipe(**_known(values, str(path)))
    return recipe.but(**overrides) if overrides else recipe


def parse_overrides(assignments: Iterable[str]) -> dict:
    """``["lr=1e-4", "rewards.format=0.2"]`` → ``{"lr": 1e-4, "rewards": {"format": 0.2}}``."""
    values: dict = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UserError(f"'{text}' is not an override: write key=value, for example lr=1e-4")
        try:
            value = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UserError(f"the value in '{text}' is not valid YAML") from None
        key, _, inner = key.partition(".")
        if inner:
            _known({key: None}, "the recipe")
            if _TYPES[key] is not dict:
                raise UserError(f"'{key}' holds one value: write {key}={value}")
            values.setdefault(key, {})[inner] = value
        else:
            values[key] = value
    return _known(values, "the recipe")


def shipped_recipes() -> list[str]:
    """Names of the recipes that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def _recipe_path(name: str) -> Path:
    shipped = SHIPPED / f"{name}.yaml"
    if "/" not in name and shipped.is_file():
        return shipped
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if path.suffix in (".yaml", ".yml") or "/" in name:
        raise UserError(f"there is no recipe file {path}")
    others = f": recipes are {', '.join(shipped_recipes())}, or the path of a YAML file"
    raise UserError(f"there is no recipe '{name}'{nearest(name, shipped_recipes()) or others}")


def _known(values: Mapping, where: str) -> dict:
    for key in values:
        if key in RENAMED:
            raise UserError(f"{where} has no key '{key}': it is called '{RENAMED[key]}' now")
        if key not in _FIELDS:
            raise UserError(f"{where} has no key '{key}'{nearest(str(key), _FIELDS)}")
    return dict(values)


def _checked(name: str, value):
    """`value` in the field's type, or a UserError that says what the field accepts."""
    facts = _FIELDS[name].metadata
    value = converted(name, value, _TYPES[name])
    if value is None:
        return None
    if name == "rewards":
        return checked_rewards(value)
    if name == "lora":
        return checked_lora(value)
    if name == "truncate":
        return checked_truncate(value)
    if choices := facts["choices"]:
        if value not in choices:
            hint = nearest(value, choices) or ": choose from " + ", ".join(choices)
            raise UserError(f"{name} cannot be '{value}'{hint}")
        return value
    for number in value if name == "betas" else (value,):
        check_range(name, number, facts)
    return value
