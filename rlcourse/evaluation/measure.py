"""How good a policy is: accuracy and pass@k on held-out problems, with intervals."""

import time
from collections.abc import Callable, Sequence

from tqdm.auto import tqdm

from rlcourse.algorithms.evaluation import pass_at_k
from rlcourse.errors import UserError
from rlcourse.evaluation.results import Evaluation, Interval, Transcript
from rlcourse.policy.rollouts import cut_off
from rlcourse.seeds import derived_generator
from rlcourse.tasks.problem import Problem
from rlcourse.tasks.rewards import extract_answer


def evaluate_policy(
    policy,
    problems: Sequence[Problem],
    samples: int = 8,
    temperature: float = 1.0,
    max_tokens: int = 64,
    *,
    extract: Callable[[str], str | None] = extract_answer,
    system: str | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    batch: int = 512,
    progress: bool = False,
) -> Evaluation:
    """Solve every problem once greedily and `samples` times at `temperature`.

    `batch` is how many completions are sampled at once. Every number is a mean over problems, its
    interval a bootstrap over problems: completions of one problem are not independent evidence.

    Raises:
        UserError: there are no problems.
    """
    if not problems:
        raise UserError("there are no problems to evaluate on")
    started = time.perf_counter()
    generator = derived_generator(policy.device, seed, "evaluation")
    common = {"max_tokens": max_tokens, "generator": generator}
    count, tokens, clipped = [], 0, 0
    transcripts = []
    size = max(1, batch // (samples + 1))
    for start in tqdm(range(0, len(problems), size), "evaluate", leave=False, disable=not progress):
        some = problems[start : start + size]
        prompts = [policy.format_prompt(p.question, system=system) for p in some]
        greedy = policy.decode(policy.sample(prompts, temperature=0.0, **common))
        drawn = policy.sample(
            prompts, group_size=samples, temperature=temperature, top_k=top_k, top_p=top_p, **common
        )
        given = [extract(text) for text in policy.decode(drawn)]
        tokens += int(drawn.mask.sum())
        clipped += int(cut_off(drawn, policy.eos_ids).sum())
        for i, problem in enumerate(some):
            target = problem.target
            right = sum(
                g is not None and g == target for g in given[i * samples : (i + 1) * samples]
            )
            count.append(right)
            answer = extract(greedy[i])
            correct = answer is not None and answer == target
            transcripts.append(
                Transcript(problem.question, problem.answer, greedy[i], answer, correct, right)
            )
    ks = [k for k in (1, 2, 4, 8, 16, 32, 64, 128) if k < samples] + [samples]
    return Evaluation(
        problems=len(problems),
        samples=samples,
        temperature=temperature,
        accuracy=Interval.of([float(t.correct) for t in transcripts]),
        sampled_accuracy=Interval.of([c / samples for c in count]),
        pass_at={k: Interval.of([pass_at_k(samples, c, k) for c in count]) for k in ks},
        mean_length=tokens / (samples * len(problems)),
        clipped_ratio=clipped / (samples * len(problems)),
        tokens=tokens,
        seconds=time.perf_counter() - started,
        transcripts=transcripts,
    )


def greedy_accuracy(
    policy, problems: Sequence[Problem], max_tokens: int, extract, system=None
) -> float:
    """Share of the problems that the policy's greedy completion solves; quick, for curves."""
    right = 0
    for start in range(0, len(problems), 512):
        some = problems[start : start + 512]
        prompts = [policy.format_prompt(p.question, system=system) for p in some]
        texts = policy.decode(policy.sample(prompts, max_tokens=max_tokens, temperature=0.0))
        for problem, text in zip(some, texts, strict=True):
            given = extract(text)
            right += given is not None and given == problem.target
    return right / len(problems)
