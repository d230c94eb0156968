"""Sampling many completions per prompt, with a key-value cache, from any Hugging Face causal LM.

`generate` is made for one conversation. Reinforcement learning draws a *group* of completions of
every prompt and needs their log-probabilities, so this sampler

- reads each prompt once and shares its cache among the G rows of its group;
- leaves room in the cache, where `generate` copies all of it to append one token;
- lets rows that have ended leave the batch, and stops when none is left;
- keeps the log-probabilities of what it drew, so that no second pass is needed to score it;
- on a GPU writes each token by repeating one CUDA graph, where the model allows it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from rlcourse.algorithms.policies import sample_tokens as draw_tokens
from rlcourse.errors import UserError
from rlcourse.policy.decoding import CopiedPrompts, group_decoder, require_cache
from rlcourse.policy.rollouts import Rollouts
from rlcourse.policy.static_decoding import StaticDecoder, can_decode_statically

# Called after each position with the number of tokens drawn there; see `telling`.
_listener: ContextVar[Callable[[int], None] | None] = ContextVar("listener", default=None)
STATIC_CACHE_ON = ("cuda",)  # elsewhere, launching a kernel costs no more than running it
MANY_WORDS, BLOCK = 8192, 256  # see `draw_quickly`


@contextmanager
def telling(listener: Callable[[int], None]) -> Iterator[None]:
    """Within this context, `listener` is called with the number of tokens just drawn.

    With a large model on a CPU, one batch takes minutes, and a progress bar has to move meanwhile.
    A GPU that repeats a graph needs seconds, and reports nothing.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


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
    static_cache: bool | None = None,
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
    `draw_quickly` does. The generator must live on the model's device. The same seed gives the same
    batch, though which of its numbers a row gets depends on who has ended.

    With `static_cache`, `StaticDecoder` writes the tokens if the model allows it; None, the
    default, is True on a GPU. Other models are decoded as without it.
    """
    require_cache(model)
    options: dict = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    options["generator"] = generator
    own = None
    if sample_tokens is not None and sample_tokens is not draw_tokens:
        own = _Checked(sample_tokens, options)
    draw: Callable[[Tensor], Tensor] = own or partial(draw_quickly, **options)
    scoring_temperature = temperature if temperature > 0 else 1.0
    eos = torch.tensor(eos_ids, dtype=torch.long, device=prompt_tokens.device)
    on_a_gpu = prompt_tokens.device.type in STATIC_CACHE_ON
    if (on_a_gpu if static_cache is None else static_cache) and can_decode_statically(model):
        # A user's function may need the host, which no graph can repeat.
        how: dict = {"generator": generator, "draw_in_graph": own is None}
        with StaticDecoder(model, draw, eos, scoring_temperature, **how) as static:
            tokens, logprobs = static.complete(prompt_tokens, prompt_mask, group_size, max_tokens)
    else:
        with group_decoder(model, prompt_mask, group_size) as decoder:
            logits = decoder.read_prompts(prompt_tokens)
            tokens, logprobs = _draw_completions(
                decoder, logits, draw, max_tokens, eos, scoring_temperature
            )
    if own is not None:
        own.require_words()
    ended = torch.isin(tokens, eos).long()
    mask = ended.cumsum(1) - ended == 0
    longest = int(mask.sum(1).max())
    tokens, logprobs, mask = tokens[:, :longest], logprobs[:, :longest], mask[:, :longest]
    return Rollouts(
        prompt_tokens=prompt_tokens.repeat_interleave(group_size, 0),
        prompt_mask=prompt_mask.bool().repeat_interleave(group_size, 0),
        tokens=tokens.masked_fill(~mask, pad_id),
        mask=mask,
        old_logprobs=logprobs.masked_fill(~mask, 0.0),
        group_size=group_size,
        temperature=scoring_temperature,
    )


def draw_quickly(logits: Tensor, temperature: float, generator=None, **filters) -> Tensor:
    """``sample_tokens``, faster where a CPU draws from many words: tokens (N,) of logits (N, V).

    `torch.multinomial` makes a random number for each word of a row. So a block of words is drawn
    first, by the sum of their probabilities, and then a word of that block.
    """
    many = logits.shape[-1] >= MANY_WORDS and logits.device.type == "cpu"
    if not many or temperature == 0 or any(limit is not None for limit in filters.values()):
        return draw_tokens(logits, temperature, generator=generator, **filters)
    probs = pad((logits / temperature).softmax(-1), (0, -logits.shape[-1] % BLOCK))
    blocks = probs.unflatten(1, (-1, BLOCK))
    block = torch.multinomial(blocks.sum(2), 1, generator=generator)
    words = blocks.take_along_dim(block.unsqueeze(2), 1).squeeze(1)
    return (BLOCK * block + torch.multinomial(words, 1, generator=generator)).squeeze(1)


class _Checked:
    """A sampling function that was passed in, whose results are checked before they are used.

    On a GPU a token outside of the vocabulary would end the process without saying why, and
    checking every draw would make the host wait; so draws are recorded, and checked at the end.
    """

    def __init__(self, sample_tokens: Callable[..., Tensor], options: dict):
        self.sample_tokens, self.options = sample_tokens, options
        self.no_words: Tensor | bool = False

    def __call__(self, logits: Tensor) -> Tensor:
        """A token (N,) long for each row of logits (N, V), on their device."""
        n, words = logits.shape
        try:
            drawn = self.sample_tokens(logits, **self.options)
        except RuntimeError as error:
            if "same device" not in str(error):
                raise
            raise UserError(
                "sample_tokens makes a tensor on the CPU: make it there, with device=logits.device."
            ) from error
        if drawn.shape != (n,):
            raise UserError(
                f"sample_tokens returned a tensor of shape {tuple(drawn.shape)}: "
                f"it must return one token id per row, shape {(n,)}."
            )
        drawn = drawn.to(logits.device, torch.long)
        self.no_words = self.no_words | ((drawn < 0) | (drawn >= words)).any()
        return drawn.clamp(0, words - 1)

    def require_words(self) -> None:
        """Raise UserError if a draw was not a token of the vocabulary."""
        if bool(self.no_words):
            raise UserError(
                "sample_tokens returned numbers that are not token ids: it must return, for each "
                "row, a column of the logits."
            )


def _draw_completions(
    decoder: CopiedPrompts,
    logits: Tensor,
    draw: Callable[[Tensor], Tensor],
    max_tokens: int,
    eos: Tensor,
    temperature: float,
) -> tuple[Tensor, Tensor]:
    """Tokens and log-probs (N, T), drawn until every row has ended; arbitrary after a row's end."""
    rows = torch.arange(len(logits), device=logits.device)  # the completion each row writes
    alive = torch.ones_like(rows, dtype=torch.bool)
    tokens = rows.new_zeros(len(rows), max_tokens)
    logprobs = logits.new_zeros(len(rows), max_tokens)
    tell = _listener.get()
    for t in range(max_tokens):
        drawn = draw(logits)
        if tell is not None:
            tell(int(alive.sum()))
        tokens[rows, t] = drawn
        scaled = logits / temperature
        chosen = scaled.gather(1, drawn.unsqueeze(1)).squeeze(1)
        logprobs[rows, t] = chosen - scaled.logsumexp(1)
        alive = alive & ~torch.isin(drawn, eos)
        if t + 1 == max_tokens:
            break
        # Asking how many rows are alive means waiting for the GPU, so there we rarely ask. Rows
        # leave together, when they are a fifth of the batch, because leaving copies the cache.
        if logits.device.type == "cpu" or t % 8 == 7:
            n_alive = int(alive.sum())
            if n_alive == 0:
                break
            if n_alive <= 0.8 * len(rows):
                survivors = alive.nonzero().squeeze(1)
                rows, drawn, alive = rows[survivors], drawn[survivors], alive[survivors]
                decoder.keep(survivors)
        logits = decoder.read(drawn)
    return tokens[:, : t + 1], logprobs[:, : t + 1]
