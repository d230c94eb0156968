"""``rlcourse compare``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError


def compare(
    a: Annotated[Path, typer.Argument(help="An evaluation's directory, or a training run's.")],
    b: Annotated[
        Path | None, typer.Argument(help="The other [default: the run A before training].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Compare two policies on the same problems: differences with intervals, and a verdict.

    Of a training run the evaluation after training counts; RUN/evaluation_before.json names the
    other one. RUN alone compares the two.
    """
    from rlcourse.evaluation import compare as compared

    if b is None:
        if not (a / "evaluation_before.json").is_file():
            raise UserError(
                f"{a} holds no evaluation before training to compare with: name a run's directory, "
                "or two evaluations"
            )
        a, b = a / "evaluation_before.json", a
    comparison = compared(a, b)
    print(json.dumps(comparison.to_dict(), indent=2) if as_json else comparison)
