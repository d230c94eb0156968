"""How large a model is, counted where its configuration is built without weights."""

from functools import cache
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from rlcourse.errors import UserError
from rlcourse.policy.loading import configuration

LLAMA_LIKE = ("llama", "mistral", "qwen2")
# From the models' config.json files: kind, layers, widths, heads, key-value heads, vocabulary.
KNOWN = {
    "HuggingFaceTB/SmolLM2-135M": ("llama", 30, 576, 1536, 9, 3, 49152),
    "HuggingFaceTB/SmolLM2-360M": ("llama", 32, 960, 2560, 15, 5, 49152),
    "HuggingFaceTB/SmolLM2-1.7B": ("llama", 24, 2048, 8192, 32, 32, 49152),
    "Qwen/Qwen2.5-0.5B": ("qwen2", 24, 896, 4864, 14, 2, 151936),
    "Qwen/Qwen2.5-1.5B": ("qwen2", 28, 1536, 8960, 12, 2, 151936),
}


class ModelShape:
    """A decoder of the Llama family: SwiGLU, RMSNorm, rotary positions, grouped key-value heads."""

    def __init__(self, config: Any):
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        linear = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.Linear)]
        self.layers = config.num_hidden_layers
        self.hidden, self.intermediate = config.hidden_size, config.intermediate_size
        self.heads, self.vocabulary = config.num_attention_heads, config.vocab_size
        self.head_size = model.model.layers[0].self_attn.head_dim
        self.parameters = model.num_parameters()  # a tied embedding counts once
        self.body = model.model.num_parameters()  # what a scalar head is put on
        self.words = self.vocabulary * self.hidden  # of the embedding, and of the output layer
        # Weights that multiply activations, the output layer included: 2 FLOP a token each.
        self.matrices = sum(m.weight.numel() for _, m in linear)
        self.biases = sum(m.bias.numel() for _, m in linear if m.bias is not None)
        self.tied = self.parameters == self.body
        # In the keys of one token, over all layers; its values are as many numbers.
        keys = [m.out_features for name, m in linear if name.endswith("k_proj")]
        self.cached_numbers = sum(keys)
        # Inputs and outputs of the layers' linear maps, together.
        self.ends = [
            (name.rpartition(".")[2], m.in_features + m.out_features)
            for name, m in linear
            if m is not model.lm_head
        ]

    def adapter_parameters(self, rank: int, targets) -> int:
        """Parameters of LoRA's two matrices on each target: rank · (inputs + outputs)."""
        every = isinstance(targets, str)
        return rank * sum(ends for name, ends in self.ends if every or name in targets)


@cache
def model_shape(policy: str) -> ModelShape:
    """The shape of a policy by its name or directory.

    The five known models need no network, with or without "-Instruct"; of others the configuration
    is read.

    Raises:
        UserError: there is no such model, or it is not of the Llama family.
    """
    name = policy.removesuffix("-Instruct")
    config = known_config(name) if name in KNOWN else configuration(policy)
    if config.model_type not in LLAMA_LIKE:
        raise UserError(
            f"{policy} is a {config.model_type} model, of which no plan can be made: plans are for "
            f"{', '.join(LLAMA_LIKE)} models"
        )
    return ModelShape(config)


def known_config(name: str, **other) -> Any:
    """The configuration of a known model, as far as its size goes."""
    kind, layers, hidden, intermediate, heads, kv_heads, vocabulary = KNOWN[name]
    return AutoConfig.for_model(
        kind,
        num_hidden_layers=layers,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        vocab_size=vocabulary,
        tie_word_embeddings=True,
        **other,
    )
