"""How large a model is, from the few numbers that its configuration holds; no weights are read."""

from dataclasses import dataclass

from rlcourse.errors import UserError

LLAMA_LIKE = ("llama", "mistral", "qwen2")


@dataclass(frozen=True)
class ModelShape:
    """A decoder of the Llama family: SwiGLU, RMSNorm, rotary positions, grouped key-value heads."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    tied: bool = True  # the output layer is the embedding
    qkv_bias: bool = False  # Qwen2's queries, keys and values have biases

    @property
    def linear_maps(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of the linear maps of one layer, by Hugging Face's names."""
        query, key = self.heads * self.head_size, self.kv_heads * self.head_size
        return {
            "q_proj": (self.hidden, query),
            "k_proj": (self.hidden, key),
            "v_proj": (self.hidden, key),
            "o_proj": (query, self.hidden),
            "gate_proj": (self.hidden, self.intermediate),
            "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden),
        }

    @property
    def words(self) -> int:
        """Weights of the embedding, and of the output layer."""
        return self.vocabulary * self.hidden

    @property
    def matrices(self) -> int:
        """Weights that multiply activations, the output layer included: 2 FLOP a token each."""
        return self.layers * sum(n * m for n, m in self.linear_maps.values()) + self.words

    @property
    def biases(self) -> int:
        """Those of queries, keys and values."""
        outputs = (self.heads + 2 * self.kv_heads) * self.head_size
        return self.qkv_bias * self.layers * outputs

    @property
    def body(self) -> int:
        """Parameters without an output layer of its own: what a scalar head is put on."""
        norms = (2 * self.layers + 1) * self.hidden
        return self.matrices + self.biases + norms  # the embedding counts in place of the output

    @property
    def parameters(self) -> int:
        """All of them; a tied embedding counts once."""
        return self.body + (0 if self.tied else self.words)

    @property
    def cached_numbers(self) -> int:
        """Numbers in the keys of one token, over all layers; its values are as many."""
        return self.layers * self.kv_heads * self.head_size

    def adapter_parameters(self, rank: int, targets) -> int:
        """Parameters of LoRA's two matrices on each target: rank · (inputs + outputs)."""
        maps = self.linear_maps
        chosen = maps if isinstance(targets, str) else [t for t in targets if t in maps]
        return self.layers * rank * sum(sum(maps[name]) for name in chosen)


# From the models' config.json files.
KNOWN = {
    "HuggingFaceTB/SmolLM2-135M": ModelShape(30, 576, 1536, 9, 3, 64, 49152),
    "HuggingFaceTB/SmolLM2-360M": ModelShape(32, 960, 2560, 15, 5, 64, 49152),
    "HuggingFaceTB/SmolLM2-1.7B": ModelShape(24, 2048, 8192, 32, 32, 64, 49152),
    "Qwen/Qwen2.5-0.5B": ModelShape(24, 896, 4864, 14, 2, 64, 151936, qkv_bias=True),
    "Qwen/Qwen2.5-1.5B": ModelShape(28, 1536, 8960, 12, 2, 128, 151936, qkv_bias=True),
}


def model_shape(policy: str) -> ModelShape:
    """The shape of a policy by its name or directory.

    The five known models need no network, with or without "-Instruct"; of others the configuration
    is read.

    Raises:
        UserError: there is no such model, or it is not of the Llama family.
    """
    if known := KNOWN.get(policy.removesuffix("-Instruct")):
        return known
    from rlcourse.policy.loading import configuration

    return shape_from_config(configuration(policy), policy)


def shape_from_config(config, name: str) -> ModelShape:
    """The shape that a Hugging Face configuration describes."""
    if config.model_type not in LLAMA_LIKE:
        raise UserError(
            f"{name} is a {config.model_type} model, of which no plan can be made: plans are for "
            f"{', '.join(LLAMA_LIKE)} models"
        )
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return ModelShape(
        config.num_hidden_layers,
        config.hidden_size,
        config.intermediate_size,
        config.num_attention_heads,
        config.num_key_value_heads or config.num_attention_heads,
        size,
        config.vocab_size,
        tied=bool(config.tie_word_embeddings),
        qkv_bias=config.model_type == "qwen2" or bool(getattr(config, "attention_bias", False)),
    )
