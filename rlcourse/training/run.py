"""One training run from start to report, and the directory that holds it.

``recipe.yaml``, ``metrics.jsonl``, ``evaluation_before.json`` and ``evaluation_after.json``,
``checkpoints/``, ``tensorboard/``, ``warm_start/`` (a run of its own), ``pairs.jsonl`` where pairs
were sampled, and at the end ``policy/`` or ``reward_model/`` (Hugging Face format),
``report.html`` and ``result.json``, whose presence says: finished. A run that
samples also keeps ``groups.jsonl``, see ``measuring/keeping.py``.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm.std import tqdm

from rlcourse import bars
from rlcourse.errors import UserError
from rlcourse.files import in_use, write_errors_explained, write_json, write_text
from rlcourse.machine import is_out_of_memory, unusable_gpu
from rlcourse.policy.loading import is_small
from rlcourse.policy.lora import add_adapters, continue_adapter, has_adapters, merge_adapters
from rlcourse.policy.other_files import base_of, is_adapter
from rlcourse.policy.sampler import telling
from rlcourse.reports import render_report
from rlcourse.seeds import derived_seed
from rlcourse.signals import Interrupted, StopRequest
from rlcourse.tasks.problem import Task
from rlcourse.tasks.rewards import EXTRACTORS
from rlcourse.training.data.scoring import require_playable
from rlcourse.training.faults.switched_on import with_settings
from rlcourse.training.learners import learner_for
from rlcourse.training.measuring.alarms import Alarms
from rlcourse.training.measuring.evaluating import evaluation_of, held_out_metrics
from rlcourse.training.measuring.metrics import MetricsWriter, nothing_to_learn_from, tracker_named
from rlcourse.training.networks.gradient_checkpointing import enable_gradient_checkpointing
from rlcourse.training.networks.optimizer import (
    NonFinite,
    require_extras,
)
from rlcourse.training.online.distilling import require_same_words
from rlcourse.training.recipes.recipe import load_recipe, teacher_recipe, warm_start_of
from rlcourse.training.recipes.settings import Recipe
from rlcourse.training.runs.checkpoint import Checkpoints, checkpoints, load_checkpoint
from rlcourse.training.runs.outcome import Run, load_run
from rlcourse.training.runs.run_directory import INNER, begin, next_run_directory, open_directory

PASSED_IN = "(passed in)"  # where a recipe would name a model
LARGE = 100_000_000  # weights that nobody trains on a processor without meaning to


def train(
    recipe: Recipe | str,
    out: str | Path | None = None,
    *,
    policy=None,
    task: Task | None = None,
    teacher=None,
    loss: Callable | None = None,
    advantages: Callable | None = None,
    reward: Callable | None = None,
    step: Callable | None = None,
    functions: Iterable[Callable] = (),
    fault: str | None = None,
    resume: bool = False,
    progress: bool = True,
    tracker: str | None = None,
) -> Run:
    """Train a policy by `recipe` and return the run; with `out`, keep everything in that directory.

    Without `out`, a model that is not small is kept all the same, in the next of ``runs/``: its
    hours should not be lost with a notebook's kernel.

    Args:
        policy: the policy to start from, which is left as it is; a copy is trained. By default the
            recipe's, after its warm start.
        task: in place of the recipe's.
        teacher: the policy that a distillation learns from, in place of the recipe's.
        loss, advantages, reward: functions to use in place of the algorithm's own. They are called
            by parameter name (see ``calling.py`` and ``scoring.score``).
        step: a function such as ``reinforce_step`` that makes all updates of a batch itself.
        functions: your functions, which replace those of the same ``__name__`` that the
            algorithm is made of, such as ``[gae, value_loss]`` for ppo.
        fault: train with this mistake of ``faults.FAULTS``, to see what it does (lesson 10).
        resume: continue the run in `out` from its last checkpoint.
        progress: show a progress bar.
        tracker: "trackio" or "wandb", which get every step's metrics as well.

    Raises:
        UserError: anything the user can fix; what was written before stays valid.
        Interrupted: Ctrl-C or SIGTERM; the step is finished and a checkpoint written.
    """
    recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
    recipe = recipe if fault is None else recipe.but(fault=fault)
    if policy is not None:
        recipe = recipe.but(policy=PASSED_IN, warm_start=None)
    if task is not None:
        recipe = recipe.but(task=task.name)
    if teacher is not None:
        if not recipe.method.taught:
            raise UserError(f"{recipe.algorithm} has no teacher: remove teacher=, or use distill")
        recipe = recipe.but(teacher=PASSED_IN)
    method = recipe.method.using(functions, recipe.algorithm)
    if step is not None and (method.compares_pairs or method.critic):
        reason = "learns from pairs" if method.compares_pairs else "also trains a critic"
        raise UserError(f"{recipe.algorithm} {reason}: step= cannot take the place of its update")
    if step is not None and recipe.dtype == "float16":
        raise UserError(
            "step= makes its own updates, which dtype=float16 would have to scale: "
            "set dtype=float32 or dtype=bfloat16"
        )
    require_extras(recipe)
    told = tracker_named(tracker) if tracker else None
    method = replace(
        method, loss=loss or method.loss, advantages=advantages or method.advantages, step=step
    )
    if recipe.fault is not None:
        recipe = with_settings(recipe, method)
    out = Path(out) if out is not None else _place_for(recipe, policy)
    out = open_directory(out, recipe, resume) if out is not None else None
    if out is not None and (out / "result.json").exists():
        return load_run(out, device=recipe.device)
    with in_use(out), StopRequest() as stop, memory_explained(recipe):
        task = task or task_of(recipe)
        require_playable(recipe, method, reward, task)
        if recipe.extract is not None:
            task = replace(task, extract=EXTRACTORS[recipe.extract])
        if policy is None:
            policy = starting_policy(recipe, out, task, resume, progress)
        else:
            policy = policy.clone()
        policy.template = recipe.template or policy.template
        require_gpu(policy, recipe)
        teacher = teacher_of(recipe, out, policy, task, teacher, progress)
        check_prompts_fit(policy, task, recipe)
        policy.static_cache = recipe.static_cache
        policy.eval()  # no dropout: the log-probs sampled with are then those trained with
        if recipe.lora:
            add_adapters(policy, **recipe.lora, seed=derived_seed(recipe.seed, "lora"))
        if recipe.gradient_checkpointing:
            enable_gradient_checkpointing(policy.model)
        if out is not None:
            begin(out, recipe)
            printed = recipe.warm_start or out.name == "teacher"  # by the warm start
            if progress and not (resume or printed or bars.in_notebook()):
                question = task.train[0].question
                prompt = policy.format_prompt(question, system=recipe.system)
                said = "rlcourse: the first question, as the policy reads it:"
                print(f"{said}\n{prompt}", file=sys.stderr)
        return _train(recipe, out, policy, task, method, reward, stop, progress, teacher, told)


def _place_for(recipe: Recipe, policy) -> Path | None:
    """Where a run is kept when nobody said where; None for one that is soon repeated."""
    if recipe.policy == "tiny" if policy is None else is_small(policy):
        return None
    place = next_run_directory(recipe.algorithm)
    print(f"rlcourse: this run is kept in {place}; out= names another directory", file=sys.stderr)
    return place


@contextmanager
def memory_explained(recipe: Recipe) -> Iterator[None]:
    """Raise ``UserError``, which says what to lower, where the memory runs out."""
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(
            f"there is too little memory: lower prompts_per_step (now {recipe.prompts_per_step}), "
            f"group_size ({recipe.group_size}) or max_tokens ({recipe.max_tokens}), or set "
            "gradient_checkpointing=true, optimizer=adamw_8bit, lora.rank=16, static_cache=false "
            "or dtype=bfloat16 (float16 on a T4)"
        ) from None


def _train(recipe, out, policy, task, method, reward, stop, progress, teacher, tracker) -> Run:
    before = evaluation_of(policy, recipe, task, out, "before", progress)
    learner = learner_for(policy, recipe, task, method, reward, out, progress, teacher=teacher)
    saved = checkpoints(out / "checkpoints") if out else []
    states = (learner.module, learner.optimizer, learner.carried)
    done = load_checkpoint(saved[-1], *states) if saved else 0
    if tracker is not None:
        name = out.name if out else recipe.algorithm
        tracker.init(project="rlcourse", name=name, config=recipe.to_dict(), resume="allow")
    writer = MetricsWriter(out, done, tracker)
    trained = policy if learner.reward_model is None else None
    run = Run(recipe, trained, writer.history, before, directory=out)
    run.reward_model = learner.reward_model
    alarms = Alarms(recipe)
    options = {"desc": recipe.algorithm, "unit": "step", "disable": not progress}
    shown = bars.bar(total=recipe.steps, initial=done, **options)
    saving = Checkpoints(out and out / "checkpoints", recipe, *states)
    try:
        tokens = bars.Tokens(shown, recipe.algorithm)
        for metrics in told_of_tokens(learner.steps(done), tokens):
            done = metrics["step"]
            if recipe.eval_every and done % recipe.eval_every == 0:
                metrics |= held_out_metrics(policy, recipe, task, learner.pair_accuracy)
            writer.write(metrics)
            shown.set_postfix(shown_in_bar(metrics), refresh=False)
            shown.update()
            for sentence in alarms.heard(metrics):
                tqdm.write(f"rlcourse: {sentence}", file=sys.stderr)
            stopping = bool(stop) and done < recipe.steps
            if saving.due(done) or (out and stopping):
                writer.sync()
                saving.save(done)
            if stopping:
                raise Interrupted(how_it_stopped(run, stop.received), run, stop.received)
    except NonFinite as error:
        raise NonFinite(f"{error}; {_last_checkpoint(out)}") from None
    finally:
        shown.close()
        writer.close()
    if warning := nothing_to_learn_from(run.metrics):
        print(f"rlcourse: {warning}", file=sys.stderr)
    if has_adapters(policy.model):
        merge_adapters(policy)
    run.after = evaluation_of(policy, recipe, task, out, "after", progress)
    run.pair_accuracy = learner.pair_accuracy and learner.pair_accuracy()
    if out:
        finish(run)
    return run


def told_of_tokens(steps: Iterator[dict], tokens: bars.Tokens) -> Iterator[dict]:
    """The steps, with `tokens` called while each of them samples."""
    while True:
        with telling(tokens):
            metrics = next(steps, None)
        if metrics is None:
            return
        tokens.begin()
        yield metrics


def task_of(recipe: Recipe) -> Task:
    from rlcourse.tasks import load_task

    options = {"seed": recipe.seed, **recipe.task_options}
    return load_task(recipe.task, data=recipe.data, **options)


def require_gpu(policy, recipe: Recipe) -> None:
    """Raise ``UserError`` if a large model is about to train on the CPU beside an idle GPU."""
    if policy.device.type != "cpu" or recipe.device == "cpu":
        return
    weights = sum(p.numel() for p in policy.parameters())
    if weights >= LARGE and (why := unusable_gpu()):
        raise UserError(
            f"{why}; to train {weights / 1e6:,.0f} million weights on the processor all the same, "
            "set device=cpu"
        )


def check_prompts_fit(policy, task: Task, recipe: Recipe) -> None:
    """Raise now what a question of rare length would else raise in the middle of the night."""
    if recipe.method.imitates or not hasattr(policy, "check_context"):
        return
    asked = min(len(task.train), recipe.prompts_per_step * recipe.steps)
    questions = [
        p.question for p in (*task.train[:asked], *task.evaluation[: recipe.eval_problems])
    ]
    longest = sorted(questions, key=len)[-32:]  # in letters; of tokens they have about the most
    prompts = [policy.format_prompt(question, system=recipe.system) for question in longest]
    policy.check_context(prompts, recipe.max_tokens * (recipe.max_turns if task.environment else 1))


def starting_policy(recipe: Recipe, out: Path | None, task: Task, resume: bool, progress: bool):
    """The recipe's policy, trained by its warm start where it names one."""
    from rlcourse.policy import Policy

    first = warm_start_of(recipe)
    if first is None:
        if is_adapter(recipe.policy) and not (recipe.lora or recipe.merge_adapter):
            base = Policy.load(base_of(recipe.policy), recipe.device, recipe.dtype)
            return continue_adapter(base, recipe.policy)
        # Weights that learn stay in float32; those that adapters freeze need not.
        return Policy.load(recipe.policy, recipe.device, recipe.dtype if recipe.lora else None)
    place = out / "warm_start" if out else None
    return train(first, place, task=task, resume=resume, progress=progress).policy


