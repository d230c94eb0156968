"""Token-by-token decoding of groups: the same prompt, G completions, one batch that shrinks.

At each step attention reads the keys and values of everything before, which for a small model on a
CPU is half of the work. The G rows of a group have the same prompt, so `SharedPrompts` keeps it
once and lets its group attend to it together; each row owns only its completion. Where that is
not possible, `CopiedPrompts` gives every row a copy of the prompt, which works for any model.

Source: Juravsky et al. 2024, "Hydragen: High-Throughput LLM Inference with Shared Prefixes".
"""

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, DynamicCache
from transformers.cache_utils import DynamicLayer

from rlcourse.errors import UserError

# Plain softmax attention, arguments passed through to the attention function, tested.
CAN_SHARE_PROMPTS = ("gpt2", "llama", "mistral", "qwen2", "qwen3")


def group_decoder(model: nn.Module, prompt_mask: Tensor, group_size: int) -> "CopiedPrompts":
    """The decoder that suits the model and its device.

    On a GPU memory is fast, and the extra kernel launches of sharing would cost more than they
    save.
    """
    decoder = CopiedPrompts(model, prompt_mask, group_size)
    can_share = (
        group_size > 1
        and prompt_mask.device.type == "cpu"
        and model.dtype in (torch.float32, torch.float64)  # half precision would need upcasting
        and getattr(model.config, "model_type", None) in CAN_SHARE_PROMPTS
        and getattr(model.config, "_attn_implementation", None) in ("sdpa", "eager")
        and all(type(layer) is RoomyLayer for layer in decoder.cache.layers)
    )
    return SharedPrompts(model, prompt_mask, group_size) if can_share else decoder


