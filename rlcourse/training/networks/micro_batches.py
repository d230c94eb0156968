"""Gradients in pieces: a batch that is too large to be read at once, read a few rows at a time.

Adding up the losses of pieces changes most objectives: a mean over tokens weighs a piece by its
number of tokens, a group's statistics need all of its rows. So the loss is never cut here. What it
reads, ``logprobs``, is first computed for all rows without a graph; the loss of the whole batch
gives ∂L/∂logprobs; and then each piece is read again and passes its part of that gradient on:

    ∂L/∂θ = Σ_pieces (∂L/∂logprobs_piece) · (∂logprobs_piece/∂θ)

This is the chain rule, exact for any loss a student can write. The price is one more forward pass.
Source: gradient caching, Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size".
"""

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from tqdm.std import tqdm

from rlcourse.machine import is_out_of_memory
from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.data.batches import trimmed

T = TypeVar("T")
# What a network makes of rows: a number each, (n,), one a token, (n, T), or several, (n, K, T).
Read = Callable[[Rollouts], Tensor]


class Pass(NamedTuple):
    """What came of a loss and its gradient."""

    loss: Tensor  # without a graph
    values: Tensor  # what was read, the same
    others: tuple  # what else the loss returned
    gradient: Tensor  # of the loss, in what was read
    rows: Tensor  # (n,) bool, which were read with a gradient


class MicroBatches:
    """How many rows `network` reads at once: `rows`, or all of them (None), and fewer once memory
    has run out."""

    def __init__(
        self,
        network: nn.Module,
        rows: int | None = None,
        scaler: torch.amp.GradScaler | None = None,
    ):
        self.network = network
        self.rows = rows
        self.scaled = (lambda loss: loss) if scaler is None else scaler.scale

    def backward(self, read: Read, batch: Rollouts, loss_of: Callable, fresh: bool = False) -> Pass:
        """Put the gradient of ``loss_of(read(batch))[0]`` into the network's ``.grad``.

        `loss_of` is called once. Where `fresh`, the network is still the policy that sampled
        `batch`, and what is read are log-probs: those of rows to which the loss gives no gradient
        are ``batch.old_logprobs``, without a forward pass. In pieces these are everybody's.
        With a scaler all gradients are those of the scaled loss.
        """
        index = torch.arange(len(batch), device=batch.tokens.device)
        likely = index[with_signal(batch)] if fresh else index

        def scaled(values: Tensor) -> tuple[Tensor, tuple]:
            loss, *others = loss_of(values)
            return self.scaled(loss), (loss.detach(), *others)

        def attempt(size: int) -> Pass:
            self.network.zero_grad(set_to_none=True)
            if size >= len(likely):
                return _at_once(read, batch, scaled, likely, self.rows or len(batch))
            return _in_pieces(read, batch, scaled, index, size, fresh)

        return self._until_it_fits(attempt, len(likely))

    @torch.no_grad()
    def read(self, read: Read, batch: Rollouts) -> Tensor:
        """``read(batch)`` without a graph."""
        index = torch.arange(len(batch), device=batch.tokens.device)

        def attempt(size: int):
            return _read(read, batch, index, size)

        return self._until_it_fits(attempt, len(batch))

    def _until_it_fits(self, attempt: Callable[[int], T], n: int) -> T:
        while True:
            size = min(self.rows or n, n)
            try:
                return attempt(size)
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not is_out_of_memory(error) or size <= 1:
                    raise
            # Outside of `except`: the error's traceback would keep the tensors alive.
            self.rows = size // 2
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            tqdm.write(
                f"rlcourse: out of memory with {size} rows at once; continuing with {self.rows} "
                f"(micro_batch={self.rows} starts there, and gives the same gradient)",
                file=sys.stderr,
            )


def with_signal(batch: Rollouts) -> Tensor:
    """Rows (n,) bool that probably get a gradient: those with an advantage, or with a reference
    that may pull at them. What the loss says afterwards decides."""
    if batch.advantages is None or batch.ref_logprobs is not None:
        return torch.ones_like(batch.mask[:, 0])
    rows = batch.advantages.reshape(len(batch), -1).ne(0).any(1)
    rows[:1] |= ~rows.any()  # a loss without any gradient still needs a graph to be called on
    return rows


