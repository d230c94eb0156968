"""The tensors of fixed shapes and addresses that a `StaticDecoder` works on."""

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer

States = list[tuple[Tensor, Tensor]]  # each layer's keys and values (rows, heads, places, size)


class Buffers:
    """Buffers for `rows` completions of `max_tokens` tokens, with so many places for keys.

    `cache` holds the prompts' keys and values, whose dtypes and sizes are taken over; `logits` and
    `hidden` are the dtypes of log-probs and of what is added to scores.
    """

    def __init__(
        self,
        cache: States,
        rows: int,
        places: int,
        max_tokens: int,
        logits: torch.dtype,
        hidden: torch.dtype,
    ):
        # Zeros: hidden places have weight 0, but 0 times whatever is in memory there may be NaN.
        self.states: States = [
            (room_for(keys, rows, places), room_for(values, rows, places)) for keys, values in cache
        ]
        self.row = torch.arange(rows, device=cache[0][0].device)  # the completion each row writes
        self.alive = torch.ones_like(self.row, dtype=torch.bool)
        self.token = torch.zeros_like(self.row)[:, None]
        self.position = torch.zeros_like(self.token)
        # Added to scores: −inf on padding and places to come.
        self.hidden = torch.zeros(rows, 1, 1, places, dtype=hidden, device=self.row.device)
        self.tokens = self.row.new_zeros(rows, max_tokens)
        self.logprobs = torch.zeros(rows, max_tokens, dtype=logits, device=self.row.device)
        self.place = self.row.new_zeros(1)  # of the next token to be read
        self.column = self.row.new_zeros(1)  # of the next token to be written

    def fit(self, rows: int, places: int, max_tokens: int) -> bool:
        """Whether such a batch can be written here."""
        same = self.tokens.shape == (rows, max_tokens)
        return same and places <= self.hidden.shape[-1]

    def lay_out(self, cache: States, mask: Tensor, positions: Tensor, rows: Tensor) -> None:
        """Begin with `rows` of the prompts, whose keys, values, mask and positions are given."""
        length = mask.shape[1]
        for buffers, states in zip(self.states, cache, strict=True):
            for buffer, of_prompts in zip(buffers, states, strict=True):
                buffer[:, :, :length] = of_prompts[rows]
        self.place.fill_(length)
        self.column.zero_()
        self.position.copy_(positions[rows, -1:])
        self.hidden.fill_(-torch.inf)
        self.hidden[:, 0, 0, :length].masked_fill_(mask.bool()[rows], 0.0)
        self.row.copy_(torch.arange(len(rows), device=rows.device))
        self.alive.fill_(True)


def room_for(states: Tensor, rows: int, places: int) -> Tensor:
    """Zeros for so many rows and places of keys or values such as `states`."""
    _, heads, _, size = states.shape
    return states.new_zeros(rows, heads, places, size)


class StaticLayer(DynamicLayer):
    """Keys and values (rows, heads, places, head size) of a layer, written at `place`."""

    def __init__(self, keys: Tensor, values: Tensor, place: Tensor):
        super().__init__()
        self.keys: Tensor = keys
        self.values: Tensor = values
        self.place = place  # (1,) long, which the decoder moves on
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        """Write those of one token, and return the whole buffers."""
        # Under autocast the rotation leaves keys in float32, which attention would round anyway.
        self.keys.index_copy_(2, self.place, key_states.to(self.keys.dtype))
        self.values.index_copy_(2, self.place, value_states)
        return self.keys, self.values
