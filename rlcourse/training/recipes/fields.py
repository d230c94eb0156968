"""Every setting there is: declared once, with its default and with the rules between them.

`settings.py` says which of them a method has.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

from rlcourse.errors import UserError
from rlcourse.training.faults.catalog import FAULTS
from rlcourse.training.recipes.values import (
    Adapters,
    Number,
    RewardWeights,
    Text,
    TokenWeights,
    Truth,
    Whole,
)

Precision = Literal["float32", "bfloat16", "float16"]
Average = Annotated[Number, Field(ge=0, le=0.9999999)]
SAMPLING, PASSES = ("samples", "compares_pairs"), ("samples", "imitates")


def setting(
    default, help: str, low=None, high=None, above=None, of=None, local="", otherwise=..., trl=""
) -> Any:
    """A setting: its default, what it is, and the values that it accepts.

    `of` are facts about a method, of which one must hold for it to have the setting; with ``()``
    a method's row names it, and None means all methods. `local` says why only the local engine
    does it; TRL takes no value but `otherwise`, by default the default. `trl` is what TRL calls
    the same.
    """
    facts = {"local": local, "otherwise": default if otherwise is ... else otherwise, "trl": trl}
    facts |= {"of": of}
    return Field(default, description=help, ge=low, le=high, gt=above, json_schema_extra=facts)


def facts_of(field: FieldInfo) -> dict[str, Any]:
    """What else was declared of a setting; of a method's name nothing was."""
    facts = field.json_schema_extra
    nothing = {"local": "", "otherwise": None, "trl": "", "of": None}
    return facts if isinstance(facts, dict) else nothing