class CopiedPrompts:
    """Decodes B·G rows, each with its own copy of the prompt's keys and values.

    Prompts are left-padded, so every row's next token is in the same column: the mask hides
    the padding, and position ids count from each row's first real token. Use it in a `with`
    block: `read_prompts` first, then any sequence of `keep` and `read`.
    """

    def __init__(self, model, prompt_mask: Tensor, group_size: int):
        self.model: Any = model  # a Hugging Face model: its hooks are no Module's
        self.group_size = group_size
        self.mask = prompt_mask.long()  # (rows, columns read so far)
        self.padded = not bool(prompt_mask.all())  # without padding a model needs no mask at all
        self.cache: Any = DynamicCache(config=self.model.config)
        self.cache.layers = [
            RoomyLayer() if type(layer) is DynamicLayer else layer for layer in self.cache.layers
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read_prompts(self, tokens: Tensor) -> Tensor:
        """Read the prompts (B, P); logits (B·G, V) of the first token of every completion."""
        positions = token_positions(self.mask)
        logits = self._forward(tokens, self.mask if self.padded else None, positions)
        rows = torch.arange(len(tokens), device=tokens.device).repeat_interleave(self.group_size)
        self.positions = positions[rows, -1:]
        self._spread(rows)
        return logits[rows]

    def _spread(self, rows: Tensor) -> None:
        self.cache.reorder_cache(rows)
        self.mask = self.mask[rows]

    def read(self, tokens: Tensor) -> Tensor:
        """Append a token to every row (rows,); logits (rows, V) of what comes next."""
        self.positions = self.positions + 1
        if self.padded:
            self.mask = torch.cat([self.mask, self.mask.new_ones(len(tokens), 1)], dim=1)
        mask = self.mask if self.padded else None
        return self._forward(tokens.unsqueeze(1), mask, self.positions)

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows only."""
        self.cache.reorder_cache(rows)
        self.mask = self.mask[rows]
        self.positions = self.positions[rows]

    def _forward(self, tokens, mask, positions, **options) -> Tensor:
        return next_token_logits(
            self.model,
            keep=1,
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            **options,
        )[:, -1]


class SharedPrompts(CopiedPrompts):
    """Decodes B·G rows that share B prompts; the cache of a row holds its completion only.

    After the prompts are read, the model's attention is replaced by `shared_prompt_attention`
    until the `with` block ends.
    """

    def __enter__(self):
        self.attention = self.model.config._attn_implementation
        return self

    def __exit__(self, *_):
        self.model.set_attn_implementation(self.attention)

    def _spread(self, rows: Tensor) -> None:
        self.prompts: list[tuple[Tensor, Tensor]] = []
        for layer in self.cache.layers:
            self.prompts.append((layer.keys, layer.values))
        self.cache.layers = [RoomyLayer() for _ in self.prompts]
        hidden = torch.zeros(self.mask.shape, dtype=self.prompts[0][0].dtype)
        self.padding = hidden.masked_fill(self.mask == 0, -torch.inf)[:, None, None]
        self.rows = torch.arange(len(rows))  # index of each row in the table of B·G
        self.model.set_attn_implementation("shared_prompt")

    def read(self, tokens: Tensor) -> Tensor:
        """Append a token to every row (rows,); logits (rows, V) of what comes next."""
        self.positions = self.positions + 1
        return self._forward(tokens.unsqueeze(1), None, self.positions, shared_prompts=self)

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows only."""
        self.cache.reorder_cache(rows)
        self.rows = self.rows[rows]
        self.positions = self.positions[rows]

    def to_groups(self, x: Tensor) -> Tensor:
        """(rows, heads, m, n) → (B, heads, G·m, n), zeros where a row has left."""
        if len(self.rows) < self.padding.shape[0] * self.group_size:
            table = x.new_zeros(self.padding.shape[0] * self.group_size, *x.shape[1:])
            table[self.rows] = x
            x = table
        _, heads, m, n = x.shape
        x = x.view(-1, self.group_size, heads, m, n).transpose(1, 2)
        return x.reshape(-1, heads, self.group_size * m, n)

    def to_rows(self, x: Tensor) -> Tensor:
        """(B, heads, G·m, n) → (rows, heads, m, n): the way back."""
        prompts, heads, _, n = x.shape
        x = x.view(prompts, heads, self.group_size, -1, n).transpose(1, 2)
        x = x.reshape(prompts * self.group_size, heads, -1, n)
        return x[self.rows] if len(self.rows) < len(x) else x


def shared_prompt_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: None,
    shared_prompts: SharedPrompts,
    scaling: float | None = None,
    **unused,
) -> tuple[Tensor, None]:
    """Attention of one new token per row to its group's prompt and to its own completion.

    `query` is (rows, heads, 1, D); `key` and `value` (rows, key-value heads, t, D) hold the
    completions. The scores of both parts go through one softmax.
    """
    rows, heads, _, size = query.shape
    prompt_keys, prompt_values = shared_prompts.prompts[module.layer_idx]
    query = query * (size**-0.5 if scaling is None else scaling)
    query = query.view(rows, key.shape[1], -1, size)  # query heads that share one key head
    to_prompt = shared_prompts.to_groups(query) @ prompt_keys.transpose(2, 3)
    to_prompt = shared_prompts.to_rows(to_prompt + shared_prompts.padding)
    to_completion = query @ key.transpose(2, 3)
    weights = torch.cat([to_prompt, to_completion], dim=-1).softmax(dim=-1)
    to_prompt, to_completion = weights.split([to_prompt.shape[-1], key.shape[2]], dim=-1)
    output = shared_prompts.to_rows(shared_prompts.to_groups(to_prompt) @ prompt_values)
    output = output + to_completion @ value
    return output.reshape(rows, 1, heads, -1), None


AttentionInterface.register("shared_prompt", shared_prompt_attention)


def token_positions(mask: Tensor) -> Tensor:
    """Position of each token in its row (N, L), counted from the first one that `mask` shows."""
    return (mask.long().cumsum(1) - 1).clamp(min=0)


def require_cache(model: nn.Module) -> None:
    """Raise ``UserError`` for a model that cannot continue from keys and values kept in a cache.

    State space models such as Mamba keep another kind of state. They ignore a cache of keys and
    values, and would write each token as if it were the first.
    """
    if "past_key_values" not in inspect.signature(model.forward).parameters:
        raise UserError(
            f"{type(model).__name__} keeps no keys and values (its forward takes no "
            "past_key_values), which sampling needs: choose a model with attention layers."
        )


