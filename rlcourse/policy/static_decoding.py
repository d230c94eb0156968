"""Decoding with tensors of fixed shapes, which a GPU can repeat as one CUDA graph per token.

A small model writes a token in a thousand kernels of a few microseconds each, and Python needs far
longer to launch them than the GPU to run them. A captured graph is launched once. That takes a step
whose tensors keep their shapes and addresses: keys and values are in buffers with a place for every
token to come, the GPU itself counts the place of the next one, and rows that have ended continue,
unread, until all have. How long a token takes hardly depends on how many rows there are.

Where the course's own `sample_tokens` draws, the draw is part of the graph; a student's function
is called between two steps. Whether rows are alive is asked only at every eighth token, because
the host has to wait for the answer.

On the CPU the same steps run one by one, and tests hold them to what `decoding.py` draws.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, DynamicCache
from transformers.cache_utils import DynamicLayer

from rlcourse.policy.decoding import (
    CAN_SHARE_PROMPTS,
    RoomyLayer,
    next_token_logits,
    token_positions,
)

GRAPHS_ON = ("cuda",)
ASK_EVERY = 8  # tokens


def can_decode_statically(model: nn.Module) -> bool:
    """Whether the model's attention is plain softmax attention to everything before."""
    config: Any = model.config
    return (
        getattr(config, "model_type", None) in CAN_SHARE_PROMPTS
        and getattr(config, "_attn_implementation", None) in ("sdpa", "eager")
        and all(type(layer) is DynamicLayer for layer in DynamicCache(config=config).layers)
    )


class NoMemoryForGraph(torch.OutOfMemoryError):
    """The memory ran out while a CUDA graph was captured."""


class StaticDecoder:
    """Writes B·G completions of B prompts. Use it in a `with` block, once.

    `draw(logits)` returns a token (R,) for each row of logits (R, V); if `draw_in_graph` is not
    set, it is called outside of the graph. `generator` is what it draws from, or None for torch's.
    """

    logits: Tensor  # of the last step

    def __init__(
        self,
        model: nn.Module,
        draw: Callable[[Tensor], Tensor],
        eos: Tensor,
        temperature: float,
        generator: torch.Generator | None = None,
        draw_in_graph: bool = False,
    ):
        self.model: Any = model
        self.draw, self.eos, self.temperature = draw, eos, temperature
        self.generator, self.draw_in_graph = generator, draw_in_graph
        self.graph: torch.cuda.CUDAGraph | None = None
        self.capturing = eos.device.type in GRAPHS_ON

    def __enter__(self):
        self.attention = self.model.config._attn_implementation
        return self

    def __exit__(self, *_):
        self.model.set_attn_implementation(self.attention)
        self.graph = None

    @torch.no_grad()
    def complete(
        self, tokens: Tensor, mask: Tensor, group_size: int, max_tokens: int
    ) -> tuple[Tensor, Tensor]:
        """Tokens and log-probs (B·G, T) of completions of the prompts (B, P), arbitrary after a
        row's end. They are drawn until every row has ended, T ≤ `max_tokens`."""
        logits = self._read_prompts(tokens, mask, group_size, max_tokens)
        self._write(logits)
        for t in range(1, max_tokens):
            if t % ASK_EVERY == 0 and not self.alive.any():
                return self._written(t)
            self._step()
        return self._written(max_tokens)

    def _written(self, length: int) -> tuple[Tensor, Tensor]:
        return self.tokens[:, :length], self.logprobs[:, :length]

    def _read_prompts(self, tokens, mask, group_size, max_tokens) -> Tensor:
        """Read each prompt once and lay out the buffers; logits (R, V) of the first tokens."""
        positions = token_positions(mask)
        cache: Any = DynamicCache(config=self.model.config)
        cache.layers = [RoomyLayer() for _ in cache.layers]  # keeps keys as narrow as values
        logits = next_token_logits(
            self.model,
            keep=1,
            input_ids=tokens,
            attention_mask=None if bool(mask.all()) else mask.long(),
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
        )[:, -1]
        states = [(layer.keys, layer.values) for layer in cache.layers]
        rows = torch.arange(len(tokens), device=tokens.device).repeat_interleave(group_size)
        length = tokens.shape[1]
        places, added = length + max_tokens, torch.promote_types(states[0][1].dtype, torch.float32)
        # The number of the completion that each row writes.
        self.row = torch.arange(len(rows), device=tokens.device)
        self.alive = torch.ones_like(self.row, dtype=torch.bool)
        self.token = torch.zeros_like(self.row)[:, None]
        self.position = positions[rows, -1:]
        # Added to scores: −inf on padding and places to come.
        self.hidden = torch.full((len(rows), 1, 1, places), -torch.inf, dtype=added).to(rows.device)
        self.hidden[:, 0, 0, :length].masked_fill_(mask.bool()[rows], 0.0)
        self.tokens = self.row.new_zeros(len(rows), max_tokens)
        self.logprobs = logits.new_zeros(len(rows), max_tokens)
        self.place = self.row.new_full((1,), length)  # of the next token to be read
        self.column = self.row.new_zeros(1)  # of the next token to be written
        self.layers = [StaticLayer(of_layer, rows, places, self.place) for of_layer in states]
        self.cache: Any = DynamicCache(config=self.model.config)
        self.cache.layers = list(self.layers)
        self.model.set_attn_implementation("static_cache")
        return logits[rows]

    def _step(self) -> None:
        """Read the token that each row has drawn, and draw the next."""
        repeated = self.graph
        if repeated is not None:
            repeated.replay()
        else:
            self._advance()
        if not self.draw_in_graph:
            self._write(self.logits)
        if repeated is None and self.capturing:
            self.graph = captured(self._advance, self.generator)
            self.capturing = self.graph is not None

    def _advance(self) -> None:
        """What a graph repeats: the same operations on the same tensors at every token."""
        self.hidden.index_fill_(3, self.place, 0.0)
        self.position += 1
        self.logits = next_token_logits(
            self.model,
            keep=1,
            input_ids=self.token,
            attention_mask=self.hidden,  # of four dimensions, which models pass on as it is
            position_ids=self.position,
            past_key_values=self.cache,
            use_cache=True,
        )[:, -1]
        self.place += 1
        if self.draw_in_graph:
            self._write(self.logits)

    def _write(self, logits: Tensor) -> None:
        """Draw a token for each row and note it, with its log-prob."""
        drawn = self.draw(logits)
        scaled = logits / self.temperature
        chosen = scaled.gather(1, drawn[:, None]).squeeze(1) - scaled.logsumexp(1)
        column = self.column.expand(len(drawn))
        self.tokens.index_put_((self.row, column), drawn)
        self.logprobs.index_put_((self.row, column), chosen)
        self.token.copy_(drawn[:, None])
        self.alive &= (drawn[:, None] != self.eos).all(1)
        self.column += 1