class Surroundings(BaseModel):
    """What is learned and by whom, on which machine, and how it is measured."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    algorithm: str = Field(description="how the policy learns")
    policy: Text = setting(
        "tiny", "'tiny' (embedded), a Hugging Face model's name or path, a GGUF file, or an adapter"
    )
    merge_adapter: Truth = setting(
        False, "true: an adapter named as policy is merged into its base, not trained on"
    )
    task: Text = setting(
        "word_problems", "'word_problems', 'calculator', 'stories', 'gsm8k', or a path to JSONL"
    )
    data: Text | None = setting(None, "directory of its data; null: embedded or downloaded")
    task_options: dict[str, Any] = setting({}, "options handed to the task, such as its level")
    system: Text | None = setting(None, "system message put before every question")
    template: dict[str, Any] = setting(
        {}, "arguments of the model's chat template, such as {enable_thinking: false}"
    )
    extract: Literal["marked", "tagged", "boxed", "strict_tagged", "lenient"] | None = setting(
        None, "where an answer is read: see rlcourse.tasks; null: the task's"
    )
    rewards: RewardWeights = setting(
        {"correctness": 1.0, "format": 0.0, "length": 0.0},
        "weight of each reward function in the reward",
    )
    format: Literal["gradual", "all_or_nothing"] = setting(
        "gradual", "how rewards.format judges: see rlcourse.tasks"
    )
    max_tokens: Whole = setting(
        64, "longest completion, in tokens", low=1, trl="max_completion_length"
    )
    max_turns: Whole = setting(4, "the policy's turns in an episode of an environment", low=1)
    shuffle: Truth = setting(True, "false: questions in the order of the task's file")
    warm_start: Text | None = setting(None, "recipe that is run first, such as sft")
    seed: Whole = setting(0, "the only source of randomness", low=0, trl="seed")

    micro_batch: Whole | None = setting(
        None, "rows read at once in training: less memory, the same gradient; null: all", low=1
    )
    gradient_checkpointing: Truth = setting(
        False,
        "compute activations twice instead of keeping them: less memory",
        trl="gradient_checkpointing",
    )
    static_cache: Truth | None = setting(
        None, "sample with a cache of fixed size, as one CUDA graph a token; null: on CUDA"
    )
    checkpoint_every: Whole = setting(
        10, "steps between checkpoints; 0: none that are counted in steps", low=0
    )
    checkpoint_minutes: Number | None = setting(
        None, "minutes between checkpoints, also; null: none by the clock", above=0.0
    )
    dtype: Precision = setting(
        "float32", "precision of the arithmetic; weights stay float32; float16 scales the loss"
    )
    device: Text | None = setting(None, "'cpu', 'cuda', 'cuda:1', 'mps'; null: the best there is")

    eval_problems: Whole = setting(200, "held-out problems before and after; 0: none", low=0)
    eval_every: Whole = setting(0, "steps between greedy evaluations on the way; 0: none", low=0)
    eval_samples: Whole = setting(
        8, "completions of each held-out problem, for pass@k", low=1, of=("trains_policy",)
    )
    eval_temperature: Number = setting(
        1.0, "their temperature", above=0.0, high=10.0, of=("trains_policy",)
    )
    eval_top_k: Whole | None = setting(
        None, "top_k of these completions", low=1, of=("trains_policy",)
    )
    eval_top_p: Number | None = setting(
        None, "top_p of these completions", above=0.0, high=1.0, of=("trains_policy",)
    )
    eval_dtype: Precision | None = setting(
        None, "precision of the arithmetic in evaluations; null: dtype", of=("trains_policy",)
    )


class Fields(Surroundings):
    """All settings; the others are about how it is learned."""

    steps: Whole = setting(50, "training steps: one batch each", low=1)
    prompts_per_step: Whole = setting(
        16, "questions in a step (demonstrations for sft, pairs for dpo and reward_model)", low=1
    )
    optimizer: Literal["adamw", "adamw_8bit"] = setting(
        "adamw", "adamw_8bit keeps AdamW's averages in 8 bits: less memory; needs bitsandbytes"
    )
    lr: Number = setting(3e-4, "learning rate", above=0.0, high=1.0, trl="learning_rate")
    schedule: Literal["constant", "linear", "cosine"] = setting("constant", "lr after warmup")
    warmup: Whole = setting(5, "steps in which the learning rate rises to lr", low=0)
    betas: tuple[Average, Average] = setting((0.9, 0.95), "AdamW's two averaging factors")
    weight_decay: Number = setting(
        0.0, "AdamW's weight decay", low=0.0, high=1.0, trl="weight_decay"
    )
    max_grad_norm: Number = setting(
        1.0, "longer gradients are shortened to this", above=0.0, trl="max_grad_norm"
    )
    lora: Adapters = setting(
        {}, "adapters in place of all weights, such as {rank: 16, alpha: 32}", of=("adapts",)
    )

    group_size: Whole = setting(
        8, "completions sampled for each question", low=1, of=SAMPLING, trl="num_generations"
    )
    temperature: Number = setting(
        1.0, "sampling temperature", above=0.0, high=10.0, of=SAMPLING, trl="temperature"
    )
    top_k: Whole | None = setting(
        None, "sample from the k likeliest tokens only", low=1, of=SAMPLING
    )
    top_p: Number | None = setting(
        None,
        "sample from the likeliest tokens that hold this probability",
        above=0.0,
        high=1.0,
        of=SAMPLING,
    )
    num_iterations: Whole = setting(
        1, "μ: passes over each batch", low=1, of=PASSES, trl="num_iterations"
    )
    minibatches: Whole = setting(1, "optimizer steps in each of these passes", low=1, of=PASSES)
    sampler_staleness: Whole = setting(
        0,
        "steps that a batch is older than the policy that learns from it",
        low=0,
        of=("samples",),
        local="TRL writes each batch with the policy that learns",
    )
    overlong_filter: Truth = setting(
        False,
        "learn nothing from completions that were cut off at max_tokens",
        of=("samples",),
        local="TRL leaves them out otherwise",
    )
    fault: Literal[tuple(FAULTS)] | None = setting(  # type: ignore[valid-type]
        None,
        "a mistake to train with, for lesson 10: see rlcourse train --faults",
        of=("samples",),
        local="faults are put into the local engine's loop",
    )

    old_logprobs: Literal["sampled", "recomputed"] = setting(
        "sampled", "the ratio's denominator: as sampled, or computed anew by the trainer", of=()
    )
    clip: Number = setting(0.2, "ε: the ratio is clipped to [1 − ε, 1 + ε]", above=0.0, of=())
    clip_high: Number | None = setting(None, "ε upward; null: the same as clip", above=0.0, of=())
    cap: Number = setting(5.0, "a token's ratio weighs this at most", above=0.0, of=())
    truncate: TokenWeights = setting(
        {},
        "weights trainer/sampler for tokens, such as {mode: truncate, cap: 2}",
        of=("weighs_tokens",),
        local="TRL does it otherwise",
    )
    advantage_eps: Number = setting(
        1e-4,
        "added to the standard deviation of a group",
        low=0.0,
        of=(),
        local="TRL adds 1e-4",
    )
    beta: Number = setting(
        0.0, "weight of the KL divergence from the start", low=0.0, of=(), trl="beta"
    )
    entropy_bonus: Number = setting(
        0.0,
        "weight of the mean entropy of the policy's tokens (nats), which is raised",
        low=0.0,
        of=(),
        local="TRL means its entropy otherwise",
    )
    reference_every: Whole = setting(
        0,
        "steps after which the policy becomes the reference of that divergence; 0: never",
        low=0,
        of=(),
        local="TRL mixes the two, or does not do it at all",
    )

    gamma: Number = setting(
        1.0, "discount of a reward one token later", low=0.0, high=1.0, of=("critic",)
    )
    lam: Number = setting(
        0.95, "λ: 0 trusts the critic, 1 the rewards alone", low=0.0, high=1.0, of=("critic",)
    )
    critic_lr: Number = setting(
        1e-3, "learning rate of the critic", above=0.0, high=1.0, of=("critic",)
    )
    teacher: Text = setting(
        "grpo", "a model's name or path, or a recipe that makes the teacher", of=("taught",)
    )
    resample: Whole | None = setting(
        2,
        "batches more at most, until enough groups hold right and wrong answers; "
        "null: one batch, and all of its groups",
        low=0,
        of=("resamples",),
        local="TRL draws one batch a step and keeps all of its groups",
        otherwise=None,
    )
    overlong_buffer: Whole = setting(
        0,
        "tokens before max_tokens in which the reward falls by 1; 0: none",
        low=0,
        of=("resamples",),
    )
    pairs: Text | None = setting(
        None,
        "JSONL of prompt, chosen, rejected; null: pairs of the policy's own completions",
        of=("compares_pairs",),
    )
    questions: Whole = setting(
        400, "questions whose completions make these pairs", low=1, of=("compares_pairs",)
    )

    @model_validator(mode="after")
    def _fit_together(self):
        for wrong, sentence in (
            (
                self.sampler_staleness >= self.steps,
                f"sampler_staleness must be less than steps, {self.steps}, "
                f"not {self.sampler_staleness}: no batch would come from a trained policy",
            ),
            (
                self.overlong_buffer > self.max_tokens,
                f"overlong_buffer must be at most max_tokens, {self.max_tokens}, "
                f"not {self.overlong_buffer}",
            ),
            (
                self.reference_every and self.beta == 0,
                "reference_every renews the reference of the KL divergence: "
                "set beta greater than 0",
            ),
            (
                self.reference_every and self.lora,
                "with lora the reference is the model without its adapters, which "
                "reference_every cannot renew: remove one of the two",
            ),
            (
                self.lora and self.dtype != "float32" and self.eval_dtype == "float32",
                f"with lora the weights are in {self.dtype}, so eval_dtype=float32 would measure "
                "nothing more precisely: remove eval_dtype, or set dtype=float32",
            ),
        ):
            if wrong:
                raise UserError(sentence)
        return self