@torch.no_grad()
def require_rows_of_their_own(model: Any) -> None:
    """Raise ``UserError`` for a model whose rows depend on padding or on the rows beside them.

    Some models keep a running state outside of the cache, or let padding into it. Two prompts, one
    of them padded and each with a group of two, must continue as each does alone. In half precision
    rounding would hide the difference, so those models are not tried.
    """
    ids = torch.arange(1, 9, device=model.device).repeat(2, 1)
    mask = ids > torch.tensor([[3], [0]], device=model.device)
    with CopiedPrompts(model, mask[:, :-1], group_size=2) as decoder:
        plain = all(type(layer) is RoomyLayer for layer in decoder.cache.layers)
        if plain or model.dtype is not torch.float32:
            return
        decoder.read_prompts(ids[:, :-1])
        together = decoder.read(ids.repeat_interleave(2, 0)[:, -1])[::2]
    rows = (row[seen][None] for row, seen in zip(ids, mask, strict=True))
    alone = torch.cat([next_token_logits(model, 1, input_ids=row)[:, -1] for row in rows])
    gap = (together.log_softmax(-1) - alone.log_softmax(-1)).abs().max().item()
    if gap > 3e-3:
        raise UserError(
            f"{type(model).__name__} gives a completion different log-probs in a batch and alone "
            f"({gap:.2g} nats apart), so its samples cannot be trained on: choose another model."
        )


def next_token_logits(model: nn.Module, keep: int, **inputs) -> Tensor:
    """Logits (N, keep, V) at the last `keep` positions, in float32 at least.

    Not every model knows `logits_to_keep` or `position_ids` (ALiBi models have no positions), so
    arguments that its `forward` does not name are left out. Those that know it never compute the
    other positions' logits, which for long prompts are most of the memory.
    """
    inputs["logits_to_keep"] = keep
    parameters = inspect.signature(model.forward).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        inputs = {name: value for name, value in inputs.items() if name in parameters}
    logits = model(**inputs).logits[:, -keep:]
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


class RoomyLayer(DynamicLayer):
    """Keys and values of one attention layer, (rows, heads, length, head size), with room to grow.

    The ordinary layer copies everything to append one token. Here `keys` and `values` are views of
    the used part of larger buffers, which are copied only when they are full.
    """

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        """Append, and return all keys and values so far."""
        # Under autocast the rotation leaves keys in float32, which attention would round anyway.
        key_states = key_states.to(value_states.dtype)
        if not self.is_initialized:
            super().lazy_initialization(key_states, value_states)
            self.key_buffer, self.value_buffer = self.keys, self.values = key_states, value_states
            return self.keys, self.values
        assert self.keys is not None and self.values is not None
        start, end = self.keys.shape[2], self.keys.shape[2] + key_states.shape[2]
        if end > self.key_buffer.shape[2]:
            self.key_buffer = with_room(self.keys)
            self.value_buffer = with_room(self.values)
        self.keys, self.values = self.key_buffer[:, :, :end], self.value_buffer[:, :, :end]
        self.keys[:, :, start:] = key_states
        self.values[:, :, start:] = value_states
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Make these rows the batch; a row may occur several times."""
        if not self.is_initialized:
            return
        assert self.keys is not None and self.values is not None
        length = self.keys.shape[2]
        self.key_buffer = with_room(self.keys, beam_idx)
        self.value_buffer = with_room(self.values, beam_idx)
        self.keys, self.values = self.key_buffer[:, :, :length], self.value_buffer[:, :, :length]


def with_room(states: Tensor, rows: Tensor | None = None) -> Tensor:
    """A copy of `states` (or some of its rows) in a buffer a half longer, by at least 16 tokens."""
    kept = states if rows is None else states[rows]
    n_rows, heads, length, size = kept.shape
    buffer = kept.new_empty(n_rows, heads, length + max(16, length // 2), size)
    buffer[:, :, :length] = kept
    return buffer
