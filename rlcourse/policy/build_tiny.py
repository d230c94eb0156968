"""Build the embedded base model: ``python -m rlcourse.policy.build_tiny [--out DIR] [--seed N]``.

A 2-layer Llama with a word-level tokenizer that splits numbers into digits. It reads sloppy
demonstrations in plain format (``Question: … Answer: …``) for the habits and arithmetic drills for
the sums, and never sees the chat format or a held-out problem. The result is accepted only if it
solves held-out problems in one of 32 attempts and holds the arithmetic: reinforcement learning
selects among the things that a model this small can already do.
"""

import argparse
import re
import time
from itertools import chain
from pathlib import Path
from random import Random

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rlcourse.policy.model import Policy
from rlcourse.tasks import correctness_reward, word_problems
from rlcourse.tasks.templates import CONTAINERS, NAMES, TEMPLATES, THINGS

TINY = Path(__file__).with_name("tiny")
STEPS = 3000
MIN_ARITHMETIC, MIN_SOLVED = 0.97, 0.9
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
    start = time.perf_counter()
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
            seconds = time.perf_counter() - start
            print(f"step {step:5d}/{steps}  loss {loss.item():.4f}  {seconds:4.0f} s", flush=True)


@torch.no_grad()
def arithmetic_accuracy(model: LlamaForCausalLM, corpus: Corpus, rows: int = 128) -> float:
    """Share of new sums, each after the same few others, whose whole result is predicted."""
    tokens, labels = corpus.batch(problems=0, drills=rows)
    right = model(tokens).logits[:, :-1].argmax(-1) == labels[:, 1:]
    scored = labels[:, 1:] != -100
    sums = (
        tokens[:, :-1].eq(torch.as_tensor(corpus.equals)).cumsum(1)
    )  # which sum of its row a token belongs to
    results = [right[i][scored[i] & (sums[i] == k)].all() for i in range(rows) for k in range(1, 9)]
    return torch.stack(results).float().mean().item()


def solved_in(model: LlamaForCausalLM, corpus: Corpus, attempts: int = 32, n: int = 128) -> float:
    """pass@`attempts` on held-out problems of the default level, in plain format, at T=1."""
    problems = word_problems.problems(n, 0, "default", "evaluation")
    policy = Policy(model, corpus.tokenizer)
    prompts = [plain_prompt(p.question) for p in problems]
    generator = torch.Generator().manual_seed(0)
    completions = policy.decode(policy.sample(prompts, attempts, generator=generator))
    answers = [p.answer for p in problems for _ in range(attempts)]
    return correctness_reward(completions, answers).view(n, attempts).amax(1).mean().item()


def main() -> None:
    """Train, measure, and write the model only if it is good enough to learn from."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, default=TINY)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()

    torch.set_num_threads(1)  # the same sums in the same order, so the same weights
    tokenizer = build_tokenizer()
    model = build_model(tokenizer, arguments.seed)
    train(model, Corpus(tokenizer, arguments.seed), arguments.steps)

    model.half().float().eval()
    fresh = Corpus(tokenizer, arguments.seed + 1)
    arithmetic, solved = arithmetic_accuracy(model, fresh), solved_in(model, fresh)
    print(f"arithmetic {arithmetic:.3f}  pass@32 {solved:.3f}")
    if arithmetic < MIN_ARITHMETIC or solved < MIN_SOLVED:
        raise SystemExit(
            f"Nothing was written: arithmetic must reach {MIN_ARITHMETIC}, pass@32 {MIN_SOLVED}; "
            "try another --seed or more --steps."
        )
    model.half().save_pretrained(arguments.out)
    tokenizer.save_pretrained(arguments.out)
    (arguments.out / "model.safetensors").chmod(0o644)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
