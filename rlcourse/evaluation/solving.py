"""Letting a policy solve problems, batch by batch, and judging what it wrote."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from tqdm.std import tqdm

from rlcourse.errors import UserError
from rlcourse.evaluation.scores import Completion, Transcript
from rlcourse.machine import is_out_of_memory
from rlcourse.policy.prompts import opened_by
from rlcourse.policy.rollouts import truncated
from rlcourse.policy.turns import SOLVED, Speaker, World
from rlcourse.seeds import derived_generator
from rlcourse.tasks import Problem, extract_lenient_answer

Result = TypeVar("Result")


@dataclass(frozen=True)
class Sampling:
    """What a policy is asked for: one greedy completion, and samples."""

    samples: int
    temperature: float
    top_k: int | None
    top_p: float | None
    max_tokens: int
    system: str | None
    seed: int


class Written(NamedTuple):
    """What was written for a problem, and what is known of it."""

    text: str
    length: int  # tokens that the policy wrote
    cut: bool  # whether it was cut off
    paid: float | None = None  # of an episode, its reward; a completion is judged by its text


@dataclass(frozen=True)
class Judge:
    """How a completion is read: strictly by the task's rule, leniently, and for its form."""

    extract: Callable[[str], str | None]
    format_reward: Callable[[list[str]], torch.Tensor] | None = None

    def __call__(self, written: Written, problem: Problem) -> Completion:
        text, length, cut, paid = written
        given, lenient = self.extract(text), extract_lenient_answer(text)
        return Completion(
            text=text,
            given=given,
            correct=is_right(given, problem) if paid is None else paid >= SOLVED,
            lenient=lenient,
            lenient_correct=is_right(lenient, problem),
            length=length,
            truncated=cut,
            format_reward=float(self.format_reward([text])[0]) if self.format_reward else None,
        )


def is_right(given: str | None, problem: Problem) -> bool:
    """Whether the number read from a completion is the problem's."""
    return given is not None and given == problem.target


def solve(
    policy,
    problems: Sequence[Problem],
    first: int,
    at_once: int,
    asked: Sampling,
    judge: Judge,
    world: World | None = None,
) -> list[Transcript]:
    """One batch of problems, solved and judged; `first` is the first one's place among all.

    At most `at_once` completions are drawn at once. The draws are a function of `asked.seed`,
    `first`, `at_once` and the problems of the batch. In a `world` they are episodes.
    """
    generator = derived_generator(policy.device, asked.seed, "evaluation", first)
    write = partial(_completions if world is None else partial(_episodes, world), policy, problems)
    common: dict[str, Any] = {"asked": asked, "generator": generator}
    filters = common | {
        "temperature": asked.temperature,
        "top_k": asked.top_k,
        "top_p": asked.top_p,
    }
    greedy = write(1, temperature=0.0, **common)
    drawn: list[list] = [[] for _ in problems]
    for begin in range(0, asked.samples, at_once):
        group_size = min(at_once, asked.samples - begin)
        for samples, group in zip(drawn, write(group_size, **filters), strict=True):
            samples += group
    return [
        Transcript(p.question, p.answer, judge(one, p), tuple(judge(sample, p) for sample in many))
        for p, (one,), many in zip(problems, greedy, drawn, strict=True)
    ]


def _completions(policy, problems, times: int, *, asked: Sampling, **how) -> list[list[Written]]:
    prompts = [policy.format_prompt(p.question, system=asked.system) for p in problems]
    drawn = policy.sample(prompts, group_size=times, max_tokens=asked.max_tokens, **how)
    lengths, cut = drawn.mask.sum(1).tolist(), truncated(drawn, policy.eos_ids).tolist()
    texts = [opened_by(prompts[0]) + text for text in policy.decode(drawn)]
    return _by_problem(map(Written, texts, lengths, cut), times)


def _episodes(world: World, policy, problems, times: int, *, asked: Sampling, **how):
    speaker = Speaker(policy, asked.max_tokens, system=asked.system, **how)
    rows = []
    for episode, reward in zip(*world.play(speaker, problems, times), strict=True):
        turns = [ids for author, ids, _ in episode if author == "policy"]
        cut = not turns or not turns[-1] or turns[-1][-1] not in policy.eos_ids
        rows.append(Written(speaker.told(episode), sum(map(len, turns)), cut, reward.item()))
    return _by_problem(rows, times)


def _by_problem(rows: Iterable[Written], times: int) -> list[list[Written]]:
    found = list(rows)
    return [found[i : i + times] for i in range(0, len(found), times)]


def in_batches(
    work: Callable[[int, int, int], Result],
    problems: int,
    samples: int,
    at_once: int,
    start: int = 0,
) -> Iterator[tuple[Result, int]]:
    """``work(start, stop, at_once)`` for batches of problems that have `at_once` samples or fewer.

    Where memory runs out, `at_once` is halved for good and the batch begins again. When it is less
    than one problem's samples, `work` gets single problems and must divide their samples. Yields
    each result with the `at_once` that it took.

    Raises:
        UserError: memory runs out with one completion at once.
    """
    while start < problems:
        stop = min(problems, start + max(1, at_once // samples))
        try:
            result = work(start, stop, at_once)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            result = None  # tried again outside this block, where the error holds no tensors alive
        if result is None:
            at_once = _half(min(at_once, samples * (stop - start)))
        else:
            yield result, at_once
            start = stop


def _half(at_once: int) -> int:
    if at_once == 1:
        raise UserError(
            "one completion at a time does not fit into memory: lower max_tokens, load the policy "
            "with dtype bfloat16, or take a smaller model"
        )
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    message = f"rlcourse: out of memory with {at_once} completions at once; continuing with"
    tqdm.write(f"{message} {at_once // 2}", file=sys.stderr)
    return at_once // 2
