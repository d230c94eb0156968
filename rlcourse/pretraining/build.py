"""Building a model: random weights, ``sft`` on the documents, and what that has come to.

The directory holds ``build.json`` (what was asked for), ``start/`` (tokenizer and random weights),
``training/`` (the run that trained them, which `rlcourse report` also reads), ``policy/`` (the
model, as ``policy=`` and ``--policy`` take it), ``evaluations/``, ``grpo.yaml`` (a recipe that goes
on from the model) and at last ``result.json``, whose presence says: finished.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from statistics import fmean, median

import torch
import yaml

from rlcourse.algorithms import sft_loss
from rlcourse.errors import UserError
from rlcourse.evaluation import evaluate_policy
from rlcourse.files import TEMPORARY, in_use, write_errors_explained, write_json, write_text
from rlcourse.machine import hardware, versions
from rlcourse.policy import Policy
from rlcourse.policy.loading import choose_device
from rlcourse.pretraining.documents import Documents, Stories
from rlcourse.pretraining.model import random_policy
from rlcourse.pretraining.sizes import (
    TOKENS_PER_WEIGHT,
    Size,
    recipe_of,
    size_named,
)
from rlcourse.signals import continued_by
from rlcourse.tasks import Problem, Task, gsm8k, stories, word_problems
from rlcourse.training import Recipe, load_recipe, train
from rlcourse.training.networks.optimizer import autocast, computes_bfloat16

SAMPLE = 2000  # documents from which the tokenizer is made, and a document's mean length known
TRIAL = 6  # steps that are timed, of which the first warms up
OWN = ("algorithm", "policy", "task", "data", "steps", "seed", "shuffle", "warm_start")


@dataclass(frozen=True)
class Asked:
    """What decides a build; it is recorded, and a resumed build must be asked for the same."""

    size: str = "small"
    data: str | None = None  # GSM8K's directory; None: the hub's
    minutes: float | None = None
    tokens: int | None = None  # to be read; None, without `minutes`: 20 for each weight
    seed: int = 0
    settings: tuple[str, ...] = ()  # KEY=VALUE of the recipe


@dataclass(frozen=True)
class Built:
    """What came out: ``result.json``."""

    directory: Path
    facts: dict

    def summary(self) -> str:
        """A few lines: size, work, losses and accuracies with 95 % intervals."""
        f = self.facts
        lines = [
            f"{f['size']} · {f['weights']:,} weights · {f['steps']:,} steps · "
            f"{f['tokens']:,} tokens of solutions · {f['seconds']:.0f} s on "
            f"{f['hardware']['device']}"
        ]
        for name, found in f["tasks"].items():
            greedy, sampled = (
                "{value:.3f} [{low:.3f}, {high:.3f}]".format(**found[key])
                for key in ("accuracy", "sampled_accuracy")
            )
            lines.append(
                f"  {name:13} loss {found['loss']:.3f} nats a token · greedy {greedy} · "
                f"sampled {sampled} · {found['problems']} held-out problems"
            )
        lines.append(f"  policy: {self.directory / 'policy'}")
        lines.append(f"  next: rlcourse train {self.directory / 'grpo.yaml'} --out runs/NAME")
        return "\n".join(lines)


def build(
    out: str | Path,
    asked: Asked,
    settings: dict | None = None,
    *,
    resume: bool = False,
    progress: bool = True,
    eval_problems: int = 200,
) -> Built:
    """Build a model in `out`, or continue a build.

    `settings` are the values of ``asked.settings``, fields of the training recipe.

    Raises:
        UserError: no data, a directory that holds something else or a build with other settings,
            or a full disk.
        Interrupted: Ctrl-C or SIGTERM; the step is finished and a checkpoint written.
    """
    size = size_named(asked.size)
    for key in OWN:
        if key in (settings or {}):
            raise UserError(f"{key} is set by the build itself: remove {key}=")
    out = Path(out).expanduser()
    require_place(out, asked, resume)
    if (out / "result.json").exists():
        return Built(out, json.loads((out / "result.json").read_text("utf-8")))
    data = gsm8k.load(asked.data) if asked.data or size.reads == "gsm8k" else None
    with write_errors_explained(out):
        out.mkdir(parents=True, exist_ok=True)
    with in_use(out):
        if not (out / "build.json").exists():
            begin(out, asked, size, data, settings or {})
        recipe = load_recipe(out / "recipe.yaml")
        task = reading(size, data, recipe)
        again = f"everything is in {out}: run the same command with --resume to continue"
        with continued_by("the build", again):
            run = train(recipe, out / "training", task=task, resume=resume, progress=progress)
            assert run.policy is not None, "imitation trains a policy"
            found = {
                name: measured(run.policy, name, problems, out, recipe, progress)
                for name, problems in held_out(size, data, eval_problems, asked.seed).items()
            }
        run.policy.save(out / "policy")
        write_text(out / "grpo.yaml", grpo_recipe(out, asked, size))
        weights = sum(p.numel() for p in run.policy.parameters())
        facts = {
            "size": asked.size,
            "weights": weights,
            "steps": recipe.steps,
            "tokens": run.tokens,
            "seconds": run.seconds,
            "tasks": found,
            "versions": versions(),
            "hardware": hardware(run.policy.device),
        }
        write_json(out / "result.json", facts)
    return Built(out, facts)


def require_place(out: Path, asked: Asked, resume: bool) -> None:
    """Raise UserError if `out` cannot be used for this build; nothing in it is changed."""
    if not out.exists():
        return
    if (out / "build.json").exists():
        if not resume:
            state = "finished" if (out / "result.json").exists() else "started"
            raise UserError(
                f"{out} already holds a {state} build: add --resume to continue it, or choose "
                "another directory"
            )
        earlier = json.loads((out / "build.json").read_text("utf-8"))
        for key, now in asdict(asked).items():
            now = list(now) if isinstance(now, tuple) else now
            if earlier[key] != now:
                raise UserError(
                    f"{out} was started with {key}={earlier[key]}, not {now}: resume it with the "
                    "same options, or choose another directory"
                )
        return
    own = ("start", "recipe.yaml")  # of a build that was killed before it had begun
    others = [] if not out.is_dir() else [path.name for path in out.iterdir()]
    others = [name for name in others if name not in own and not name.startswith(TEMPORARY)]
    if not out.is_dir() or others:
        what = "another model" if "config.json" in others else "other files"
        raise UserError(f"{out} holds {what}: choose another directory")


def begin(out: Path, asked: Asked, size: Size, data: Task | None, settings: dict) -> None:
    """Tokenizer, random weights and the recipe, with its number of steps; last ``build.json``."""
    read = documents(size, data, SAMPLE, asked.seed)
    known = [*data.train, *read] if data and size.reads == "gsm8k" else read
    policy = random_policy(size, texts_of(known), asked.seed)
    policy.save(out / "start")
    device = choose_device(settings.get("device"))
    dtype = "bfloat16" if computes_bfloat16(device) else "float32"
    values = {"dtype": dtype, "seed": asked.seed} | settings
    start = str((out / "start").absolute())
    if asked.minutes is None:
        tokens = asked.tokens or TOKENS_PER_WEIGHT * sum(p.numel() for p in policy.parameters())
        steps = ceil(tokens / (size.rows * mean_length(policy, read)))
    else:
        trial = recipe_of(size, start, TRIAL, values)
        timed = train(trial, task=reading(size, data, trial), progress=False)
        seconds = median(metrics["seconds"] for metrics in timed.metrics[1:])
        steps = max(1, int(60 * asked.minutes / seconds))
    write_text(out / "recipe.yaml", recipe_of(size, start, steps, values).to_yaml())
    write_json(out / "build.json", asdict(asked))


def documents(size: Size, data: Task | None, n: int, seed: int) -> Sequence[Problem]:
    """The first `n` documents that a model of this size reads."""
    if size.reads == "stories":
        return Stories(n, seed)
    assert data is not None, "GSM8K was loaded"
    return Documents(data.train, n, seed)


def reading(size: Size, data: Task | None, recipe: Recipe) -> Task:
    """All documents of a recipe as the task that it imitates."""
    read = documents(size, data, recipe.steps * recipe.prompts_per_step, recipe.seed)
    return Task("stories" if size.reads == "stories" else "gsm8k and word_problems", read, [])


def held_out(size: Size, data: Task | None, n: int, seed: int) -> dict[str, Sequence[Problem]]:
    """The problems that the model is measured on, at most `n` of each task."""
    found: dict[str, Sequence[Problem]] = {}
    if data is not None:
        found["gsm8k"] = data.evaluation[:n]
    generated = stories if size.reads == "stories" else word_problems
    found[generated.__name__.rpartition(".")[2]] = generated.problems(n, seed, split="evaluation")
    return found


def texts_of(problems: Iterable[Problem]) -> Iterable[str]:
    """Questions and solutions, from which the tokenizer is made."""
    for problem in problems:
        yield f"Question: {problem.question}\nAnswer:"
        yield problem.answer


def mean_length(policy: Policy, problems: Sequence[Problem]) -> float:
    """Tokens of a document, its end included."""
    texts = ["".join(pair) for pair in zip(*[iter(texts_of(problems))] * 2, strict=True)]
    return 1 + fmean(len(ids) for ids in policy.tokenizer(texts)["input_ids"])


@torch.no_grad()
def held_out_loss(policy: Policy, problems: Sequence[Problem], rows: int) -> float:
    """Mean nats per token of the problems' own solutions."""
    total = count = 0.0
    for start in range(0, len(problems), rows):
        some = problems[start : start + rows]
        prompts = [policy.format_prompt(p.question) for p in some]
        batch = policy.demonstrations(prompts, [p.answer for p in some])
        n = int(batch.mask.sum())
        total += n * sft_loss(policy.logprobs(batch), batch.mask).item()
        count += n
    return total / count


