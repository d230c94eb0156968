"""The algorithms: what each is made of, and what the rest of the package must know about it.

`METHODS` is the one place that tells one algorithm from another: its functions, its facts, the
settings that it has besides those that follow from the facts, and the trainer of TRL's that does
the same. Nothing else compares names of algorithms. To add one, add a row here; from
outside the package, call `add_method`.

Functions are given by their names in ``rlcourse.algorithms``, which is imported when one of them
is called: recipes are checked against this table, and reading a recipe must not wait for torch.
"""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from rlcourse.errors import UserError

Function = str | Callable  # a string names one of ``rlcourse.algorithms``
# Settings that come together.
RATIO: tuple[str, ...] = ("old_logprobs",)
CLIPPED: tuple[str, ...] = (*RATIO, "clip")
WIDE: tuple[str, ...] = (*CLIPPED, "clip_high")
KL: tuple[str, ...] = ("beta", "entropy_bonus", "reference_every")


@dataclass(frozen=True)
class TRL:
    """What ``--engine trl`` makes of a method."""

    trainer: str | None = None  # "GRPO" of GRPOTrainer; None: it is refused
    # Of its config: what tells methods apart.
    arguments: dict[str, str] = field(default_factory=dict, hash=False)
    otherwise: tuple[str, ...] = ()  # metrics of ours that TRL computes in another way
    instead: str = ""  # a method that TRL does have
    divides_by_all: bool = False  # its loss by the tokens of all minibatches together


@dataclass(frozen=True)
class Method:
    """One row of the table: an estimator of advantages, a loss, and facts."""

    loss: Function
    advantages: Function | None = None  # None: the advantages are the plain rewards
    functions: tuple[Function, ...] = ()  # others it is made of
    # Settings that these functions ask for; None: their signatures say which.
    settings: tuple[str, ...] | None = None
    imitates: bool = False  # learns from demonstrations, samples nothing
    compares_pairs: bool = False  # learns from pairs of completions, see preferences/
    compares_groups: bool = False  # compares a prompt's completions, so it needs several
    keeps_rewarded: bool = False  # learns from the rewarded completions only
    resamples: bool = False  # asks until enough groups have a signal, see dynamic_sampling.py
    critic: bool = False  # has a critic, see critic.py
    taught: bool = False  # has a teacher, see online/distilling.py
    trains_policy: bool = True  # False: it trains a reward model
    sequence_ratio: bool = False  # has one probability ratio for all tokens of a completion
    weighs_tokens: bool = False  # its loss takes an advantage for each token, too
    step: Callable | None = None  # all updates of a batch; None: the loop's own
    trl: TRL = TRL()

    @property
    def samples(self) -> bool:
        """Whether each training step samples completions."""
        return not (self.imitates or self.compares_pairs)

    @property
    def adapts(self) -> bool:
        """Whether the policy is all that is trained, which can then have adapters."""
        return self.trains_policy and not self.critic

    def rows(self, prompts: int, group_size: int) -> int:
        """Rows of a step: a demonstration each, a pair's two completions, or a group."""
        return prompts * (1 if self.imitates else 2 if self.compares_pairs else group_size)

    def uses(self, name: str) -> bool:
        """Whether a function of that name is among `functions`."""
        return any(name_of(function) == name for function in self.functions)

    def function(self, name: str) -> Callable:
        """The function of that name among `functions`."""
        return next(resolved(f) for f in self.functions if name_of(f) == name)

    def also_using(self, name: str) -> "Method":
        """The method with one more function, that of this name."""
        return self if self.uses(name) else replace(self, functions=(*self.functions, name))

    def using(self, functions: Iterable[Callable], algorithm: str) -> "Method":
        """The method with these functions in place of its own of the same ``__name__``.

        Raises:
            UserError: `algorithm`, as the method is called, has no function of that name.
        """
        own = [name_of(f) for f in (self.loss, self.advantages, *self.functions) if f is not None]
        given = {}
        for function in functions:
            name = name_of(function)
            if name not in own:
                close = difflib.get_close_matches(name, own, n=1)
                hint = f": did you mean '{close[0]}'?" if close else f"; it uses {', '.join(own)}"
                raise UserError(f"{algorithm} uses no function '{name}'{hint}")
            given[name] = function

        def now(function: Function) -> Function:
            return given.get(name_of(function), function)

        return replace(
            self,
            loss=now(self.loss),
            advantages=None if self.advantages is None else now(self.advantages),
            functions=tuple(now(function) for function in self.functions),
        )


