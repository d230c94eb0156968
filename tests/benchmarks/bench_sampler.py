"""Tokens per second of our sampler and of `generate`, interleaved in one run.

    python tests/benchmarks/bench_sampler.py                             # the embedded model
    python tests/benchmarks/bench_sampler.py --model qwen2.5-0.5b-shape  # on a GPU if there is one
    python tests/benchmarks/bench_sampler.py --model qwen2.5-0.5b-shape --tiny-shape --rows 64

Both draw from the full softmax at temperature 1. Only tokens up to EOS count. The shape is a
randomly initialized model of Qwen2.5-0.5B's sizes; it never ends by itself, so a token that stands
for EOS is drawn at each step with probability 1 / `--tokens`.
"""

import argparse
import statistics
import time

import torch
from transformers import LogitsProcessor, LogitsProcessorList, Qwen2Config, Qwen2ForCausalLM

from rlcourse.algorithms import sample_tokens
from rlcourse.policy import Policy, sample_completions

EOS, PAD = 1, 0


def tiny_case(args):
    """The embedded model on prompts of its own task."""
    from rlcourse.tasks import load_task

    policy = Policy.load("tiny", device=args.device, dtype=args.dtype)
    problems = load_task("word_problems").train[: args.rows // args.group]
    prompts = policy.encode_prompts([f"Question: {p.question}\nAnswer:" for p in problems])
    return policy.model, prompts, policy.eos_ids, policy.pad_id, None


def qwen_case(args):
    """Random weights in Qwen2.5-0.5B's shape, random prompts of 60 to 120 tokens."""
    sizes = {
        "vocab_size": 151_936,
        "hidden_size": 896,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "intermediate_size": 4864,
    }
    if args.tiny_shape:
        sizes |= {"vocab_size": 2000, "hidden_size": 112, "num_hidden_layers": 4}
        sizes |= {"intermediate_size": 608}
    config = Qwen2Config(**sizes, tie_word_embeddings=True, bos_token_id=None, eos_token_id=EOS)
    torch.manual_seed(0)
    with torch.device(args.device):
        model = Qwen2ForCausalLM(config).to(args.dtype).eval()
        n_prompts = args.rows // args.group
        lengths = torch.randint(60, 121, (n_prompts, 1))
        tokens = torch.randint(2, sizes["vocab_size"], (n_prompts, 120))
        mask = torch.arange(120) >= 120 - lengths
    return model, (tokens, mask), (EOS,), PAD, 1 / args.tokens


def end_by_chance(logits, probability):
    """Logits under which EOS has this probability."""
    logits = logits.float().log_softmax(-1)
    logits[:, EOS] = torch.log(torch.tensor(probability / (1 - probability)))
    return logits


class EndByChance(LogitsProcessor):
    """`end_by_chance` for `generate`."""

    def __init__(self, probability: float):
        self.probability = probability

    def __call__(self, input_ids, scores):
        return end_by_chance(scores, self.probability)


def samplers(args):
    """Name → function that draws a batch and returns how many real tokens it has."""
    model, (tokens, mask), eos_ids, pad_id, ending = (
        tiny_case(args) if args.model == "tiny" else qwen_case(args)
    )
    draw, processors = sample_tokens, LogitsProcessorList()
    if ending is not None:
        processors.append(EndByChance(ending))

        def draw(logits, **options):
            return sample_tokens(end_by_chance(logits, ending), **options)

    rows = torch.arange(len(tokens), device=tokens.device).repeat_interleave(args.group)
    eos = torch.tensor(eos_ids, device=tokens.device)

    def generate(**cache):
        output = model.generate(
            input_ids=tokens[rows],
            attention_mask=mask[rows].long(),
            max_new_tokens=args.tokens,
            do_sample=True,
            top_k=0,
            eos_token_id=list(eos_ids),
            pad_token_id=pad_id,
            logits_processor=processors,
            **cache,
        )[:, tokens.shape[1] :]
        ended = torch.isin(output, eos).long()
        return int((ended.cumsum(1) - ended == 0).sum())

    def ours():
        rollouts = sample_completions(
            model,
            tokens,
            mask,
            group_size=args.group,
            max_tokens=args.tokens,
            eos_ids=eos_ids,
            pad_id=pad_id,
            sample_tokens=draw,
        )
        return int(rollouts.mask.sum())

    return {"generate, dynamic cache": generate, "rlcourse": ours}


def tokens_per_second(sampler, device) -> tuple[float, int]:
    """Rate of one batch, and its tokens; reading the count waits for the device."""
    start = time.perf_counter()
    n_tokens = sampler()
    return n_tokens / (time.perf_counter() - start), n_tokens


def main():
    """Measure and print the table."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=["tiny", "qwen2.5-0.5b-shape"], default="tiny")
    parser.add_argument("--tiny-shape", action="store_true", help="its layout at 1/8 width")
    parser.add_argument("--rows", type=int, default=128, help="completions in a batch")
    parser.add_argument("--group", type=int, default=8, help="completions per prompt")
    parser.add_argument("--tokens", type=int, default=60, help="most new tokens per completion")
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--dtype", default=None, help="default: bfloat16 on a GPU, else float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    args.dtype = getattr(torch, args.dtype or ("bfloat16" if "cuda" in args.device else "float32"))
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    contenders = samplers(args)
    rates, counts = {name: [] for name in contenders}, {name: 0 for name in contenders}
    for repeat in range(-1, args.repeats):  # the first round warms up
        for name, sampler in contenders.items():
            rate, n_tokens = tokens_per_second(sampler, args.device)
            if repeat >= 0:
                rates[name].append(rate)
                counts[name] += n_tokens
    shape = " (1/8 width)" if args.tiny_shape else ""
    print(f"{args.model}{shape}, {args.rows} rows = {args.rows // args.group} prompts × "
          f"{args.group}, at most {args.tokens} new tokens, {args.device}, {args.dtype}, "
          f"{args.threads} CPU threads, {args.repeats} rounds")  # fmt: skip
    base = statistics.median(next(iter(rates.values())))
    print(f"{'':26}{'tokens/s':>10}{'worst':>10}{'best':>10}{'ratio':>8}{'tokens/row':>12}")
    for name, seen in rates.items():
        median = statistics.median(seen)
        per_row = counts[name] / args.repeats / args.rows
        print(f"{name:26}{median:10,.0f}{min(seen):10,.0f}{max(seen):10,.0f}"
              f"{median / base:8.2f}{per_row:12.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
