"""The command line of the course; ``rlcourse --help`` lists its commands.

Exit codes: 0 done; 1 a failure that is the user's to mend, one sentence on stderr; 2 wrong usage;
130 interrupted, with what was done so far kept (0 where a scheduler's SIGTERM did it). Heavy
modules are imported by the command that needs them.
"""

import json
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.commands import Commands
from rlcourse.doctor import doctor
from rlcourse.errors import UserError, needing
from rlcourse.evaluation.commands import compare
from rlcourse.grading.commands import complete, grade, grades, verify
from rlcourse.lab.commands import lab, lessons
from rlcourse.pretraining.commands import build_model
from rlcourse.training.commands import diagnose

app = typer.Typer(
    cls=Commands,
    help="Reinforcement learning for language models: the functions you write train the model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


RECIPE = "A YAML file, or the name of a shipped recipe: `rlcourse recipes` lists them."
SETTINGS = "Settings to change: `rlcourse recipes RECIPE` lists them."


class Engine(StrEnum):
    """Whose loop trains."""

    local = "local"
    trl = "trl"


def main() -> None:
    """The entry point: a failure the user can mend is one sentence, never a traceback."""
    try:
        app()
    except UserError as error:
        print(f"rlcourse: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("rlcourse: interrupted", file=sys.stderr)
        sys.exit(130)


app.command()(lab)
app.command()(lessons)


@app.command()
def check(notebook: Annotated[Path, typer.Argument(help="The notebook to check.")]) -> None:
    """Run a notebook's checks; print a table and the score."""
    from rlcourse.authoring import check_notebook

    print(check_notebook(notebook))


@app.command()
def progress() -> None:
    """Show what is done, over all lessons."""
    from rlcourse import progress

    print(progress())


@app.command()
def prove(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[EXERCISE]...", help="By default all.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Drawings of the cases.")] = 5,
    mutants: Annotated[
        int | None,
        typer.Option(
            min=1, help="Instead, check so many random changes of the right answers; try 200."
        ),
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs", help="Instead, or after the mutants, make two and three mistakes at once."
        ),
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Of the pairs, so many for each drawing; by default all."),
    ] = None,
    equivalent: Annotated[
        bool, typer.Option("--equivalent", help="List the mutants that no case tells apart, too.")
    ] = False,
) -> None:
    """Prove the checks: every right answer passes, every known mistake is named as itself."""
    from rlcourse import exercises
    from rlcourse.checks import mutation, proof, proof_of_several

    chosen = [exercises.get(name) for name in names] if names else exercises.all()
    holds = True
    if mutants:
        holds = mutation.report(chosen, mutants, equivalent, range(seeds))
    if pairs:
        holds = proof_of_several.report(chosen, range(seeds), sample) and holds
    if not (mutants or pairs):
        holds = proof.report(chosen, range(seeds))
    raise typer.Exit(0 if holds else 1)


@app.command()
def recipes(
    recipe: Annotated[str, typer.Argument(metavar="[RECIPE]", help="One of them, or a file.")] = "",
) -> None:
    """List the recipes; of one recipe, every setting with its value and meaning."""
    from rlcourse.training.listing import list_recipes, list_settings

    print(list_settings(recipe) if recipe else list_recipes())


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help=RECIPE)],
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help=SETTINGS)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory [default: the next in runs/].")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in --out.")] = False,
    engine: Annotated[
        Engine, typer.Option(help="trl: several GPUs or machines, see course/scaling.md.")
    ] = Engine.local,
    trl: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Setting of TRL's, for trl.")
    ] = None,
) -> None:
    """Train a policy by a recipe; any of its settings can be given as KEY=VALUE.

    The run directory gets metrics.jsonl, result.json, report.html, checkpoints/ and policy/.
    """
    from rlcourse import training, trl_engine

    def chosen():
        if resume and out is None:
            raise UserError("--resume needs --out, the directory of the run to go on with")
        return training.load_recipe(recipe, **training.parse_overrides(settings or []))

    place = out or next_run_directory(re.sub(r"\.ya?ml$", "", Path(recipe).name))
    if engine is Engine.trl:
        run = trl_engine.train(chosen, place, settings=trl or [], resume=resume)
    elif trl:
        raise UserError("--trl sets what only TRL has: add --engine trl")
    else:
        trl_engine.require_local(place)
        run = training.train(chosen(), out=place, resume=resume)
    if run is not None:  # rank zero's, where several processes train
        print(run.summary())


def next_run_directory(name: str) -> Path:
    """The first of runs/NAME-001, runs/NAME-002, … that does not exist."""
    return next(p for n in range(1, 1000) if not (p := Path("runs", f"{name}-{n:03}")).exists())


@app.command()
def plan(
    recipe: Annotated[str, typer.Argument(help=RECIPE)],
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help=SETTINGS)
    ] = None,
    gpu: Annotated[str | None, typer.Option(help="One GPU, such as L4 [default: all].")] = None,
    price: Annotated[
        float | None, typer.Option(min=0, help="Dollars an hour that you pay for --gpu.")
    ] = None,
    prompt: Annotated[int | None, typer.Option(min=1, help="Tokens of a mean prompt.")] = None,
    completion: Annotated[
        int | None, typer.Option(min=1, help="Of a mean completion [default: max_tokens].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines: bytes, seconds.")] = False,
) -> None:
    """Estimate what a recipe takes: memory, hours, which GPU it fits on. Nothing is loaded."""
    from rlcourse.planning.plan import plan as planned
    from rlcourse.planning.plan import plan_table
    from rlcourse.training import load_recipe, parse_overrides

    if price is not None and gpu is None:
        raise UserError("--price belongs to one GPU: name it with --gpu")
    chosen = load_recipe(recipe, **parse_overrides(settings or []))
    found = planned(chosen, gpu, prompt, completion)
    print(json.dumps(found.to_dict(price), indent=2) if as_json else plan_table(found, price))