class StaticLayer(DynamicLayer):
    """A layer's keys and values (rows, heads, places, head size), those of the prompts first; those
    of the next token are written at `place`, which the decoder moves on."""

    keys: Any  # tensors, which the class above may lack
    values: Any

    def __init__(self, of_prompts: tuple[Tensor, Tensor], rows: Tensor, places: int, place: Tensor):
        super().__init__()
        self.keys, self.values = (with_places(states[rows], places) for states in of_prompts)
        self.place = place  # (1,) long
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        """Write those of one token, and return the whole buffers."""
        # Under autocast the rotation leaves keys in float32, which attention would round anyway.
        self.keys.index_copy_(2, self.place, key_states.to(self.keys.dtype))
        self.values.index_copy_(2, self.place, value_states)
        return self.keys, self.values


def with_places(states: Tensor, places: int) -> Tensor:
    """Keys or values in a buffer of so many places. The others are 0: hidden places have weight 0,
    but 0 times whatever is in memory there may be NaN."""
    rows, heads, length, size = states.shape
    buffer = states.new_zeros(rows, heads, places, size)
    buffer[:, :, :length] = states
    return buffer


def static_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    **unused,
) -> tuple[Tensor, None]:
    """Attention of one new token per row to all places of the buffers that are not hidden.

    `query` is (R, heads, 1, D); `key` and `value` (R, key-value heads, places, D); `attention_mask`
    (R, 1, 1, places) is added to the scores. Query heads that share a key head are read with it, so
    that the buffers are not copied for each.

    Scores are float32 whatever the dtype, as in the kernels that a trainer scores with. Some models
    have keys of a hundred and more (Qwen2.5's reach 175), whose scores are so large that bfloat16
    would round away nats.
    """
    rows, heads, _, size = query.shape
    query = query.to(key.dtype).view(rows, key.shape[1], -1, size)
    with torch.autocast(query.device.type, enabled=False):
        exact = torch.promote_types(key.dtype, torch.float32)
        scores = query.to(exact) @ key.to(exact).transpose(2, 3)
        scores *= size**-0.5 if scaling is None else scaling
        weights = (scores + attention_mask).softmax(dim=-1)
        return (weights.to(value.dtype) @ value).reshape(rows, 1, heads, -1), None


def captured(
    advance: Callable[[], None], generator: torch.Generator | None
) -> torch.cuda.CUDAGraph | None:
    """`advance` as a CUDA graph; None if it cannot be captured and has to be called each time.

    Tests replay its steps in a simulation. `advance` has been called before, so that libraries are
    loaded and autocast has rounded the weights.

    Raises:
        NoMemoryForGraph: the memory ran out. Fewer rows, or no graph, may fit.
    """
    graph = torch.cuda.CUDAGraph()
    restore = restoring(generator)
    if generator is not None:
        graph.register_generator_state(generator)
    try:
        with torch.cuda.graph(graph):
            advance()
    except RuntimeError as error:
        restore()
        reason = str(error).partition("\n")[0]
        if isinstance(error, torch.OutOfMemoryError):
            raise NoMemoryForGraph(reason) from None
        print(
            f"rlcourse: decoding continues without a CUDA graph ({reason}); static_cache=false "
            "does not try",
            file=sys.stderr,
        )
        return None
    return graph


def restoring(generator: torch.Generator | None) -> Callable[[], object]:
    """A function that puts `generator` (None: the GPU's own) back as it is now.

    In torch 2.6 a generator that a failed capture had registered refuses to draw ever after. A
    state that was cloned before has not been part of any capture.
    """
    if generator is None and torch.cuda.is_available() and torch.cuda.default_generators:
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
    if generator is None or generator.device.type == "cpu":  # of a simulation
        return lambda: None
    return partial(generator.graphsafe_set_state, generator.clone_state())


AttentionInterface.register("static_cache", static_attention)
