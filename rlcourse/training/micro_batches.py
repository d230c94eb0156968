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

import torch
from torch import Tensor, nn
from tqdm.std import tqdm

from rlcourse.machine import is_out_of_memory
from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.batches import trimmed

Read = Callable[[Rollouts], Tensor]  # what a network makes of rows: (n, T), or (n,)


class MicroBatches:
    """How many rows `network` reads at once: `rows`, or all of them (None), and fewer from the
    moment that the memory runs out."""

    def __init__(self, network: nn.Module, rows: int | None = None):
        self.network = network
        self.rows = rows

    def backward(
        self, read: Read, batch: Rollouts, loss_of: Callable, rows: Tensor | None = None
    ) -> tuple:
        """Put the gradient of ``loss_of(read(batch))[0]`` into the network's ``.grad``.

        Where `rows` (n,) bool is given, the network is still the policy that sampled `batch`, and
        the other rows are known to get no gradient: they are not read, and their values are
        ``batch.old_logprobs``. In pieces these are everybody's, without a first pass.

        Returns the loss, what was read, both without a graph, and what else `loss_of` returned.
        """
        index = torch.arange(len(batch), device=batch.tokens.device)
        index = index if rows is None else index[rows]

        def attempt(size: int):
            self.network.zero_grad(set_to_none=True)
            if size >= len(index):
                return _at_once(read, batch, loss_of, index)
            return _in_pieces(read, batch, loss_of, index, size, fresh=rows is not None)

        return self._until_it_fits(attempt, len(index))

    @torch.no_grad()
    def read(self, read: Read, batch: Rollouts) -> Tensor:
        """``read(batch)`` without a graph."""
        index = torch.arange(len(batch), device=batch.tokens.device)

        def attempt(size: int):
            return _read(read, batch, index, size)

        return self._until_it_fits(attempt, len(batch))

    def _until_it_fits(self, attempt: Callable[[int], object], n: int):
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
                f"rlcourse: out of memory with {size} rows at once; going on with {self.rows} "
                f"(micro_batch={self.rows} starts there, and gives the same gradient)",
                file=sys.stderr,
            )


def _at_once(read: Read, batch: Rollouts, loss_of: Callable, index: Tensor):
    values = _placed(read(_some(batch, index)), batch, index)
    loss, *others = loss_of(values)
    loss.backward()
    return loss.detach(), values.detach(), *others


def _in_pieces(
    read: Read, batch: Rollouts, loss_of: Callable, index: Tensor, size: int, fresh: bool
):
    with torch.no_grad():
        values = batch.old_logprobs.clone() if fresh else _read(read, batch, index, size)
    values.requires_grad_()
    loss, *others = loss_of(values)
    (gradient,) = torch.autograd.grad(loss, values)
    with_gradient = gradient.reshape(len(gradient), -1).ne(0).any(1)
    seen = values.detach().clone()
    # Where no row has a gradient one is read all the same: the optimizer skips weights without a
    # gradient, but goes on with its momentum where the gradient is 0, as it is for a whole batch.
    for piece in list(_pieces(batch, index[with_gradient[index]], size)) or [index[:1]]:
        some = read(_some(batch, piece))
        some.backward(gradient[piece, : some.shape[1]] if some.ndim == 2 else gradient[piece])
        if fresh:  # what was taken for granted above is reported as it is
            seen[piece, : some.shape[1]] = some.detach().to(seen)
    return loss.detach(), seen, *others


def _read(read: Read, batch: Rollouts, index: Tensor, size: int) -> Tensor:
    pieces = list(_pieces(batch, index, size)) if size < len(index) else [index]
    values = [_widened(read(_some(batch, piece)), batch) for piece in pieces]
    return _placed(torch.cat(values), batch, torch.cat(pieces))


def _pieces(batch: Rollouts, index: Tensor, size: int) -> Iterator[Tensor]:
    """`index` in pieces of `size` rows: groups together, whose prompt is then read once, and among
    them rows of like length, so that little is read that is padding."""
    if len(index) == 0:
        return
    lengths = batch.mask.sum(1)
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
    """`values` at the rows `index`; at others, which nobody read, the log-probs of sampling."""
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
    return nn.functional.pad(values, (0, batch.mask.shape[1] - values.shape[1]))
