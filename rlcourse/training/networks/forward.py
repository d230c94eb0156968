"""The forward pass of an update, without two kinds of work that cannot change its gradient.

A prompt is read once for all completions of its group, and rows that the loss gives no gradient
are not read at all (see micro_batches.py): groups that were all right or all wrong, or wrong
answers under REINFORCE. Early and late in training these are most of a batch. Nothing is
approximated, and tests compare both with ``policy.logprobs`` in value and gradient.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from rlcourse.policy import Policy
from rlcourse.policy.decoding import token_positions
from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.networks.gradient_checkpointing import (
    block_inputs_only,
    uses_gradient_checkpointing,
)


def shared_prompt_logprobs(policy, batch: Rollouts) -> Tensor:
    """``policy.logprobs(batch)`` (n, T), reading each prompt once for all of its rows."""
    if getattr(type(policy), "logprobs", None) is not Policy.logprobs:
        return policy.logprobs(batch)
    if uses_gradient_checkpointing(policy.model):
        with block_inputs_only(policy.model):
            return policy.logprobs(batch)
    prompts = shared_prompts(batch) if keeps_only_keys_and_values(policy.model) else None
    if prompts is None:
        return policy.logprobs(batch)
    run = partial(read_once, model=policy.model, prompts=prompts, batch=batch)
    return policy.logprobs_of(batch, run)


def keeps_only_keys_and_values(model) -> bool:
    """Whether rows can continue from a cache that holds their prompt, with a gradient.

    Linear attention and convolutions, as in Qwen3-Next and Falcon-H1, overwrite the state that they
    keep, and it cannot be selected row by row.
    """
    layers = DynamicCache(config=model.config).layers
    return all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)


def logprobs_and_entropy(policy, batch: Rollouts) -> Tensor:
    """Log-probs and entropies (n, 2, T) in nats, of the distributions that tokens come from."""
    recompute = uses_gradient_checkpointing(policy.model)
    with block_inputs_only(policy.model) if recompute else nullcontext():
        return torch.stack(policy.logprobs_and_entropy(batch), dim=1)


def shared_prompts(batch: Rollouts) -> tuple[Tensor, Tensor, Tensor] | None:
    """The different prompts' tokens and masks, and which of them each row has.

    None if there are so many that reading them separately from the completions does not pay.
    """
    width = batch.prompt_tokens.shape[1]
    prompts, group = torch.unique(
        torch.cat([batch.prompt_mask.long(), batch.prompt_tokens], dim=1),
        dim=0,
        return_inverse=True,
    )
    if 2 * len(prompts) > len(batch):
        return None
    return prompts[:, width:], prompts[:, :width], group


def read_once(read: Callable, model, prompts: tuple[Tensor, Tensor, Tensor], batch: Rollouts):
    """What `read` sees at each row's prompt's last token and at its completion (n, T+1, …).

    ``read(keep=, input_ids=, …)`` returns the last `keep` positions of `model`'s output.
    """
    prompt_tokens, prompt_mask, group = prompts
    width = batch.prompt_tokens.shape[1]
    mask = torch.cat([batch.prompt_mask, batch.reads], dim=1)
    cache: Any = DynamicCache(config=model.config)
    first = read(
        keep=1,
        input_ids=prompt_tokens,
        attention_mask=prompt_mask,
        position_ids=token_positions(prompt_mask),
        past_key_values=cache,
        use_cache=True,
    )
    _spread(cache, group)
    rest = read(
        keep=batch.mask.shape[1],
        input_ids=batch.tokens,
        attention_mask=mask.long(),
        position_ids=token_positions(mask)[:, width:],
        past_key_values=cache,
        use_cache=True,
    )
    return torch.cat([first[group], rest], dim=1)  # from the prompt's last token on


def _spread(cache: Any, rows: Tensor) -> None:
    """Make `rows` of the cache the batch; what several rows share adds up their gradients.

    The cache's own ``reorder_cache`` selects with ``index_select``, whose gradient a GPU adds up in
    any order, so that a resumed run would not be the same to the last bit. Indexing adds up in the
    rows' order.
    """
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[rows], layer.values[rows]
