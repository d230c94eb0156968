"""The forward pass of models of the Llama family in few kernels, to write tokens with.

A GPU needs some 3 µs for a kernel that a CUDA graph repeats, however little it does, and an
ordinary pass launches 46 a layer. Here queries, keys and values come from one product with
concatenated weights, and so do the two halves of the MLP; attention is PyTorch's own kernel; a
rotation takes three operations. That leaves 19 a layer.

Under autocast the matrices are kept rounded, as autocast would round them at each use; everything
else is computed in the precision that the model itself has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

FAMILY = ("llama", "mistral", "qwen2", "qwen3")
# Of the ways to turn positions into angles, those that do not depend on how long a text is.
ROTATIONS = ("default", "linear", "llama3", "yarn")
LINEAR = {
    "self_attn": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "mlp": ("gate_proj", "up_proj", "down_proj"),
}

# attend(layer's number, queries, keys, values), each (R, L, heads, size) → (R, L, all heads · size)
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]


def can_be_fused(model: nn.Module) -> bool:
    """Whether `FusedModel` computes what the model does: nothing was put into or around it."""
    config: Any = model.config
    kind, rotation = config.model_type, getattr(config, "rope_parameters", None) or {}
    return (
        kind in FAMILY
        and type(model).__module__ == f"transformers.models.{kind}.modeling_{kind}"
        and config.hidden_act in ("silu", "swish")
        and rotation.get("rope_type", "default") in ROTATIONS
        and all(type(linear) is nn.Linear for linear in _linear_maps(model))
        and not any(
            module._forward_hooks or module._forward_pre_hooks for module in model.modules()
        )
    )


def _linear_maps(model: Any) -> list[nn.Module]:
    inside = (
        getattr(getattr(layer, part), name)
        for layer in model.model.layers
        for part, names in LINEAR.items()
        for name in names
    )
    return [*inside, model.lm_head]


@dataclass(frozen=True)
class Linear:
    """A linear map: several of the model's, one below the other."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias)


@dataclass(frozen=True)
class Layer:
    """A transformer block."""

    before_attention: Any  # RMSNorms
    before_mlp: Any
    of_heads: tuple[Any, ...]  # of queries and keys, in Qwen3
    to_heads: Linear  # queries, keys, values
    from_heads: Linear
    to_mlp: Linear  # the gate, and what passes it
    from_mlp: Linear


