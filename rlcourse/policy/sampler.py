"""Sampling many completions per prompt, with a key-value cache, from any Hugging Face causal LM.

`generate` is made for one conversation. Reinforcement learning draws a *group* of completions of
every prompt and needs their log-probabilities, so this sampler

- reads each prompt once and copies its cache to the G rows of its group;
- leaves room in the cache, where `generate` copies all of it to append one token;
- lets rows that have ended leave the batch, and stops when none is left;
- keeps the log-probabilities of what it drew, so that no second pass is needed to score it.
"""

import inspect
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from rlcourse.algorithms.policies import sample_tokens as draw_tokens
from rlcourse.errors import UserError
from rlcourse.policy.rollouts import Rollouts


@torch.no_grad()
def sample_completions(
    model: nn.Module,
    prompt_tokens: Tensor,
    prompt_mask: Tensor,
    *,
    group_size: int = 1,
    max_tokens: int = 64,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    eos_ids: tuple[int, ...] = (),
    pad_id: int = 0,
    generator: torch.Generator | None = None,
    sample_tokens: Callable[..., Tensor] | None = None,
) -> Rollouts:
    """Draw `group_size` completions of each prompt, of at most `max_tokens` tokens.

    `prompt_tokens` and `prompt_mask` are (B, P), left-padded. The model is used as it is: put it in
    eval mode first. A completion ends with the first of `eos_ids`, which belongs to it; a row that
    reaches `max_tokens` has none. The result's T is the length of the longest completion.

    `old_logprobs` are those of the full softmax at the sampling temperature, which is what scoring
    the same tokens gives. With `top_k` or `top_p` the tokens come from a renormalized part of
    that distribution, under which each of them is more likely than its `old_logprobs` say: the
    ratio to a new policy still starts at 1, but it is then no importance weight. Filter to
    evaluate, not to train. At temperature 0 (greedy) log-probs are those at temperature 1, and so
    is the result's `temperature`.

    `sample_tokens(logits, temperature=, top_k=, top_p=, generator=)` makes every draw; by default
    it is `rlcourse.algorithms.sample_tokens`. The generator must live on the model's device.
    """
    draw = partial(
        sample_tokens or draw_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        generator=generator,
    )
    scoring_temperature = temperature if temperature > 0 else 1.0
    device = prompt_tokens.device
    n_rows = len(prompt_tokens) * group_size
    group_rows = torch.arange(len(prompt_tokens), device=device).repeat_interleave(group_size)
    eos = torch.tensor(eos_ids, dtype=torch.long, device=device)

    decoder = Decoder(model, prompt_mask)
    logits = decoder.read(prompt_tokens)
    logits = logits[group_rows]
    decoder.keep(group_rows)

    tokens = torch.full((n_rows, max_tokens), pad_id, device=device)
    logprobs = torch.zeros(n_rows, max_tokens, dtype=logits.dtype, device=device)
    rows = torch.arange(n_rows, device=device)  # which completion each row of the batch writes
    alive = torch.ones(n_rows, dtype=torch.bool, device=device)
    for t in range(max_tokens):
        drawn = draw(logits)
        if drawn.shape != rows.shape:
            raise UserError(
                f"sample_tokens returned a tensor of shape {tuple(drawn.shape)}: "
                f"it must return one token id per row, shape {tuple(rows.shape)}."
            )
        tokens[rows, t] = drawn
        logprobs[rows, t] = chosen_logprobs(logits, drawn, scoring_temperature)
        alive = alive & ~torch.isin(drawn, eos)
        if t + 1 == max_tokens:
            break
        # Asking how many rows are alive makes a GPU wait, so there we ask seldom. Leaving the batch
        # copies the cache, so rows leave together, once they are a sixth of it.
        if device.type == "cpu" or t % 8 == 7:
            n_alive = int(alive.sum())
            if n_alive == 0:
                break
            if n_alive <= len(rows) * 5 / 6:
                survivors = alive.nonzero().squeeze(1)
                rows, drawn, alive = rows[survivors], drawn[survivors], alive[survivors]
                decoder.keep(survivors)
        logits = decoder.read(drawn.unsqueeze(1))

    ended = torch.isin(tokens, eos)
    mask = ended.cumsum(1) - ended.long() == 0
    mask[:, t + 1 :] = False  # never drawn
    mask = mask[:, : int(mask.sum(1).max())]
    return Rollouts(
        prompt_tokens=prompt_tokens[group_rows],
        prompt_mask=prompt_mask[group_rows].bool(),
        tokens=tokens[:, : mask.shape[1]].masked_fill(~mask, pad_id),
        mask=mask,
        old_logprobs=logprobs[:, : mask.shape[1]].masked_fill(~mask, 0.0),
        group_size=group_size,
        temperature=scoring_temperature,
    )


