"""Groups of settings: those that are about one thing, with the rules between them.

`settings.py` makes each algorithm's class of them. A setting is declared once, with its default.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from rlcourse.errors import UserError
from rlcourse.training.faults.catalog import FAULTS
from rlcourse.training.recipes.declaring import OFF, Settings, setting
from rlcourse.training.recipes.values import (
    Adapters,
    Number,
    RewardWeights,
    Text,
    TokenWeights,
    Truth,
    Whole,
    one_of,
)

Precision = Literal["float32", "bfloat16", "float16"]

# Groups that every method has

ALGORITHM: Any = Field(description="how the policy learns")


class Problems(Settings):
    """What is learned, from where, by whom."""

    algorithm: str = ALGORITHM
    policy: Text = setting("tiny", "'tiny' (embedded), or a Hugging Face model's name or path")
    task: Text = setting(
        "word_problems", "'word_problems', 'calculator', 'stories', 'gsm8k', or a path to JSONL"
    )
    data: Text | None = setting(None, "directory of its data; null: embedded or downloaded")
    task_options: dict[str, Any] = setting({}, "options handed to the task, such as its level")
    system: Text | None = setting(None, "system message put before every question")
    extract: Literal["marked", "tagged", "strict_tagged", "lenient"] | None = setting(
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


class Descent(Settings):
    """Steps down a gradient."""

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
    betas: tuple[
        Annotated[Number, Field(ge=0, le=0.9999999)], Annotated[Number, Field(ge=0, le=0.9999999)]
    ] = setting((0.9, 0.95), "AdamW's two averaging factors")
    weight_decay: Number = setting(
        0.0, "AdamW's weight decay", low=0.0, high=1.0, trl="weight_decay"
    )
    max_grad_norm: Number = setting(
        1.0, "longer gradients are shortened to this", above=0.0, trl="max_grad_norm"
    )


class Machine(Settings):
    """Memory, speed and precision."""

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


class Evaluation(Settings):
    """Measuring on held-out problems."""

    eval_problems: Whole = setting(200, "held-out problems before and after; 0: none", low=0)
    eval_every: Whole = setting(0, "steps between greedy evaluations on the way; 0: none", low=0)


# Groups that some methods have


class Sampling(Settings):
    """Completions that the policy writes."""

    group_size: Whole = setting(
        8, "completions sampled for each question", low=1, trl="num_generations"
    )
    temperature: Number = setting(
        1.0, "sampling temperature", above=0.0, high=10.0, trl="temperature"
    )
    top_k: Whole | None = setting(None, "sample from the k likeliest tokens only", low=1)
    top_p: Number | None = setting(
        None, "sample from the likeliest tokens that hold this probability", above=0.0, high=1.0
    )


class Passes(Settings):
    """Several optimizer steps on one batch."""

    num_iterations: Whole = setting(1, "μ: passes over each batch", low=1, trl="num_iterations")
    minibatches: Whole = setting(1, "optimizer steps in each of these passes", low=1)

    @model_validator(mode="after")
    def _has_rows_for_each_step(self):
        rows = self.method.rows(self.prompts_per_step, self.group_size)
        if self.minibatches > rows:
            raise UserError(
                f"minibatches must be at most {rows}, the rows of a batch, not {self.minibatches}"
            )
        return self


class Online(Sampling, Passes):
    """Batches of the policy's own completions, written while it learns."""

    instead: ClassVar[dict[str, str]] = {
        "truncate": "weighs whole completions, and truncate weighs tokens",
        "beta": "has no KL penalty",
    }
    sampler_staleness: Whole = setting(
        0,
        "steps that a batch is older than the policy that learns from it",
        low=0,
        local="TRL writes each batch with the policy that learns",
    )
    overlong_filter: Truth = setting(
        False,
        "learn nothing from completions that were cut off at max_tokens",
        local="TRL leaves them out otherwise",
    )
    fault: Annotated[str, one_of(FAULTS)] | None = setting(
        None,
        "a mistake to train with, for lesson 10: see rlcourse train --faults",
        local="faults are put into the local engine's loop",
    )

    @model_validator(mode="after")
    def _learns_from_a_trained_policy(self):
        if self.sampler_staleness >= self.steps:
            raise UserError(
                f"sampler_staleness must be less than steps, {self.steps}, "
                f"not {self.sampler_staleness}: no batch would come from a trained policy"
            )
        return self


class Ratio(Settings):
    """A probability ratio of the policy to an older one."""

    old_logprobs: Literal["sampled", "recomputed"] = setting(
        "sampled", "the ratio's denominator: as sampled, or computed anew by the trainer"
    )


class Clipped(Ratio):
    """A ratio that is clipped."""

    instead: ClassVar[dict[str, str]] = {"clip_high": "clips at clip={clip:g} on both sides"}
    clip: Number = setting(0.2, "ε: the ratio is clipped to [1 − ε, 1 + ε]", above=0.0)


class Wide(Clipped):
    """A ratio that may rise further than it may fall."""

    clip_high: Number | None = setting(None, "ε upward; null: the same as clip", above=0.0)


class Bounded(Ratio):
    """A ratio that is a weight, up to a bound."""

    cap: Number = setting(5.0, "a token's ratio weighs this at most", above=0.0)


class Critic(Settings):
    """A value for each token."""

    gamma: Number = setting(1.0, "discount of a reward one token later", low=0.0, high=1.0)
    lam: Number = setting(0.95, "λ: 0 trusts the critic, 1 the rewards alone", low=0.0, high=1.0)
    critic_lr: Number = setting(1e-3, "learning rate of the critic", above=0.0, high=1.0)


class Taught(Settings):
    """A teacher that says of each token how likely it would have written it."""

    teacher: Text = setting("grpo", "a model's name or path, or a recipe that makes the teacher")
    teacher_gamma: Number = setting(0.0, "discount of its word on later tokens", low=0.0, high=1.0)


class Selective(Settings):
    """A choice among completions."""

    keep_reward: Number = setting(1.0, "learn from completions of this reward or more")


class Resampling(Settings):
    """Batches that are drawn until there is something in them to learn from."""

    resample: Whole | None = setting(
        2,
        "batches more at most, until enough groups hold right and wrong answers; "
        "null: one batch, and all of its groups",
        low=0,
        local="TRL draws one batch a step and keeps all of its groups",
        otherwise=None,
    )
    overlong_buffer: Whole = setting(
        0, "tokens before max_tokens in which the reward falls by 1; 0: none", low=0
    )

    @model_validator(mode="after")
    def _buffer_fits(self):
        if self.overlong_buffer > self.max_tokens:
            raise UserError(
                f"overlong_buffer must be at most max_tokens, {self.max_tokens}, "
                f"not {self.overlong_buffer}"
            )
        return self


class TokenWeighted(Settings):
    """An advantage for each token, which can be weighed."""

    truncate: TokenWeights = setting(
        {},
        "weights trainer/sampler for tokens, such as {mode: truncate, cap: 2}",
        local="TRL does it otherwise",
    )


class Normalized(Settings):
    """Rewards divided by the spread of their group."""

    advantage_eps: Number = setting(
        1e-4, "added to the standard deviation of a group", low=0.0, local="TRL adds 1e-4"
    )


class Penalized(Settings):
    """A penalty for leaving the start."""

    beta: Number = setting(0.0, "weight of the KL divergence from the start", low=0.0, trl="beta")


class Anchored(Penalized):
    """A penalty whose reference can be renewed, and a bonus for staying undecided."""

    entropy_bonus: Number = setting(
        0.0,
        "weight of the mean entropy of the policy's tokens (nats), which is raised",
        low=0.0,
        local="TRL means its entropy otherwise",
    )
    reference_every: Whole = setting(
        0,
        "steps after which the policy becomes the reference of that divergence; 0: never",
        low=0,
        local="TRL mixes the two, or does not do it at all",
    )

    @model_validator(mode="after")
    def _has_a_reference_to_renew(self):
        if self.reference_every and self.beta == 0:
            raise UserError(
                "reference_every renews the reference of the KL divergence: set beta greater than 0"
            )
        if self.reference_every and self.lora:
            raise UserError(
                "with lora the reference is the model without its adapters, which reference_every "
                "cannot renew: remove one of the two"
            )
        return self


class TrainsPolicy(Settings):
    """A policy that is measured by its completions."""

    eval_samples: Whole = setting(8, "completions of each held-out problem, for pass@k", low=1)
    eval_temperature: Number = setting(1.0, "their temperature", above=0.0, high=10.0)
    eval_top_k: Whole | None = setting(None, "top_k of these completions", low=1)
    eval_top_p: Number | None = setting(None, "top_p of these completions", above=0.0, high=1.0)
    eval_dtype: Precision | None = setting(
        None, "precision of the arithmetic in evaluations; null: dtype"
    )


class Adapted(TrainsPolicy):
    """A policy alone, which can have adapters."""

    lora: Adapters = setting({}, "adapters in place of all weights, such as {rank: 16, alpha: 32}")

    @model_validator(mode="after")
    def _has_weights_as_precise_as_its_evaluation(self):
        if self.lora and self.dtype != "float32" and self.eval_dtype == "float32":
            raise UserError(
                f"with lora the weights are in {self.dtype}, so eval_dtype=float32 would measure "
                "nothing more precisely: remove eval_dtype, or set dtype=float32"
            )
        return self


OFF.update(
    {
        name: field.default
        for group in (Online, TokenWeighted, Anchored, Ratio)
        for name, field in group.model_fields.items()
    }
)
OFF |= {"group_size": 1, "lora": {}}
NOT_ONLINE = dict.fromkeys(OFF.keys() - {"lora"}, "samples nothing while it learns")


class Imitation(Passes):
    """Demonstrations in place of completions."""

    instead: ClassVar[dict[str, str]] = NOT_ONLINE


class WithHead(Settings):
    """A scalar head, which is trained."""

    instead: ClassVar[dict[str, str]] = {"lora": "trains a head, which has no adapters"}


class Smoothed(Settings):
    """Pairs, some of which are the wrong way round."""

    label_smoothing: Number = setting(
        0.0, "share of pairs taken to be mislabeled", low=0.0, high=0.5, local="TRL ignores it"
    )


class Pairs(Sampling):
    """Pairs of completions, from a file or from the policy as it is at the start."""

    pairs: Text | None = setting(
        None, "JSONL of prompt, chosen, rejected; null: pairs of the policy's own completions"
    )
    questions: Whole = setting(400, "questions whose completions make these pairs", low=1)
    instead: ClassVar[dict[str, str]] = NOT_ONLINE | {
        "num_iterations": "makes one update of each batch",
        "minibatches": "makes one update of each batch",
    }