def teacher_of(recipe: Recipe, out: Path | None, policy, task: Task, given: Any, progress: bool):
    """The frozen teacher: the one that is `given`, a model, or what a recipe makes of `policy`.

    A teacher that a recipe makes is a run of its own, in ``teacher/``. Raises ``UserError`` where
    its tokens are others than the policy's.
    """
    from rlcourse.policy import Policy

    if not recipe.method.taught:
        return None
    if given is None and (first := teacher_recipe(recipe)) is not None:
        place = out / "teacher" if out else None
        start = policy if recipe.policy == PASSED_IN else None
        given = train(first, place, policy=start, task=task, resume=True, progress=progress).policy
    elif given is None:
        dtype = recipe.dtype if recipe.dtype != "float32" else None
        given = Policy.load(recipe.teacher, recipe.device, dtype)
    assert given is not None, "recipes that make teachers train policies"
    teacher = given.clone(frozen=True)
    require_same_words(policy, teacher)
    return teacher


def shown_in_bar(metrics: dict) -> dict[str, str]:
    shown = {"reward/mean": "reward", "accuracy": "accuracy", "rewards/accuracies": "pairs right"}
    shown |= {"eval/accuracy": "held-out", "eval/pair_accuracy": "held-out"}
    named = {label: f"{metrics[key]:.2f}" for key, label in shown.items() if key in metrics}
    return named or {"loss": f"{metrics['loss']:.3f}"}


