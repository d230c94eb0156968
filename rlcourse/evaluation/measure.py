"""How good a policy is: accuracy, pass@k, majority vote, format and length, with intervals."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from tqdm.auto import tqdm

from rlcourse.errors import UserError
from rlcourse.evaluation.results import Completion, Evaluation, Transcript
from rlcourse.policy.rollouts import Rollouts, cut_off
from rlcourse.seeds import derived_generator
from rlcourse.tasks import Problem, extract_answer, extract_lenient_answer

Result = TypeVar("Result")


def evaluate_policy(
    policy,
    problems: Sequence[Problem],
    samples: int = 8,
    temperature: float = 1.0,
    max_tokens: int = 64,
    *,
    extract: Callable[[str], str | None] = extract_answer,
    format_reward: Callable[[list[str]], torch.Tensor] | None = None,
    system: str | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    batch: int = 512,
    progress: bool = False,
) -> Evaluation:
    """Solve every problem once greedily and `samples` times at `temperature`.

    Every number is a mean over problems, its interval a bootstrap over problems: completions of one
    problem are not independent evidence.

    Args:
        extract: the task's rule, which reads the final number of a completion.
        format_reward: measure this reward as well, such as `rlcourse.tasks.format_reward`.
        batch: how many completions are sampled at once; half as many from where memory runs out.
            What is drawn for a problem is a function of the seed and of the batch it is in, so that
            another `batch`, or memory that runs out elsewhere, gives other samples: as good, but
            not the same.

    Raises:
        UserError: there are no problems or no samples, or one completion does not fit into memory.
    """
    if not problems:
        raise UserError("there are no problems to evaluate on")
    if samples < 1 or batch < 1:
        raise UserError(f"samples={samples} and batch={batch} must both be at least 1")

    def solve(start: int, stop: int, at_once: int) -> list[Transcript]:
        some = problems[start:stop]
        prompts = [policy.format_prompt(p.question, system=system) for p in some]
        generator = derived_generator(policy.device, seed, "evaluation", start)
        common = {"max_tokens": max_tokens, "generator": generator}
        random = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        greedy = _written(policy, policy.sample(prompts, temperature=0.0, **common))
        drawn = [[] for _ in some]
        for begin in range(0, samples, at_once):
            group_size = min(at_once, samples - begin)
            rollouts = policy.sample(prompts, group_size=group_size, **random, **common)
            for of_problem, group in zip(drawn, _written(policy, rollouts), strict=True):
                of_problem += group
        transcripts = []
        for problem, (first,), group in zip(some, greedy, drawn, strict=True):
            first, *group = (_judged(w, problem, extract, format_reward) for w in (first, *group))
            transcripts.append(Transcript(problem.question, problem.answer, first, tuple(group)))
        return transcripts

    started = time.perf_counter()
    transcripts = []
    with tqdm(total=len(problems), desc="evaluate", leave=False, disable=not progress) as bar:
        for solved, _ in in_batches(solve, len(problems), samples, batch):
            transcripts += solved
            bar.update(len(solved))
    return Evaluation.of(transcripts, temperature, time.perf_counter() - started)


def greedy_accuracy(
    policy, problems: Sequence[Problem], max_tokens: int, extract, system=None
) -> float:
    """Share of the problems that the policy's greedy completion solves; quick, for curves."""

    def count_right(start: int, stop: int, at_once: int) -> int:
        some = problems[start:stop]
        prompts = [policy.format_prompt(p.question, system=system) for p in some]
        texts = policy.decode(policy.sample(prompts, max_tokens=max_tokens, temperature=0.0))
        return sum(_right(extract(t), p) for t, p in zip(texts, some, strict=True))

    return sum(right for right, _ in in_batches(count_right, len(problems))) / len(problems)


def in_batches(
    work: Callable[[int, int, int], Result],
    problems: int,
    samples: int = 1,
    at_once: int = 512,
    start: int = 0,
) -> Iterator[tuple[Result, int]]:
    """``work(start, stop, at_once)`` for batches of problems, whose samples are `at_once` or fewer.

    Where memory runs out, `at_once` is halved for good and the batch begins again. With fewer at
    once than one problem has samples, `work` gets single problems and must divide their samples.
    Yields each result with the `at_once` that it took.
    """
    while start < problems:
        stop = min(problems, start + max(1, at_once // samples))
        try:
            result = work(start, stop, at_once)
        except torch.OutOfMemoryError:
            result = None  # tried again outside this block, where the error holds no tensors alive
        if result is None:
            at_once = _half(min(at_once, samples * (stop - start)))
            continue
        yield result, at_once
        start = stop


def _half(at_once: int) -> int:
    if at_once == 1:
        raise UserError(
            "one completion at a time does not fit into memory: lower max_tokens, load the policy "
            'with dtype="bfloat16", or take a smaller one'
        )
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    message = f"rlcourse: out of memory with {at_once} completions at once; going on with "
    tqdm.write(f"{message}{at_once // 2}", file=sys.stderr)
    return at_once // 2


def _written(policy, rollouts: Rollouts) -> list[list[tuple[str, int, bool]]]:
    """(text, length, cut off) of every completion, one list for each prompt."""
    lengths, cut = rollouts.mask.sum(1).tolist(), cut_off(rollouts, policy.eos_ids).tolist()
    rows = list(zip(policy.decode(rollouts), lengths, cut, strict=True))
    size = rollouts.group_size
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _judged(written: tuple[str, int, bool], problem: Problem, extract, reward) -> Completion:
    text, length, cut = written
    given, lenient = extract(text), extract_lenient_answer(text)
    return Completion(
        text=text,
        given=given,
        correct=_right(given, problem),
        lenient=lenient,
        lenient_correct=_right(lenient, problem),
        length=length,
        cut_off=cut,
        format_reward=float(reward([text])[0]) if reward else None,
    )


def _right(given: str | None, problem: Problem) -> bool:
    return given is not None and given == problem.target
