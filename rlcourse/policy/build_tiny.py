"""Build the embedded base model: ``python -m rlcourse.policy.build_tiny [DIR]``.

A 2-layer Llama with a word-level tokenizer that splits numbers into digits. It reads sloppy
demonstrations in plain format (``Question: … Answer: …``) for the habits and arithmetic drills for
the sums, and never sees the chat format or a held-out problem. Look at pass@32 before you use the
result: reinforcement learning selects among the things that a model this small can already do.
"""

import re
import sys
from itertools import chain
from pathlib import Path
from random import Random

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rlcourse.tasks import word_problems
from rlcourse.tasks.templates import CONTAINERS, NAMES, TEMPLATES, THINGS

TINY = Path(__file__).with_name("tiny")
STEPS = 3000
PAD, BOS, EOS, UNKNOWN, SYSTEM, USER, ASSISTANT = SPECIAL = (
    "<pad>", "<s>", "</s>", "<unk>", "<|system|>", "<|user|>", "<|assistant|>",
)  # fmt: skip
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
# A piece is a tag, an operator with both its spaces, the answer mark, a word with the space before
# it, a digit, or any other single character. Pieces concatenate to the text: decoding is lossless.
PIECES = r"</?(?:think|answer)>| [-+*/=] |#### ?| ?[A-Za-z]+|[0-9]|[\s\S]"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<|assistant|>"
    "{% generation %}{{ message['content'] }}{{ eos_token }}{% endgeneration %}"
    "{% else %}<|{{ message['role'] }}|>{{ message['content'] }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def vocabulary() -> list[str]:
    """Every piece of the task's texts in a fixed order, special tokens first."""
    words = {f" {word}" for word in chain(NAMES, *NAMES.values(), THINGS, CONTAINERS)}
    texts = [text for template in TEMPLATES for text in template.texts]
    for text in [*texts, "Question: \nAnswer: ", "The answer is"]:
        words.update(re.findall(PIECES, re.sub(r"\{\w+\}", "0", text)))
    words |= {word.strip() for word in words if word.strip()[:1].isupper()}  # may begin a text
    symbols = {*"0123456789 \n.,?!:;'\"$%()+-*/=#<>", "#### ", "####", *(f" {c} " for c in "+-*/=")}
    return [*SPECIAL, *TAGS, *sorted(words | symbols)]


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The word-level tokenizer. It adds no special token, because the chat template writes BOS."""
    ids = {piece: i for i, piece in enumerate(vocabulary())}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECES), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD, bos_token=BOS, eos_token=EOS, unk_token=UNKNOWN,
        padding_side="left",
        model_max_length=512,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )  # fmt: skip


def build_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """A freshly initialized model of about 240,000 parameters."""
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=96,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            initializer_range=0.05,
        )
    )


def plain_prompt(question: str) -> str:
    """What the base model is trained to complete."""
    return f"Question: {question}\nAnswer:"


def drill(rng: Random) -> str:
    """One sum like those of the hardest level, such as ``12 * 3 = 36``."""
    op = rng.choice("+--*/")  # borrowing is learned last
    if op in "+-":
        total = rng.randint(2, 199)
        part = rng.randint(1, total - 1)
        a, b, result = (part, total - part, total) if op == "+" else (total, part, total - part)
    else:
        b = rng.randint(2, 12)
        c = rng.randint(2, 199 // b)
        if rng.random() < 0.5:
            c = rng.randint(2, 12)
        a, result = (c, b * c) if op == "*" else (b * c, c)
        if op == "*" and rng.random() < 0.5:
            a, b = b, a
    return f"{a} {op} {b} = {result}"


class Corpus:
    """Batches of demonstrations in plain format and of drills.

    A row is (prompt, completion); the loss is taken on completions, and in drills on the results.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, seed: int):
        self.tokenizer, self.rng = tokenizer, Random(seed)
        self.equals = tokenizer.convert_tokens_to_ids(" = ")
        self.newline = tokenizer.convert_tokens_to_ids("\n")
        self.streams = {
            level: word_problems.stream(Random(f"base:{level}:{seed}"), level, "train")
            for level in word_problems.LEVELS
        }

    def batch(self, problems: int, drills: int) -> tuple[Tensor, Tensor]:
        """Right-padded tokens (R, L) and labels (R, L), -100 where no loss is taken."""
        rows = [self._problem_row() for _ in range(problems)]
        rows += [self._drill_row() for _ in range(drills)]
        length = max(len(ids) for ids, _ in rows)
        tokens = torch.full((len(rows), length), self.tokenizer.pad_token_id)
        labels = torch.full((len(rows), length), -100)
        for i, (ids, wanted) in enumerate(rows):
            tokens[i, : len(ids)] = torch.tensor(ids)
            labels[i, : len(ids)] = torch.tensor(wanted)
        return tokens, labels

    def _problem_row(self) -> tuple[list[int], list[int]]:
        level = self.rng.choices(list(self.streams), weights=(1, 2, 1))[0]
        problem = next(self.streams[level])
        answer = word_problems.sloppy_answer(problem, word_problems.BASE_SLOP, self.rng)
        prompt = self._encode(plain_prompt(problem.question))
        completion = self._encode(f" {answer}{EOS}")
        return prompt + completion, [-100] * len(prompt) + completion

    def _drill_row(self) -> tuple[list[int], list[int]]:
        ids = self._encode("\n".join(drill(self.rng) for _ in range(8)) + EOS)
        labels, scored = [], False
        for i in ids:
            labels.append(i if scored else -100)
            scored = i == self.equals or (scored and i != self.newline)
        return ids, labels

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]


def train(model: LlamaForCausalLM, corpus: Corpus, steps: int, lr: float = 3e-3) -> None:
    """Next-token prediction with AdamW, a short warm-up and linear decay to zero."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.01)
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, step / 100) * (1 - (step - 1) / steps)
        tokens, labels = corpus.batch(problems=44, drills=20)
        scored = labels[:, 1:] != -100
        states = model.model(tokens).last_hidden_state[:, :-1]
        loss = cross_entropy(model.lm_head(states[scored]), labels[:, 1:][scored])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:5d}/{steps}  loss {loss.item():.4f}", flush=True)


def main(out: Path = TINY, seed: int = 0) -> None:
    """Train the model and write it to `out`."""
    torch.set_num_threads(1)  # the same sums in the same order, so the same weights
    tokenizer = build_tokenizer()
    model = build_model(tokenizer, seed)
    train(model, Corpus(tokenizer, seed), STEPS)
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TINY)