def name_of(function: Function) -> str:
    """What a function is called."""
    if isinstance(function, str):
        return function
    return getattr(function, "__name__", type(function).__name__)


def resolved(function: Function) -> Callable:
    """The function itself, where it was given by its name in ``rlcourse.algorithms``."""
    if isinstance(function, str):
        from rlcourse import algorithms

        return getattr(algorithms, function)
    return function


METHODS = {
    "sft": Method("sft_loss", settings=(), imitates=True),
    "rejection_sampling": Method(
        "sft_loss", settings=(), keeps_rewarded=True, trl=TRL(instead="grpo")
    ),
    "reinforce": Method("reinforce_loss", settings=(), trl=TRL(instead="rloo")),
    "rloo": Method(
        "reinforce_loss",
        "leave_one_out_advantages",
        settings=(),
        compares_groups=True,
        # Of a ratio that is 1; only the gradient of its loss is ours.
        trl=TRL("RLOO", otherwise=("clip_ratio", "loss")),
    ),
    "ppo": Method(
        "ppo_clip_loss",
        "gae",
        ("kl_shaped_rewards", "whiten", "value_loss"),
        settings=(*KL, *CLIPPED),
        critic=True,
        weighs_tokens=True,
        trl=TRL(instead="grpo"),
    ),
    "grpo": Method(
        "grpo_loss",
        "group_normalized_advantages",
        settings=(*KL, "advantage_eps", *CLIPPED),
        compares_groups=True,
        weighs_tokens=True,
        # TRL's loss type: the mean over each completion's tokens, then over completions.
        trl=TRL("GRPO", {"loss_type": "grpo"}),
    ),
    "dr_grpo": Method(
        "dr_grpo_loss",
        "group_mean_advantages",
        settings=CLIPPED,
        compares_groups=True,
        weighs_tokens=True,
        trl=TRL("GRPO", {"loss_type": "dr_grpo", "scale_rewards": "none"}),
    ),
    "dapo": Method(
        "dapo_loss",
        "group_normalized_advantages",
        ("informative_groups", "overlong_penalty"),
        settings=("advantage_eps", *WIDE),
        compares_groups=True,
        resamples=True,
        weighs_tokens=True,
        trl=TRL("GRPO", {"loss_type": "dapo"}, divides_by_all=True),
    ),
    "gspo": Method(
        "gspo_loss",
        "group_normalized_advantages",
        settings=("advantage_eps", *CLIPPED),
        compares_groups=True,
        sequence_ratio=True,
        # Completions have one ratio each, so the mean over tokens is the completion's own; TRL's
        # clip ratio counts completions, ours tokens.
        trl=TRL(
            "GRPO",
            {"loss_type": "grpo", "importance_sampling_level": "sequence"},
            otherwise=("clip_ratio",),
        ),
    ),
    "cispo": Method(
        "cispo_loss",
        "group_normalized_advantages",
        settings=("advantage_eps", *RATIO, "cap"),
        compares_groups=True,
        weighs_tokens=True,
        trl=TRL(instead="dapo"),
    ),
    "distill": Method(
        "dapo_loss",
        "reverse_kl_advantages",
        settings=WIDE,
        taught=True,
        weighs_tokens=True,
    ),
    "dpo": Method(
        "dpo_loss",
        functions=("preference_pairs", "sequence_logprobs", "implicit_rewards"),
        settings=("beta",),
        compares_pairs=True,
    ),
    "reward_model": Method(
        "bradley_terry_loss",
        functions=("preference_pairs", "last_token_index", "reward_accuracy"),
        settings=(),
        compares_pairs=True,
        trains_policy=False,
    ),
}
OURS = frozenset(METHODS)


def add_method(name: str, method: Method) -> None:
    """Make `method` the algorithm of that name, in this process; once more, in its place.

    Its settings follow from it: ``load_recipe("rloo", algorithm=name)`` has those that it has.

    Raises:
        UserError: the name is that of an algorithm of the course.
    """
    if name in OURS:
        raise UserError(f"{name} is one of the course's algorithms: give yours another name")
    METHODS[name] = method
