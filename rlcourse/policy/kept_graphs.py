"""CUDA graphs that outlive a batch: the next one of the same shape repeats them.

A graph reads weights and writes keys at fixed addresses. `FusedModel.refresh` brings new weights to
where the old ones were, and `Buffers.lay_out` the next prompts; so what was captured for a step of
training serves all that follow. It takes the memory of one batch's buffers and of the rounded
weights, also while the policy is trained.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from rlcourse.policy.fused import FusedModel
from rlcourse.policy.static_decoding import StaticDecoder

# of (generator, fused=, kept=)
Make = Callable[..., StaticDecoder]


class KeptGraphs:
    """The decoder of the last batch. One of another shape, or of other weights, replaces it."""

    def __init__(self):
        self.clear()

    def clear(self) -> None:
        """Keep nothing."""
        self.decoder: StaticDecoder | None = None
        self.generator: torch.Generator | None = None
        self.shape: tuple = ()

    @contextmanager
    def of(
        self,
        model: nn.Module,
        dtype: torch.dtype,
        shape: tuple,
        generator: torch.Generator | None,
        make: Make,
    ) -> Iterator[StaticDecoder]:
        """The decoder for a batch of this shape, which is kept unless an error is raised inside.

        A graph draws from the generator that it was captured with. That one is ours, and it takes
        `generator`'s place: it begins where that stands, which afterwards stands where ours ended.
        """
        shape = (*shape, dtype, id(model), *(p.data_ptr() for p in model.parameters()))
        if self.decoder is None or self.shape != shape:
            self.clear()  # before there are new buffers
            self.generator = None if generator is None else torch.Generator(generator.device)
            self.decoder = make(self.generator, fused=FusedModel(model, dtype), kept=True)
            self.shape = shape
        own = self.generator
        if generator is not None and own is not None:
            own.set_state(generator.get_state())
        try:
            with self.decoder as decoder:
                yield decoder
        except BaseException:
            self.clear()
            raise
        if generator is not None and own is not None:
            generator.set_state(own.get_state())
