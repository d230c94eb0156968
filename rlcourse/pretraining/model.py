"""What training starts from: a tokenizer made from the texts to be read, and random weights."""

from collections.abc import Iterable

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rlcourse.policy import Policy
from rlcourse.pretraining.sizes import CONTEXT, Size

PAD, EOS = SPECIAL = ("<pad>", "</s>")


def random_policy(size: Size, texts: Iterable[str], seed: int) -> Policy:
    """A policy of this size that knows the pieces of `texts`, and nothing else yet.

    It has no chat template: a question is put as ``Question: … Answer:``.
    """
    tokenizer = trained_tokenizer(texts, size.vocabulary)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden,
        intermediate_size=size.intermediate,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    return Policy(LlamaForCausalLM(config).eval(), tokenizer)


def trained_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE of at most `vocabulary` pieces, in which each digit is a piece of its own.

    Every text can be written with it, and numbers keep their digits apart, so that sums can be
    learned place by place.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIAL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        padding_side="left",
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )
