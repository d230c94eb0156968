"""How good a policy is: accuracy, pass@k, majority vote, format and length, with intervals."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import torch
from tqdm.std import tqdm

from rlcourse.bars import Tokens, bar
from rlcourse.errors import UserError
from rlcourse.evaluation.directory import EvaluationDirectory, Records, fingerprint
from rlcourse.evaluation.scores import Evaluation
from rlcourse.evaluation.solving import Judge, Sampling, in_batches, is_right, solve
from rlcourse.evaluation.transcripts import TranscriptsTable, side_by_side
from rlcourse.policy.sampler import telling
from rlcourse.policy.turns import SOLVED, Speaker, World
from rlcourse.signals import Interrupted, StopRequest
from rlcourse.tasks import Problem, extract_answer


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
    out: str | Path | None = None,
    resume: bool = False,
    names: dict[str, str | None] | None = None,
    world: World | None = None,
) -> Evaluation:
    """Solve every problem once greedily and `samples` times, which may be 0, at `temperature`.

    Every number is a mean over problems, with an interval over problems, because completions of one
    problem are not independent evidence. With `out` everything is kept in that directory (see
    ``directory.py``): killed at any moment and resumed on the same machine, the evaluation gives
    exactly what it would have given.

    Args:
        extract: the task's rule, which reads the final number of a completion.
        format_reward: measure this reward as well, such as `rlcourse.tasks.format_reward`.
        batch: how many completions are sampled at once; half as many once memory runs out.
            What is drawn for a problem is a function of the seed and of its batch, so another
            `batch`, or running out of memory elsewhere, gives other samples: as good, but not the
            same.
        resume: continue the evaluation in `out`.
        names: recorded in `out`, such as {"policy": "tiny", "task": "gsm8k"}.
        world: where the problems answer back; each is then solved in episodes of several turns.

    Raises:
        UserError: there are no problems, one completion does not fit into memory, or
            `out` holds something else, an evaluation with other settings included.
        Interrupted: Ctrl-C or SIGTERM with `out`; the batch is finished and kept.
    """
    if not problems:
        raise UserError("there are no problems to evaluate on")
    if samples < 0 or batch < 1:
        raise UserError(f"samples={samples} must be at least 0 and batch={batch} at least 1")
    asked = Sampling(samples, temperature, top_k, top_p, max_tokens, system, seed)
    judge = Judge(extract, format_reward)
    records = Records()
    if out is not None:
        rules = {name: _name_of(rule) for name, rule in vars(judge).items()}
        settings = {**(names or {}), **asdict(asked), "batch": batch, **rules}
        if world is not None:
            settings |= {"environment": _name_of(world.make), "max_turns": world.max_turns}
        records = EvaluationDirectory(out, settings | fingerprint(policy, problems), resume)

    def work(start: int, stop: int, at_once: int):
        return solve(policy, problems[start:stop], start, at_once, asked, judge, world)

    done = len(records.transcripts)
    batches = in_batches(work, len(problems), max(1, samples), records.at_once or batch, done)
    shown = bar(
        total=len(problems), initial=done, desc="evaluate", leave=False, disable=not progress
    )
    try:
        _keep(batches, records, len(problems), shown)
        evaluation = Evaluation.of(records.transcripts, temperature, records.seconds)
        records.finish(evaluation, policy.device)
    finally:
        records.close()
    return evaluation


def _keep(batches, records: Records, total: int, shown: tqdm) -> None:
    """Keep each batch as it is finished, and stop between two batches on request."""
    # Without a directory there is nothing to save: Ctrl-C then acts immediately, as usual.
    listening = StopRequest() if records.lasting else nullcontext()
    tokens = Tokens(shown, "evaluate")
    with shown, listening as stop, telling(tokens):
        started = time.perf_counter()
        for solved, at_once in batches:
            records.append(solved, at_once, time.perf_counter() - started)
            started = time.perf_counter()
            shown.update(len(solved))
            tokens.begin()
            done = len(records.transcripts)
            if stop and done < total:
                raise Interrupted(
                    f"the evaluation was stopped by {stop.received} after {done} of {total} "
                    f"problems; everything is in {records.kept_in}: run the same command with "
                    "--resume to continue",
                    received=stop.received,
                )


def _name_of(rule: Callable | None) -> str | None:
    return None if rule is None else getattr(rule, "__name__", type(rule).__name__)


def greedy_accuracy(
    policy,
    problems: Sequence[Problem],
    max_tokens: int,
    extract,
    system=None,
    batch: int = 512,
    world: World | None = None,
) -> float:
    """Share of the problems that the policy solves greedily; quick, for curves."""

    def count_right(start: int, stop: int, at_once: int) -> int:
        some = problems[start:stop]
        if world is not None:
            speaker = Speaker(policy, max_tokens, temperature=0.0, system=system)
            return int((world.play(speaker, some, 1)[1] >= SOLVED).sum())
        prompts = [policy.format_prompt(p.question, system=system) for p in some]
        texts = policy.decode(policy.sample(prompts, max_tokens=max_tokens, temperature=0.0))
        return sum(is_right(extract(t), p) for t, p in zip(texts, some, strict=True))

    counts = in_batches(count_right, len(problems), samples=1, at_once=batch)
    return sum(right for right, _ in counts) / len(problems)


def transcripts_table(*evaluated, problems=None, count: int = 6, names=None) -> TranscriptsTable:
    """Completions of the same problems, one column for each evaluation (or policy) given.

    ``transcripts_table(run.before, run.after)``, or with a policy,
    ``transcripts_table(policy, problems=task.evaluation)``. Problems
    whose outcome changed come first.
    """
    evaluations = [
        e if isinstance(e, Evaluation) else evaluate_policy(e, problems[:count]) for e in evaluated
    ]
    if names is None:
        names = {1: ["completion"], 2: ["before", "after"]}.get(
            len(evaluations), [f"policy {i + 1}" for i in range(len(evaluations))]
        )
    columns = {name: e.transcripts for name, e in zip(names, evaluations, strict=True)}
    return side_by_side(columns, evaluations[0].samples, count)