class FusedModel:
    """The weights of `model`, its matrices in `dtype`, arranged for few kernels."""

    @torch.no_grad()
    def __init__(self, model: nn.Module, dtype: torch.dtype):
        hugging_face: Any = model
        self.model, self.dtype = hugging_face, dtype
        self.copies: list[Tensor] = []
        body = hugging_face.model
        self.layers = [self._layer(layer) for layer in body.layers]
        self.head = self._linear(hugging_face.lm_head)
        attention = body.layers[0].self_attn
        self.size: int = attention.head_dim
        self.key_heads = attention.k_proj.out_features // self.size
        self.heads = attention.q_proj.out_features // self.size
        self.scaling: float = attention.scaling

    def _layer(self, layer: Any) -> Layer:
        attention, mlp = layer.self_attn, layer.mlp
        norms = (getattr(attention, name, None) for name in ("q_norm", "k_norm"))
        return Layer(
            layer.input_layernorm,
            layer.post_attention_layernorm,
            tuple(norm for norm in norms if norm is not None),
            self._linear(attention.q_proj, attention.k_proj, attention.v_proj),
            self._linear(attention.o_proj),
            self._linear(mlp.gate_proj, mlp.up_proj),
            self._linear(mlp.down_proj),
        )

    def _linear(self, *maps: nn.Linear) -> Linear:
        weight = self._together([one.weight for one in maps])
        biases = [one.bias for one in maps if one.bias is not None]
        return Linear(weight, self._together(biases) if biases else None)

    def _together(self, parts: Sequence[Tensor]) -> Tensor:
        """The parts, one below the other; a part alone that is not rounded is used as it is."""
        if len(parts) == 1 and parts[0].dtype == self.dtype:
            return parts[0].detach()
        whole = parts[0].new_empty(sum(map(len, parts)), *parts[0].shape[1:], dtype=self.dtype)
        pieces = whole.split([len(part) for part in parts])
        for piece, part in zip(pieces, parts, strict=True):
            piece.copy_(part)
        self.copies.append(whole)
        return whole

    def angles(self, places: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines (places, head size) of the positions up to `places`; the first half of
        the sines is negative, as `_rotated` needs it."""
        weight = self.model.model.embed_tokens.weight
        positions = torch.arange(places, device=weight.device)[None]
        cosines, sines = self.model.model.rotary_emb(weight[:1, None], positions)
        sines = sines[0].clone()
        sines[:, : self.size // 2].neg_()
        return cosines[0].clone(), sines

    def __call__(
        self, tokens: Tensor, positions: Tensor, angles: tuple[Tensor, Tensor], attend: Attend
    ) -> Tensor:
        """Logits (R, V), in float32 at least, of what follows the last of the tokens (R, L)."""
        with torch.autocast(tokens.device.type, enabled=False):
            turned = [F.embedding(positions, table)[:, :, None] for table in angles]
            hidden = F.embedding(tokens, self.model.model.embed_tokens.weight)
            for i, layer in enumerate(self.layers):
                heads = layer.to_heads(normed(layer.before_attention, hidden))
                attended = attend(i, *self._heads(layer, heads, *turned))
                hidden = hidden + layer.from_heads(attended)
                mlp = layer.to_mlp(normed(layer.before_mlp, hidden))
                gate, passing = mlp.chunk(2, dim=-1)
                hidden = hidden + layer.from_mlp(F.silu(gate) * passing)
            logits = self.head(normed(self.model.model.norm, hidden[:, -1]))
        return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits

    def _heads(self, layer: Layer, states: Tensor, cosines: Tensor, sines: Tensor):
        """Queries, keys and values (R, L, heads, size), the first two rotated."""
        states = states.unflatten(-1, (-1, self.size))
        counts = [self.heads, self.key_heads, self.key_heads]
        if layer.of_heads:
            *turning, values = states.split(counts, dim=2)
            pairs = zip(layer.of_heads, turning, strict=True)
            states = torch.cat([*(normed(norm, x).to(x.dtype) for norm, x in pairs), values], 2)
        turning = self.heads + self.key_heads
        # (a, b) becomes (a cos − b sin, b cos + a sin), where a and b are a head's halves.
        straight = states[:, :, :turning] * cosines
        crossed = states.roll(self.size // 2, dims=-1)[:, :, :turning]
        rotated = torch.empty_like(straight, dtype=states.dtype)
        torch.addcmul(straight, crossed, sines, out=rotated)
        queries, keys = rotated.split(counts[:2], dim=2)
        return queries, keys, states[:, :, turning:]

    def read_prompts(self, tokens: Tensor, mask: Tensor, positions: Tensor):
        """Logits (B, V) after the prompts (B, P), and every layer's keys and values of them
        (B, key heads, P, size)."""
        length = tokens.shape[1]
        earlier = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
        # Padding reads itself: a softmax over nothing would be NaN.
        seen = earlier & (mask.bool()[:, None] | torch.eye(length, device=mask.device).bool())
        hidden = torch.zeros(seen.shape, dtype=self.dtype, device=tokens.device)
        hidden.masked_fill_(~seen, -torch.inf)
        cache = []

        def attend(_: int, *states: Tensor) -> Tensor:
            queries, keys, values = (x.transpose(1, 2) for x in states)
            cache.append((keys, values))
            shared = self.heads // self.key_heads
            keys, values = (x.repeat_interleave(shared, dim=1) for x in (keys, values))
            found = F.scaled_dot_product_attention(
                queries, keys, values, attn_mask=hidden[:, None], scale=self.scaling
            )
            return found.transpose(1, 2).flatten(2)

        return self(tokens, positions, self.angles(length), attend), cache

    def attention_to(self, layers: list[Any], place: Tensor, hidden: Tensor) -> Attend:
        """Attention of one new token a row to the buffers of `layers`, after its own keys and
        values are written there at `place`. `hidden` (R, 1, 1, places) is added to the scores.

        Queries that share a key head are laid side by side, as if they were a text's, so that the
        buffers are read once for all of them. The kernel's scores are float32 in any precision.
        """

        def attend(i: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            layer = layers[i]
            layer.keys.index_copy_(2, place, keys.transpose(1, 2))
            layer.values.index_copy_(2, place, values.transpose(1, 2))
            grouped = queries[:, 0].unflatten(1, (self.key_heads, -1))
            found = F.scaled_dot_product_attention(
                grouped, layer.keys, layer.values, attn_mask=hidden, scale=self.scaling
            )
            return found.flatten(1)[:, None]

        return attend


def normed(norm: Any, x: Tensor) -> Tensor:
    """`x` divided by its root mean square, in the norm's own precision."""
    x = x.to(norm.weight.dtype)
    return F.rms_norm(x, x.shape[-1:], norm.weight, norm.variance_epsilon)
