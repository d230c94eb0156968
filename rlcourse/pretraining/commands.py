"""``rlcourse build-model``."""

from pathlib import Path
from typing import Annotated

import typer


def build_model(
    out: Annotated[
        Path, typer.Argument(help="Directory of the build; the model will be in its policy/.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Settings of its training recipe, such as lr=1e-3."
        ),
    ] = None,
    size: Annotated[
        str, typer.Option(help="smallest, stories (1 million weights), small (5) or medium (28).")
    ] = "small",
    data: Annotated[
        str | None,
        typer.Option(help="Directory with GSM8K's files [default: the hub's; none for stories]."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.01, help="Train for about this long; a short trial says how many steps."
        ),
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens to read [default: 20 for each weight].")
    ] = None,
    problems: Annotated[int, typer.Option(min=1, help="Held-out problems of each task.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The only source of randomness.")] = 0,
    resume: Annotated[bool, typer.Option(help="Continue the build in OUT.")] = False,
) -> None:
    """Train a small model from random weights on GSM8K's training solutions and generated problems.

    The size `stories` reads generated problems alone, and needs no data.
    `rlcourse train` and `rlcourse evaluate` take it as their policy: see course/gsm8k.md.
    """
    from rlcourse.errors import UserError
    from rlcourse.pretraining.build import Asked, build
    from rlcourse.training import parse_overrides

    if minutes is not None and tokens is not None:
        raise UserError("--minutes and --tokens both say how long to train: choose one")
    asked = Asked(size, data, minutes, tokens, seed, tuple(settings or ()))
    values = parse_overrides(settings or [])
    built = build(out, asked, values, resume=resume, eval_problems=problems)
    print(built.summary())
