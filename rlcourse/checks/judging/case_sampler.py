"""Random arguments for cases: shapes, padding, precision and the corners where code breaks."""

import random
from collections.abc import Iterator

import torch
from torch import Tensor

HIDDEN_SEED_OFFSET = 7_919  # hidden cases never repeat the visible ones of the same seed


class CaseSampler:
    """A source of random arguments, float64 unless said; hidden cases are larger.

    The same seed draws the same; ``seed=None`` draws fresh ones every time.
    """

    def __init__(self, seed: int | None = None, hidden: bool = False):
        if seed is None:
            seed = random.SystemRandom().getrandbits(31)
        self.seed = seed + HIDDEN_SEED_OFFSET * hidden
        self.hidden = hidden
        self._generator = torch.Generator().manual_seed(self.seed)

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(torch.randint(low, high + 1, (), generator=self._generator))

    def size(self, low: int, high: int) -> int:
        """A length; hidden ones reach two further."""
        return self.integer(low, high + 2 * self.hidden)

    def shape(self) -> tuple[int, int]:
        """(N, T) with N ≠ T."""
        rows, tokens = self.size(2, 4), self.size(2, 5)
        return (rows, tokens) if rows != tokens else (rows, tokens + 1)

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(shape, generator=self._generator, dtype=torch.float64)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        unit = torch.rand(shape, generator=self._generator, dtype=torch.float64)
        return low + (high - low) * unit

    def integers(self, *shape: int, high: int) -> Tensor:
        """Long integers from 0 to high − 1, such as actions or tokens."""
        return torch.randint(high, shape, generator=self._generator)

    def logprobs(self, *shape: int) -> Tensor:
        """Log-probs of sampled tokens, nats; also on padding, where they must not matter."""
        return self.uniform(*shape, low=-3.0, high=-0.05)

    def near(self, logprobs: Tensor, spread: float | Tensor = 0.5) -> Tensor:
        """Log-probs of the same tokens under a neighboring policy: below 0, as all are."""
        moved = logprobs + spread * self.normal(*logprobs.shape)
        return -moved.abs().to(logprobs.dtype)

    def lengths(self, rows: int, tokens: int) -> Tensor:
        """(N,) real tokens per row: at least one row is full and one is padded (if N, T > 1)."""
        lengths = 1 + self.integers(rows, high=tokens)
        lengths[self.integer(0, rows - 1)] = tokens
        if rows > 1 and (lengths == tokens).all():
            shortened = (lengths.argmax() + 1) % rows
            lengths[shortened] = max(1, tokens - 1)
        return lengths

    def mask(self, rows: int, tokens: int) -> Tensor:
        """(N, T) bool, right-padded."""
        return mask_of(self.lengths(rows, tokens), tokens)

    def batches(self) -> Iterator[tuple[str, Tensor, Tensor]]:
        """(label, logprobs (N, T), mask (N, T)): what every loss over tokens must survive."""
        yield "one token", self.logprobs(1, 1), torch.ones(1, 1, dtype=torch.bool)
        yield "one row", self.logprobs(1, tokens := self.size(2, 4)), torch.ones(1, tokens) > 0
        rows, tokens = self.shape()
        yield "no padding", self.logprobs(rows, tokens), torch.ones(rows, tokens) > 0
        rows, tokens = self.shape()
        yield "padded rows", self.logprobs(rows, tokens), self.mask(rows, tokens)
        side = self.size(2, 4)
        yield "N equals T", self.logprobs(side, side), torch.ones(side, side) > 0
        side = self.size(3, 4)
        yield "N equals T, padded rows", self.logprobs(side, side), self.mask(side, side)
        rows, tokens = self.shape()
        yield "an empty row", self.logprobs(rows, tokens), self.mask_with_empty_row(rows, tokens)
        rows, tokens = self.shape()
        yield "every row empty", self.logprobs(rows, tokens), torch.zeros(rows, tokens) > 0
        rows, tokens = self.shape()
        yield "a float mask", self.logprobs(rows, tokens), self.mask(rows, tokens).double()
        rows, tokens = self.shape()
        yield "float32", self.logprobs(rows, tokens).float(), self.mask(rows, tokens)
        rows, tokens = self.size(6, 8), self.size(9, 12)
        yield "a larger batch", self.logprobs(rows, tokens), self.mask(rows, tokens)

    def mask_with_empty_row(self, rows: int, tokens: int) -> Tensor:
        """As `mask`, with one row (not the only one) that has no real token."""
        lengths = self.lengths(rows, tokens)
        lengths[(lengths.argmax() + 1) % rows] = 0
        return mask_of(lengths, tokens)

    def rewards(self, rows: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """(N,) of either sign, no two alike, none near 0."""
        signs = 2.0 * self.integers(rows, high=2) - 1
        return (signs * self.uniform(rows, low=0.3, high=2.0)).to(dtype)

    def binary_rewards(self, rows: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """(N,) of 0 and 1, both present when N > 1."""
        rewards = self.integers(rows, high=2)
        rewards[self.integer(0, rows - 1)] = 1
        if rows > 1 and rewards.min() == 1:
            rewards[self.integer(0, rows - 1)] = 0
        return rewards.to(dtype)

    def probabilities(self, *shape: int) -> Tensor:
        """Rows that sum to 1, none of them near 0."""
        return self.normal(*shape).softmax(dim=-1)


def mask_of(lengths: Tensor, tokens: int) -> Tensor:
    """(N, T) bool with `lengths[i]` leading ones in row i."""
    return torch.arange(tokens) < lengths[:, None]


def tensor(values) -> Tensor:
    """Worked numbers in float64."""
    return torch.tensor(values, dtype=torch.float64)
