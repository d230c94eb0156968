"""Rows that are read one after another instead of side by side, so that none of them is padding.

Completions of a group differ in length, and side by side the shorter ones are read up to the length
of the longest: on GSM8K, in micro-batches of 8, 30 % of the places (bench_batching.py counts them).
Here a group is one text, prompt first, then its completions; a mask lets each token see its prompt
and its own completion, and positions count as if nothing else were there. Attention to the others'
tokens is computed and thrown away, so a text has about `PLACES` places, and more make several.

Source: Krell et al. 2021, "Efficient Sequence Packing without Cross-contamination".
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.policies import token_logprobs
from rlcourse.policy.rollouts import Rollouts
from rlcourse.policy.static_decoding import can_decode_statically
from rlcourse.training.networks.gradient_checkpointing import (
    block_inputs_only,
    uses_gradient_checkpointing,
)

PLACES = 2048


def can_be_packed(policy) -> bool:
    """Whether the policy's attention takes such a mask, and its log-probs look at single tokens."""
    return can_decode_statically(policy.model) and policy.token_logprobs is token_logprobs


def packed_logprobs(policy, batch: Rollouts) -> Tensor:
    """``policy.logprobs(batch)`` (n, T), reading its rows one after another."""
    texts = Texts.of(batch)
    tokens = texts.tokens.flatten()[texts.scored][None]
    seen = torch.ones_like(tokens, dtype=torch.bool)
    unknown = torch.zeros(tokens.shape, device=tokens.device)
    # As if it were a single completion. What is predicted across two of them is not used.
    one = Rollouts(
        tokens[:, :1], seen[:, :1], tokens[:, 1:], seen[:, 1:], unknown, 1, batch.temperature
    )
    recompute = uses_gradient_checkpointing(policy.model)
    with block_inputs_only(policy.model) if recompute else nullcontext():
        found = policy.logprobs_of(one, partial(read_texts, texts, policy.model.dtype))
    placed = found.new_zeros(batch.mask.shape)
    placed[texts.row, texts.column] = found[0, texts.predicted]
    return placed


@dataclass(frozen=True)
class Texts:
    """The rows of a batch as a few texts of L places, the last of them padded."""

    tokens: Tensor  # (texts, L) long
    positions: Tensor  # (texts, L) long, as each row counts them
    prompt: Tensor  # (texts, L) long, the prompt that a token belongs to; −1 for padding
    completion: Tensor  # (texts, L) long, the row that it belongs to; −1 for prompts
    # Of all rows' scored tokens, a prompt's last and its completion, one row after another:
    scored: Tensor  # (S,) their places in the flattened texts
    # Of all completions' tokens, where their log-prob comes from and where it belongs:
    predicted: Tensor  # among the S
    row: Tensor
    column: Tensor

    @classmethod
    def of(cls, batch: Rollouts) -> "Texts":
        """Texts of about `PLACES` places, rows with the same prompt together."""
        n, width = batch.prompt_tokens.shape
        shown = torch.cat([batch.prompt_mask.long(), batch.prompt_tokens], dim=1)
        _, groups = torch.unique(shown, dim=0, return_inverse=True)
        counts = torch.stack([groups, batch.prompt_mask.sum(1), batch.mask.sum(1)]).tolist()
        facts = list(zip(range(n), *counts, strict=True))
        total = sum(length for *_, length in facts) + sum(
            {group: length for _, group, length, _ in facts}.values()
        )
        most = total / -(-total // PLACES)
        made: list[_Text] = []
        for row, group, prompt, length in sorted(facts, key=lambda fact: fact[1]):
            if not made or (made[-1].length > 0 and made[-1].length + length > most + length / 2):
                made.append(_Text())
            made[-1].add(row, group, prompt, length, width, width + batch.tokens.shape[1])
        return cls._of(batch, made)

    @classmethod
    def _of(cls, batch: Rollouts, made: "list[_Text]") -> "Texts":
        longest, device = max(text.length for text in made), batch.tokens.device
        columns = [
            torch.nn.utils.rnn.pad_sequence(
                [torch.cat(getattr(text, name)) for text in made], True, padding
            )
            for name, padding in (("source", 0), ("position", 0), ("prompt", -1), ("row", -1))
        ]
        pairs = [
            (row, places + i * longest)
            for i, text in enumerate(made)
            for row, places in text.scored.items()
        ]
        lengths = torch.tensor([len(places) - 1 for _, places in pairs])
        rows = torch.tensor([row for row, _ in pairs]).repeat_interleave(lengths)
        column = torch.cat([torch.arange(n) for n in lengths.tolist()])
        # Each row begins after the rows before it, which have a place more than tokens predicted.
        begins = (lengths + 1).cumsum(0) - lengths - 1
        predicted = begins.repeat_interleave(lengths) + column
        scored = torch.cat([places for _, places in pairs])
        moved = [x.to(device) for x in (*columns, scored, predicted, rows, column)]
        everything = torch.cat([batch.prompt_tokens, batch.tokens], dim=1).flatten()
        return cls(everything[moved[0]], *moved[1:])

    def hidden(self, dtype: torch.dtype) -> Tensor:
        """What is added to scores (texts, 1, L, L): 0 where a token sees another, and −inf."""
        places = self.tokens.shape[1]
        earlier = torch.ones(places, places, dtype=torch.bool, device=self.tokens.device).tril()
        seen = earlier & (self.prompt[:, :, None] == self.prompt[:, None])
        of_prompt = self.completion[:, None] == -1
        seen &= of_prompt | (self.completion[:, :, None] == self.completion[:, None])
        hidden = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
        return hidden.masked_fill_(~seen, -torch.inf)[:, None]


class _Text:
    """A text that rows are added to."""

    def __init__(self):
        self.length = 0
        self.source: list[Tensor] = []  # places in the batch's flattened tokens
        self.position: list[Tensor] = []
        self.prompt: list[Tensor] = []
        self.row: list[Tensor] = []
        self.scored: dict[int, Tensor] = {}
        self.ends: dict[int, int] = {}  # of each prompt that is here, the place of its last token

    def add(self, row: int, group: int, prompt: int, length: int, width: int, stride: int) -> None:
        """Append a completion, after its prompt if that is not here yet."""
        first = row * stride + width
        if group not in self.ends:
            self._append(torch.arange(first - prompt, first), 0, group, -1)
            self.ends[group] = self.length - 1
        begin = self.length
        self._append(torch.arange(first, first + length), prompt, group, row)
        places = torch.arange(begin, self.length)
        self.scored[row] = torch.cat([torch.tensor([self.ends[group]]), places])

    def _append(self, source: Tensor, position: int, group: int, row: int) -> None:
        self.source.append(source)
        self.position.append(torch.arange(position, position + len(source)))
        self.prompt.append(torch.full_like(source, group))
        self.row.append(torch.full_like(source, row))
        self.length += len(source)


def read_texts(texts: Texts, dtype: torch.dtype, read: Callable) -> Tensor:
    """What `read` makes of the scored places (1, S, …)."""
    device = texts.tokens.device.type
    if torch.is_autocast_enabled(device):  # the mask's, or every layer would round it anew
        dtype = torch.get_autocast_dtype(device)
    found = read(
        keep=texts.tokens.shape[1],
        input_ids=texts.tokens,
        attention_mask=texts.hidden(dtype),
        position_ids=texts.positions,
        use_cache=False,
    )
    return found.flatten(0, 1)[texts.scored][None]
