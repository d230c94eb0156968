"""A run of TRL's from start to report, in the same directory as a run of the local engine.

The starting weights are the local engine's: rank zero runs the recipe's warm start and evaluates,
all processes then load the same files. TRL trains; rank zero evaluates what it wrote. Checkpoints
are TRL's own, in ``checkpoints/checkpoint-N`` after N optimizer steps; ``engine.json`` says that
they are, by how many processes and with which settings they were made.
"""

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from rlcourse.errors import UserError
from rlcourse.evaluation import Evaluation
from rlcourse.files import TEMPORARY, in_use, write_errors_explained
from rlcourse.installed import install_command, needing
from rlcourse.machine import is_out_of_memory
from rlcourse.signals import Interrupted, StopRequest
from rlcourse.tasks import Task
from rlcourse.tasks.rewards import EXTRACTORS
from rlcourse.training import run as local
from rlcourse.training.networks.optimizer import NonFinite, require_extras
from rlcourse.training.recipes.settings import Recipe
from rlcourse.training.runs.outcome import Run, load_run
from rlcourse.training.runs.run_directory import open_directory
from rlcourse.trl_engine.directory import ENGINE_FILE
from rlcourse.trl_engine.job import Job
from rlcourse.trl_engine.processes import Processes, weights_are_shared_out
from rlcourse.trl_engine.rank_zero import after_training, before_training
from rlcourse.trl_engine.settings import (
    config_class,
    parse_settings,
    require_free,
    require_possible,
    trl_arguments,
)


def train(
    recipe: Recipe | Callable[[], Recipe],
    out: str | Path,
    *,
    settings: Iterable[str] = (),
    resume: bool = False,
    progress: bool = True,
) -> Run | None:
    """Train by `recipe` with TRL, in this process and the others of an ``accelerate launch``.

    `recipe` may be a function that loads it: rank zero then refuses a wrong one for all.
    `settings` are further arguments of TRL's trainer, ``KEY=VALUE``, such as ``use_vllm=true``.
    The run is returned in rank zero, None in the others. Everything in `out` is as
    ``rlcourse.training.train`` leaves it.

    Raises:
        UserError: anything the user can fix, in rank zero; the other processes end quietly.
        Interrupted: Ctrl-C or SIGTERM; the step is finished and a checkpoint written.
    """
    _require_trl()
    processes = Processes()
    try:
        recipe = recipe if isinstance(recipe, Recipe) else processes.each(recipe)
        out = Path(processes.from_first(out)).expanduser()
        values = processes.each(lambda: _checked(recipe, settings, processes))
        task = processes.each(lambda: _task(recipe))
        processes.on_main(lambda: _open_directory(out, recipe, values, resume))
        if processes.from_first((out / "result.json").exists()):
            return load_run(out, device=recipe.device) if processes.first else None
        with in_use(out if processes.first else None), StopRequest() as stop:
            job = Job(recipe, values, out, task, processes, progress)
            before = processes.on_main(lambda: before_training(job, resume))
            return _train(job, before, stop)
    finally:
        processes.close()


def _require_trl() -> None:
    with needing("trl", "--engine trl"):
        import accelerate  # noqa: F401
        import trl
    if not trl.__version__.startswith("1.16."):
        raise UserError(
            f"--engine trl is written for TRL 1.16, and this is {trl.__version__}: "
            f"{install_command('trl')}"
        )


def _checked(recipe: Recipe, settings: Iterable[str], processes: Processes) -> dict:
    """The ``--trl`` settings, after everything that can be refused early has been checked."""
    require_possible(recipe)
    require_extras(recipe)
    n = torch.cuda.device_count()
    if not processes.use_cpu and recipe.device != "cpu" and processes.count == 1 and n > 1:
        raise UserError(
            f"one process would use one of {n} GPUs: start it with accelerate launch "
            f"--num_processes {n} -m rlcourse train …, or set CUDA_VISIBLE_DEVICES=0"
        )
    if recipe.eval_every and weights_are_shared_out():
        raise UserError(
            "no process holds all weights during training, so none can evaluate along the way: "
            "set eval_every=0"
        )
    values = parse_settings(settings)
    require_free(values, trl_arguments(recipe, processes.count), config_class(recipe))
    return values


def _task(recipe: Recipe) -> Task:
    task = local.task_of(recipe)
    if task.environment is not None:
        raise UserError("TRL plays no episodes of several turns here: leave out --engine trl")
    return replace(task, extract=EXTRACTORS[recipe.extract]) if recipe.extract else task


def _open_directory(out: Path, recipe: Recipe, settings: dict, resume: bool) -> None:
    """The run directory, new or to be resumed; only what this engine started is resumed by it."""
    engine = out / ENGINE_FILE
    if resume and (out / "recipe.yaml").exists():
        if not engine.exists():
            raise UserError(
                f"{out} was started by the local engine: leave out --engine trl to continue it"
            )
        earlier = json.loads(engine.read_text(encoding="utf-8"))["settings"]
        if earlier != settings:
            shown = " ".join(f"--trl {key}={value}" for key, value in earlier.items()) or "no --trl"
            raise UserError(f"{out} was started with {shown}: resume it with the same settings")
    open_directory(out, recipe, resume)


def _train(job: Job, before: Evaluation | None, stop: StopRequest) -> Run | None:
    from rlcourse.trl_engine.trainers import quiet

    processes = job.processes
    with quiet():
        trainer, progress = processes.each(lambda: _ready(job, stop))
        run = _run_steps(job, trainer, progress, before)
        if progress.stopped:
            said = local.how_it_stopped(run, progress.stopped) if run else ""
            processes.fail(Interrupted(said, run, progress.stopped), known=True)
        trained = job.out / f"{TEMPORARY}trained"
        processes.each(partial(_save, trainer, trained))
        processes.gathered(None)
        del trainer, progress  # and with them the optimizer's memory
        torch.cuda.empty_cache()
        return processes.on_main(lambda: run and after_training(job, run, trained))


def _ready(job: Job, stop: StopRequest):
    """TRL's trainer, and our callback in it."""
    from rlcourse.trl_engine.progress import Progress
    from rlcourse.trl_engine.trainers import make_trainer

    trainer = make_trainer(job)
    progress = Progress(job, stop, trainer.accelerator.unwrap_model)
    trainer.add_callback(progress)
    return trainer, progress


def _run_steps(job: Job, trainer, progress, before: Evaluation | None) -> Run | None:
    """All steps that are still to do; what this process alone meets, it says itself."""
    processes = job.processes
    saved = processes.from_first(job.last_checkpoint())
    try:
        with write_errors_explained(job.out / "checkpoints"):
            trainer.train(resume_from_checkpoint=str(saved) if saved else None)
    except NonFinite as error:  # met by all processes at once: the gradient is their sum
        last = job.last_checkpoint()
        said = f"the last checkpoint is {last}" if last else "there is no checkpoint yet"
        processes.fail(NonFinite(f"{error}; {said}"), known=True)
    except UserError as error:
        processes.fail(error)
    except RuntimeError as error:
        if is_out_of_memory(error):
            rows = job.batches.per_device
            processes.fail(UserError(f"out of memory: set micro_batch below {rows}"))
        raise
    finally:
        progress.close()
    if not processes.first:
        return None
    return Run(job.recipe, None, progress.history, before, directory=job.out)


def _save(trainer, place: Path) -> None:
    """The trained weights as files, collected from wherever they are."""
    if trainer.args.should_save:
        shutil.rmtree(place, ignore_errors=True)
    with write_errors_explained(place):
        trainer.save_model(str(place))