def how_it_stopped(run: Run, signal_name: str) -> str:
    how = "interrupted" if signal_name == "SIGINT" else f"stopped by {signal_name}"
    done = f"{run.recipe.algorithm} {how} after step {len(run.metrics)} of {run.recipe.steps}"
    if run.directory is None:
        again = "run this cell again before any cell that needs its result"
        return f"{done}; nothing was saved, because no directory was given: {again}"
    if bars.in_notebook():
        again = f'call train with the same recipe, out="{run.directory}" and resume=True'
    else:
        inner = run.directory.name in INNER  # the command is the one of the whole run
        out = run.directory.parent if inner else run.directory
        again = f"run the same command with --out {out} --resume"
    return f"{done}; everything is in {run.directory}: {again} to continue"


def _last_checkpoint(out: Path | None) -> str:
    saved = checkpoints(out / "checkpoints") if out else []
    return f"the last checkpoint is {saved[-1]}" if saved else "there is no checkpoint yet"


def finish(run: Run) -> None:
    """Write the policy, the report and, last of all, ``result.json``."""
    place = run.directory
    assert place is not None, "only a run that has a directory is written"
    name = "policy" if run.reward_model is None else "reward_model"
    with write_errors_explained(place / name):
        run.trained.save(place / name)
    record = run.record()
    write_text(place / "report.html", render_report(record))
    write_json(place / "result.json", record.result)