def measured(
    policy: Policy, name: str, problems: Sequence[Problem], out: Path, recipe: Recipe, progress
) -> dict:
    """Loss and accuracies on held-out problems of a task."""
    place = out / "evaluations" / name
    place.parent.mkdir(exist_ok=True)
    with autocast(policy.device, recipe.dtype):
        loss = held_out_loss(policy, problems, recipe.micro_batch or len(problems))
        evaluation = evaluate_policy(
            policy,
            problems,
            max_tokens=recipe.max_tokens,
            seed=recipe.seed,
            progress=progress,
            out=place,
            resume=True,
        )
    kept = {"accuracy": evaluation.accuracy, "sampled_accuracy": evaluation.sampled_accuracy}
    kept[f"pass@{max(evaluation.pass_at)}"] = evaluation.pass_at[max(evaluation.pass_at)]
    intervals = {key: asdict(interval) for key, interval in kept.items()}
    return {"loss": loss, "problems": len(problems), **intervals}


def grpo_recipe(out: Path, asked: Asked, size: Size) -> str:
    """A recipe that continues from the model with rewards alone."""
    tells = size.reads == "stories"
    values = {
        "algorithm": "grpo",
        "policy": str((out / "policy").absolute()),
        "task": "stories" if tells else "gsm8k",
        "data": None if tells or not asked.data else str(Path(asked.data).expanduser().absolute()),
        "steps": 100,
        "prompts_per_step": 16,
        "group_size": 8,
        "max_tokens": size.longest,
        "lr": 2e-4 if tells else 1e-4,
        "micro_batch": 32,
    }
    head = "# GRPO from a model that `rlcourse build-model` made. Its settings were not tuned.\n"
    return head + yaml.safe_dump(values, sort_keys=False)
