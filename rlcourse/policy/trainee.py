"""A policy in other hands: a trainer lets it answer, reads log-probs and takes steps, no more.

The weights stay with a ``Holder``, which draws and rewards every completion itself, and learns from
nothing else. A trainer has a ``Trainee``, which may be in another process.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlcourse.policy.rollouts import Rollouts

MAX_TOKENS = 32  # of a completion
MOST_AT_ONCE = 256  # completions of one call
LARGEST_RATE = 0.1
SPENT = "the budget of {} completions is spent"


@dataclass(frozen=True)
class Attempts:
    """N completions that the policy has written, G for each question; those of one are adjacent."""

    number: int  # by which the holder knows them
    texts: list[str]
    tokens: Tensor  # (N, T) long, padding after the end
    mask: Tensor  # (N, T) bool, True up to and including the end of the text
    old_logprobs: Tensor  # (N, T) nats, as sampled; 0 on padding
    rewards: Tensor  # (N,) float32


class Trainee:
    """The trainer's side of a policy that somebody else holds."""

    def __init__(self, call: Callable[..., Any]):
        self._call = call

    def answer(self, questions: list[str], group_size: int = 1) -> Attempts:
        """Let the policy write `group_size` completions of each question, and have them rewarded.
        Each costs one of the budget; a call for more than is left raises RuntimeError."""
        return Attempts(*self._call("answer", questions=list(questions), group_size=group_size))

    def logprobs(self, attempts: Attempts) -> Tensor:
        """Log-probs (N, T) in nats under the present policy, 0 on padding. The gradient of what is
        computed from them reaches the policy, where it adds up until the next step."""
        number = attempts.number
        leaf = self._call("logprobs", batch=number).requires_grad_()
        leaf.register_hook(lambda gradient: self._call("learn", batch=number, weights=gradient))
        return leaf.clone()

    def step(self, lr: float, max_norm: float = 1.0) -> float:
        """One step of AdamW down the gradient, clipped to `max_norm`, which is then forgotten.
        Returns the gradient's length before clipping."""
        return self._call("step", lr=float(lr), max_norm=float(max_norm))


class Holder:
    """Holds a policy and does what a trainee asks for. Nothing in a call is believed.

    `reward` of N questions and N completions is (N,), and raises on a question that it lacks.
    """

    def __init__(self, policy, reward: Callable, completions: int, seed: int = 0):
        self.policy, self._reward, self.budget = policy, reward, completions
        weights = policy.parameters()
        self._optimizer = torch.optim.AdamW(weights, betas=(0.9, 0.95), weight_decay=0.0)
        self._generator = torch.Generator().manual_seed(seed)
        self._read: tuple[int, Any] = -1, None  # the batch whose graph is kept, and its log-probs
        self.batches: list[Rollouts] = []
        self.asked: list[str] = []  # the question of each completion
        self.rewards: list[float] = []
        self.steps = 0
        self.refused = self.broken = False  # too much was asked for; a gradient was no number
        self.turned = False  # the first step made right answers rarer, more than wrong ones

    def __call__(self, do: str, **given: Any) -> Any:
        if do not in ("answer", "logprobs", "learn", "step"):
            raise ValueError(f"a policy does not {do}")
        with torch.enable_grad():
            return getattr(self, f"_{do}")(**given)

    def _answer(self, questions: Any, group_size: Any) -> tuple:
        if not (isinstance(questions, list) and all(type(q) is str for q in questions)):
            raise TypeError("answer takes a list of questions")
        if type(group_size) is not int or not 1 <= group_size * len(questions) <= MOST_AT_ONCE:
            raise ValueError(f"answer gives 1 to {MOST_AT_ONCE} completions at once")
        asked = [question for question in questions for _ in range(group_size)]
        if len(self.asked) + len(asked) > self.budget:
            self.refused = True
            raise RuntimeError(SPENT.format(self.budget))
        prompts = [self.policy.format_prompt(question) for question in questions]
        drawn = self.policy.sample(prompts, group_size, MAX_TOKENS, generator=self._generator)
        texts = self.policy.decode(drawn)
        rewards = self._reward(asked, texts)
        self.batches.append(drawn)
        self.asked += asked
        self.rewards += rewards.tolist()
        given = drawn.tokens, drawn.mask, drawn.old_logprobs, rewards
        return len(self.batches) - 1, texts, *(tensor.clone() for tensor in given)

    def _logprobs(self, batch: Any) -> Tensor:
        if type(batch) is not int or not 0 <= batch < len(self.batches):
            raise ValueError("logprobs takes what answer returned")
        logprobs = self.policy.logprobs(self.batches[batch])
        self._read = batch, logprobs
        return logprobs.detach().clone()

    def _learn(self, batch: Any, weights: Any) -> None:
        if self._read[0] != batch:
            self._logprobs(batch)
        logprobs, self._read = self._read[1], (-1, None)
        if not isinstance(weights, Tensor) or weights.shape != logprobs.shape:
            raise ValueError("a gradient has the shape of its log-probs")
        if not weights.isfinite().all():
            self.broken = True
            raise ValueError("the gradient is infinite or NaN")
        logprobs.backward(weights.to(logprobs.dtype))

    def _step(self, lr: Any, max_norm: Any) -> float:
        if not all(type(x) in (int, float) and x >= 0 for x in (lr, max_norm)) or lr > LARGEST_RATE:
            raise ValueError(f"step takes a learning rate from 0 to {LARGEST_RATE} and a length")
        weights = self.policy.parameters()
        length = torch.nn.utils.clip_grad_norm_(weights, max_norm, error_if_nonfinite=True)
        self._optimizer.param_groups[0]["lr"] = lr
        self._optimizer.step()
        self._optimizer.zero_grad()
        self._read = -1, None
        self.steps += 1
        if self.steps == 1 and self.batches:
            self.turned = self._lowers_right_ones(self.batches[0])
        return length.item()

    @torch.no_grad()
    def _lowers_right_ones(self, batch: Rollouts) -> bool:
        change = (self.policy.logprobs(batch) - batch.old_logprobs).sum(1)
        right = torch.tensor(self.rewards[: len(batch)]) > 0
        return bool(change[right].mean() < min(0.0, change[~right].mean()))
