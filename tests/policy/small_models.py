"""Randomly initialized models of several architectures, small enough to test in milliseconds."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

V, PAD, BOS, EOS = 40, 0, 1, 2
SPECIAL = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
# Large initial weights: peaked distributions, so that a wrong position or mask changes the output.
SIZES = {
    "vocab_size": V,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.4,
    **SPECIAL,
}
ARCHITECTURES = ["llama", "qwen2", "qwen3", "gpt2", "mistral", "mistral_sliding"]


def small_model(architecture: str, seed: int = 0, dtype=torch.float32, **changes):
    """A model of V tokens in eval mode; `mistral_sliding` attends to the last six only."""
    torch.manual_seed(seed)
    if architecture == "llama":
        model = LlamaForCausalLM(LlamaConfig(**SIZES | changes))
    elif architecture == "qwen2":
        model = Qwen2ForCausalLM(Qwen2Config(**SIZES | changes))
    elif architecture == "qwen3":
        model = Qwen3ForCausalLM(Qwen3Config(**SIZES | {"head_dim": 12} | changes))
    elif architecture.startswith("mistral"):
        window = {"sliding_window": 6 if architecture == "mistral_sliding" else None}
        model = MistralForCausalLM(MistralConfig(**SIZES | window | changes))
    else:
        sizes = {"vocab_size": V, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}
        model = GPT2LMHeadModel(
            GPT2Config(**sizes | SPECIAL | {"initializer_range": 0.4} | changes)
        )
    return model.to(dtype).eval()


def small_tokenizer(**special) -> PreTrainedTokenizerFast:
    """One token per word: w3 … w39; without arguments with pad, BOS and EOS."""
    special = special or {"pad_token": "<pad>", "bos_token": "<bos>", "eos_token": "<eos>"}
    words = ["<pad>", "<bos>", "<eos>"] + [f"w{i}" for i in range(3, V)]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="w3"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def left_padded_prompts(lengths=(3, 9, 1, 6), seed: int = 0):
    """Random prompts of these lengths: tokens and mask, (B, P)."""
    generator = torch.Generator().manual_seed(seed)
    width = max(lengths)
    tokens = torch.randint(3, V, (len(lengths), width), generator=generator)
    mask = torch.arange(width) >= width - torch.tensor(lengths)[:, None]
    return tokens.masked_fill(~mask, PAD), mask
