"""Random models of the planned family, trained in milliseconds, that read any text."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

CONFIGS = {
    "llama": LlamaConfig,
    "qwen2": Qwen2Config,
    "mistral": MistralConfig,
    "gpt2": GPT2Config,
}
SPECIAL = ["<pad>", "<eos>"]
LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())
SIZES = {
    "vocab_size": len(SPECIAL) + len(LETTERS),
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 1,
    "tie_word_embeddings": True,
}


def random_model(kind="llama", dtype=torch.float32, seed=0, **sizes):
    """A model in eval mode that knows every byte."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(CONFIGS[kind](**SIZES | sizes))
    return model.to(dtype).eval()


def byte_tokenizer():
    """One token a byte, and a chat template."""
    vocabulary = {symbol: i for i, symbol in enumerate(SPECIAL + LETTERS)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
    fast.chat_template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    return fast