def _at_once(read: Read, batch: Rollouts, loss_of: Callable, index: Tensor, size: int) -> Pass:
    placed = _placed(read(_some(batch, index)), batch, index)
    values = placed.detach().requires_grad_()
    scaled, (loss, *others) = loss_of(values)
    scaled.backward()
    if values.grad is None:  # the loss reached the network another way
        gradient = torch.zeros_like(values)
    else:
        gradient = values.grad
        placed.backward(gradient)
    seen, rows = values.detach(), _rows_of(gradient)
    if len(index) < len(
        batch
    ):  # otherwise nothing can be missed, and there is no need to wait for the device
        missed = rows.clone()
        missed[index] = False
        _pass_on(read, batch, gradient, missed.nonzero().squeeze(1), size, seen)
    rows[index] = True
    return Pass(loss, seen, tuple(others), gradient, rows)


def _in_pieces(
    read: Read, batch: Rollouts, loss_of: Callable, index: Tensor, size: int, fresh: bool
) -> Pass:
    with torch.no_grad():
        values = batch.old_logprobs.clone() if fresh else _read(read, batch, index, size)
    values.requires_grad_()
    scaled, (loss, *others) = loss_of(values)
    (gradient,) = torch.autograd.grad(scaled, values)
    rows = _rows_of(gradient)
    # Where no row has a gradient one is read all the same: the optimizer skips weights without a
    # gradient, but continues with its momentum where the gradient is 0, as it is for a whole batch.
    rows[:1] |= ~rows.any()
    seen = values.detach().clone()
    _pass_on(read, batch, gradient, index[rows], size, seen if fresh else None)
    return Pass(loss, seen, tuple(others), gradient, rows)


def _rows_of(gradient: Tensor) -> Tensor:
    return gradient.reshape(len(gradient), -1).ne(0).any(1)


def _pass_on(
    read: Read, batch: Rollouts, gradient: Tensor, index: Tensor, size: int, seen: Tensor | None
) -> None:
    """Read the rows `index` piece by piece, and pass their part of the gradient on to the weights.
    Afterwards `seen` holds what was read, in place of what was assumed."""
    for piece in _pieces(batch, index, size):
        some = read(_some(batch, piece))
        width = (..., slice(some.shape[-1])) if some.ndim > 1 else ...
        some.backward(gradient[piece][width])
        if seen is not None:
            rows = seen[piece]
            rows[width] = some.detach().to(seen)
            seen[piece] = rows


def _read(read: Read, batch: Rollouts, index: Tensor, size: int) -> Tensor:
    pieces = list(_pieces(batch, index, size)) if size < len(index) else [index]
    values = [_widened(read(_some(batch, piece)), batch) for piece in pieces]
    return _placed(torch.cat(values), batch, torch.cat(pieces))


def _pieces(batch: Rollouts, index: Tensor, size: int) -> Iterator[Tensor]:
    """`index` in pieces of `size` rows: groups together, whose prompt is then read once, and among
    them rows of like length, so that little is read that is padding."""
    if len(index) == 0:
        return
    lengths = batch.reads.sum(1)
    group = torch.arange(len(batch), device=lengths.device) // batch.group_size
    longest = torch.zeros_like(lengths).scatter_reduce(0, group, lengths, "amax")[group]
    most = int(lengths.max()) + 1
    order = (longest * len(batch) + group) * most + lengths
    yield from index[order[index].argsort()].split(size)


def _some(batch: Rollouts, index: Tensor) -> Rollouts:
    return trimmed(batch if len(index) == len(batch) and _in_order(index) else batch.rows(index))


def _in_order(index: Tensor) -> bool:
    return bool((index == torch.arange(len(index), device=index.device)).all())


def _placed(values: Tensor, batch: Rollouts, index: Tensor) -> Tensor:
    """`values` at the rows `index`; at others, which are not read, the log-probs of sampling."""
    values = _widened(values, batch)
    if len(index) == len(batch):
        return values if _in_order(index) else values[index.argsort()]
    everywhere = batch.old_logprobs.detach().to(values.dtype, copy=True)
    everywhere[index] = values
    return everywhere


def _widened(values: Tensor, batch: Rollouts) -> Tensor:
    """Values of trimmed rows at the full width of the batch, 0 on what was trimmed."""
    if values.ndim == 1:
        return values
    return nn.functional.pad(values, (0, batch.mask.shape[1] - values.shape[-1]))