def chosen_logprobs(logits: Tensor, tokens: Tensor, temperature: float) -> Tensor:
    """Log-probs (N,) in nats of `tokens` (N,) under softmax(`logits` (N, V) / temperature)."""
    logits = logits / temperature
    return logits.gather(1, tokens.unsqueeze(1)).squeeze(1) - logits.logsumexp(1)


class Decoder:
    """A model with its cache: reads tokens, returns the next token's logits.

    Rows are left-padded prompts, so every row's next token stands in the same column: the mask
    hides the padding and position ids count from each row's first real token.
    """

    def __init__(self, model: nn.Module, prompt_mask: Tensor):
        self.model = model
        self.cache = roomy_cache(model.config)
        self.mask = prompt_mask.long()  # (rows, columns read so far)
        self.padded = not bool(prompt_mask.all())  # without padding a model needs no mask at all
        self.positions = token_positions(self.mask)

    def read(self, tokens: Tensor) -> Tensor:
        """Append `tokens` (rows, L) and return the logits (rows, V) of what comes next.

        The first call must read the prompts. Half precision comes back as float32.
        """
        if self.cache.get_seq_length() > 0:
            self.mask = torch.cat([self.mask, torch.ones_like(tokens)], dim=1)
            self.positions = self.positions[:, -1:] + 1
        logits = next_token_logits(
            self.model,
            keep=1,
            input_ids=tokens,
            attention_mask=self.mask if self.padded else None,
            position_ids=self.positions,
            past_key_values=self.cache,
            use_cache=True,
        )
        return logits[:, -1]

    def keep(self, rows: Tensor) -> None:
        """Make `rows` (any row, any number of times) the batch from here on."""
        self.cache.reorder_cache(rows)
        self.mask = self.mask[rows]
        self.positions = self.positions[rows]


def token_positions(mask: Tensor) -> Tensor:
    """Position of each token in its row (N, L), counted from the first one that `mask` shows."""
    return (mask.long().cumsum(1) - 1).clamp(min=0)


def next_token_logits(model: nn.Module, keep: int, **inputs) -> Tensor:
    """Logits (N, keep, V) at the last `keep` positions, in float32 at least.

    Not every model knows `logits_to_keep` or `position_ids` (ALiBi models have no positions), so
    arguments that its `forward` does not name are left out. For those that know it, the other
    positions' logits, which for long prompts are most of the memory, are never computed.
    """
    parameters = inspect.signature(model.forward).parameters
    inputs["logits_to_keep"] = keep
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        inputs = {name: value for name, value in inputs.items() if name in parameters}
    logits = model(**inputs).logits[:, -keep:]
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def roomy_cache(config) -> DynamicCache:
    """The model's own kind of cache, with plain attention layers exchanged for `RoomyLayer`s."""
    cache = DynamicCache(config=config)
    cache.layers = [RoomyLayer() if type(old) is DynamicLayer else old for old in cache.layers]
    return cache


class RoomyLayer(DynamicLayer):
    """Keys and values of one attention layer, (rows, heads, length, head size), with room to grow.

    The ordinary layer copies everything to append one token. Here `keys` and `values` are views of
    the used part of larger buffers, which are copied only when they are full.
    """

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        """Append, and return all keys and values so far."""
        if not self.is_initialized:  # the prompts; `reorder_cache` will copy them to their groups
            super().lazy_initialization(key_states, value_states)
            self.key_buffer, self.value_buffer = self.keys, self.values = key_states, value_states
            return self.keys, self.values
        start, end = self.keys.shape[2], self.keys.shape[2] + key_states.shape[2]
        if end > self.key_buffer.shape[2]:
            self.key_buffer = with_room(self.keys)
            self.value_buffer = with_room(self.values)
        self.keys, self.values = self.key_buffer[:, :, :end], self.value_buffer[:, :, :end]
        self.keys[:, :, start:] = key_states
        self.values[:, :, start:] = value_states
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Make these rows the batch; a row may be named several times."""
        length = self.keys.shape[2]
        self.key_buffer = with_room(self.keys, beam_idx)
        self.value_buffer = with_room(self.values, beam_idx)
        self.keys, self.values = self.key_buffer[:, :, :length], self.value_buffer[:, :, :length]


def with_room(states: Tensor, rows: Tensor | None = None) -> Tensor:
    """A copy of `states` (or some of its rows) in a buffer a half longer, by at least 32 tokens."""
    kept = states if rows is None else states[rows]
    n_rows, heads, length, size = kept.shape
    buffer = kept.new_empty(n_rows, heads, length + max(32, length // 2), size)
    buffer[:, :, :length] = kept
    return buffer
