"""Tokens per second of our sampler and of `generate`, interleaved in one run.

    python tests/benchmarks/bench_sampler.py
    python tests/benchmarks/bench_sampler.py --policy models/smollm2-135m --rows 32 --tokens 48

Of the embedded model, or one that is named, on a GPU if there is one. Both draw from the full
softmax at temperature 1. Only tokens up to EOS count.
"""

import argparse
import statistics
import time

import torch

from rlcourse.policy import Policy, sample_completions


def case(args):
    """The model on prompts of the embedded task."""
    from rlcourse.tasks import load_task

    policy = Policy.load(args.policy, device=args.device, dtype=args.dtype)
    problems = load_task("word_problems").train[: args.rows // args.group]
    prompts = policy.encode_prompts([policy.format_prompt(p.question) for p in problems])
    return policy.model, prompts, policy.eos_ids, policy.pad_id


def samplers(args):
    """Name → function that draws a batch and returns how many real tokens it has."""
    model, (tokens, mask), eos_ids, pad_id = case(args)
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
    parser.add_argument("--policy", default="tiny")
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
    print(f"{args.rows} rows = {args.rows // args.group} prompts × "
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