@app.command("gpu-check")
def gpu_check(
    device: Annotated[str | None, typer.Option(help="Such as cuda:1 [default: the best].")] = None,
    minutes: Annotated[float, typer.Option(min=0, help="No part begins after these.")] = 20,
    tiny: Annotated[bool, typer.Option("--tiny", help="Small shapes, to try the command.")] = False,
) -> None:
    """Say what a GPU makes of the course: parity with the CPU, tokens/s, seconds, memory."""
    from rlcourse.planning.gpu_check import Check
    from rlcourse.policy.loading import choose_device

    check = Check(choose_device(device), tiny)
    if check.device.type == "cpu" and not tiny:
        raise UserError("there is no GPU to check: add --tiny to try the command on the CPU")
    if not check.run(minutes):
        raise UserError(f"not everything works on {check.device}: the lines with FAILED say what")


@app.command()
def evaluate(
    policy: Annotated[str, typer.Option(help='"tiny", or a Hugging Face name or path.')] = "tiny",
    task: Annotated[
        str, typer.Option(help='"word_problems", "gsm8k" or a JSONL file.')
    ] = "word_problems",
    data: Annotated[str | None, typer.Option(help="Directory with the task's files.")] = None,
    problems: Annotated[int, typer.Option(min=1, help="How many evaluation problems.")] = 256,
    samples: Annotated[int, typer.Option(min=1, help="Completions per problem.")] = 8,
    temperature: Annotated[float, typer.Option(min=0.01, help="Of the samples.")] = 1.0,
    top_p: Annotated[
        float | None, typer.Option(min=0.01, max=1, help="Sample from this share only.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(min=1, help="Sample from so many tokens.")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest completion.")] = 64,
    system: Annotated[str | None, typer.Option(help="System message, before the question.")] = None,
    extract: Annotated[
        str | None, typer.Option(help="marked (####), tagged or lenient [default: the task's].")
    ] = None,
    form: Annotated[
        bool, typer.Option("--format-reward", help="Measure it, too; tagged answers always do.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the samples and of generated problems.")] = 0,
    batch: Annotated[int, typer.Option(min=1, help="Completions sampled at once.")] = 512,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda or mps [default: the best].")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Of the weights, such as bfloat16 [default: float32].")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory that keeps everything.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the evaluation in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Measure a policy on a task: accuracy, pass@k, majority vote, format, with 95 % intervals.

    The directory --out gets settings.json, completions.jsonl, table.txt and result.json.
    """
    from rlcourse.evaluation import evaluate_policy, evaluation_table
    from rlcourse.policy import Policy
    from rlcourse.tasks import EXTRACTORS, format_reward, load_task, strict_format_reward

    if resume and out is None:
        raise UserError("--resume needs --out, the directory of the evaluation to go on with")
    if extract is not None and extract not in EXTRACTORS:
        raise UserError(f"--extract {extract} is unknown: choose one of {', '.join(EXTRACTORS)}")
    drawn = {"evaluation_size": problems} if task == "word_problems" else {}
    chosen = load_task(task, data=data, seed=seed, **drawn)
    judge = strict_format_reward if extract == "strict_tagged" else format_reward
    evaluation = evaluate_policy(
        Policy.load(policy, device=device, dtype=dtype),
        chosen.evaluation[:problems],
        samples,
        temperature,
        max_tokens,
        extract=EXTRACTORS[extract] if extract else chosen.extract,
        format_reward=judge if form or extract in ("tagged", "strict_tagged") else None,
        system=system,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        batch=batch,
        progress=True,
        out=out,
        resume=resume,
        names={"policy": policy, "task": task, "data": data, "dtype": dtype},
    )
    if as_json:
        print(json.dumps(evaluation.to_dict(transcripts=False), indent=2))
    else:
        print(evaluation_table(evaluation))


app.command("build-model")(build_model)
app.command()(compare)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page [default: RUN/report.html; of several comparison.html]."),
    ] = None,
) -> None:
    """Make a run's page, finished or not; of several runs one page that compares them."""
    from rlcourse.reports import write_report
    from rlcourse.training import Recipe

    print(write_report(runs, out, Recipe().to_dict()))


app.command()(diagnose)


@app.command()
def build(
    lessons: Annotated[list[str] | None, typer.Argument(help="Lessons [default: all].")] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Run the solutions, too.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether anything is stale.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write over answers in notebooks/.")
    ] = False,
) -> None:
    """Build notebooks/ and solutions/ from course/lessons/ and the library."""
    with needing("grade", "building lessons"):
        from rlcourse.authoring import build

        for built in build(lessons or None, execute=execute, check=check, force=force):
            print(built)


app.command()(grade)
app.command()(grades)
app.command()(complete)
app.command()(verify)


@app.command()
def demo() -> None:
    """The main job without a browser: train the embedded model, then check a sample submission."""
    from rlcourse import training
    from rlcourse.authoring import check_notebook, write_sample_submission

    run = training.train("grpo", out=next_run_directory("demo"))
    print(run.summary())
    sample = write_sample_submission(run.directory / "sample_submission.ipynb")
    print(f"\nA submission of lesson 02 with a bug in it, {sample}:\n")
    print(check_notebook(sample))


app.command()(doctor)


if __name__ == "__main__":
    main()
