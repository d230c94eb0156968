"""``rlcourse check``, ``prove`` and ``build``."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError
from rlcourse.installed import needing


class TooFewPoints(UserError):
    """A notebook was checked, and has fewer points than were asked for."""

    exit_code = 3  # 1: it could not be checked


def check(
    notebook: Annotated[Path, typer.Argument(help="The notebook to check.")],
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    fail_under: Annotated[
        float | None,
        typer.Option(
            min=0, max=100, metavar="PERCENT", help="Exit with 3 if fewer of the points are earned."
        ),
    ] = None,
) -> None:
    """Run a notebook's checks; print a table and the score."""
    from rlcourse.authoring.runner import check_notebook

    report = check_notebook(notebook, progress=not as_json)
    print(json.dumps(report.as_json(), indent=2) if as_json else report)
    if fail_under is not None and report.percent < fail_under:
        raise TooFewPoints(
            f"{report.points:g} of {report.possible:g} points are {report.percent:.1f} %, and "
            f"--fail-under asks for {fail_under:g} %"
        )


def prove(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[EXERCISE]...", help="By default all.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Drawings of the cases.")] = 5,
    mutants: Annotated[
        int | None,
        typer.Option(min=1, help="Check this many random changes of the right answers instead."),
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(min=1, help="Check this many ways to make two or three mistakes at once."),
    ] = None,
) -> None:
    """Prove the checks: every right answer passes, every known mistake is named as itself.

    It also says what is missing in an exercise's files, and which notebooks must be built again.
    """
    from rlcourse import exercises
    from rlcourse.checks.proving import proof, trying
    from rlcourse.courses import current
    from rlcourse.courses.demands import lacking

    chosen = [exercises.get(name) for name in names] if names else exercises.all(contests=True)
    compared = [exercise for exercise in chosen if not exercise.contest]
    holds = True
    if mutants:
        holds = trying.report(compared, trying.mutants, mutants, range(seeds))
    if pairs:
        holds = trying.report(compared, trying.several, pairs, range(seeds)) and holds
    if not (mutants or pairs):
        holds = proof.report(chosen, range(seeds), partial(lacking, current(), seeds=range(seeds)))
        with needing("grade", "comparing notebooks with their lessons"):
            from rlcourse.authoring.builder import build

            for lesson in sorted({exercise.lesson for exercise in chosen}):
                try:
                    build([lesson], check=True, progress=False)
                except UserError as error:
                    print(error)
                    holds = False
    raise typer.Exit(0 if holds else 1)


def build(
    lessons: Annotated[list[str] | None, typer.Argument(help="Lessons [default: all].")] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Run the solutions, too.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether anything is stale.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite answers that somebody wrote in notebooks/.")
    ] = False,
) -> None:
    """Build notebooks/ and solutions/ from course/lessons/ and the library."""
    with needing("grade", "building lessons"):
        from rlcourse.authoring.builder import build

        for built in build(lessons or None, execute=execute, check=check, force=force):
            print(built)
