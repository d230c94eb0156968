"""Scoring completions without the logits of all of them at once.

Logits are (N, T, V) in float32, and a backward pass needs them three times: for 8 rows of 300
tokens and 152,000 words 4.4 GB, more than the model. So if there are many, hidden states become
logits and then log-probs some rows at a time, and the backward pass computes each piece's logits
again; only hidden states are kept. Nothing is approximated. If all logits fit into one piece, they
are computed as usual.
Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"; Wijmans et al. 2024, "Cut
Your Losses in Large-Vocabulary Language Models", which goes further, with kernels of its own.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from rlcourse.policy.decoding import CAN_SHARE_PROMPTS, next_token_logits

AT_ONCE = 2**26  # logits: 0.27 GB in float32
Scores = tuple[Tensor, ...]
Score = Callable[[Tensor, Tensor], Scores]


def score_completions(
    model: nn.Module,
    run: Callable[[Callable], Tensor],
    tokens: Tensor,
    score: Score,
) -> Scores:
    """``score(logits, tokens)``: tensors (N, T) from logits (N, T+1, V) and tokens (N, T+1).

    ``run(read)`` is what `read`, called with the model's inputs and ``keep=``, gives at the
    positions of `tokens`.
    """
    hugging_face: Any = model
    head = output_layer(model)
    if head is None or tokens.numel() * head.weight.shape[0] <= most_at_once(head):
        return score(run(partial(next_token_logits, model)), tokens)
    states = run(partial(hidden_states, hugging_face.base_model))
    together = max(1, AT_ONCE // head.weight.shape[0] // tokens.shape[1])  # rows
    of_piece = partial(_score_states, head, score)
    if torch.is_grad_enabled():
        of_piece = partial(checkpoint, of_piece, use_reentrant=False, preserve_rng_state=False)
    pieces = [
        of_piece(states[i : i + together], tokens[i : i + together])
        for i in range(0, len(tokens), together)
    ]
    return tuple(torch.cat(part) for part in zip(*pieces, strict=True))


def output_layer(model: nn.Module) -> nn.Linear | None:
    """The layer that turns hidden states into logits, if nothing else is done to either."""
    if getattr(model.config, "model_type", None) not in CAN_SHARE_PROMPTS:
        return None
    hugging_face: Any = model
    head = hugging_face.get_output_embeddings()
    return head if isinstance(head, nn.Linear) else None


def most_at_once(head: nn.Linear) -> int:
    """How many logits are computed in one piece: `AT_ONCE` and, if the output layer learns, as many
    more as it has weights, because its gradient is then needed twice: the sum, and a piece's."""
    learns = torch.is_grad_enabled() and head.weight.requires_grad
    return AT_ONCE + head.weight.numel() * learns


def hidden_states(body: nn.Module, keep: int, **inputs) -> Tensor:
    """The body's last layer (N, keep, D) at the last `keep` positions."""
    if "position_ids" not in inspect.signature(body.forward).parameters:
        del inputs["position_ids"]
    return body(**inputs).last_hidden_state[:, -keep:]


def _score_states(head: nn.Linear, score: Score, states: Tensor, tokens: Tensor) -> Scores:
    """The scores of a piece, whose logits are gone when this returns."""
    device = states.device.type
    with torch.autocast(
        device,
        torch.get_autocast_dtype(device),
        enabled=torch.is_autocast_enabled(device),
        # A rounded copy of the weights that all pieces share would add up their gradients rounded.
        cache_enabled=not torch.is_grad_enabled(),
    ):
        logits = head(states)
    half = logits.dtype in (torch.float16, torch.bfloat16)
    return score(logits.float() if half else logits, tokens)
