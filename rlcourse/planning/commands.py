"""``rlcourse plan``."""

from typing import Annotated

import typer

from rlcourse.training.commands import RECIPE, SETTINGS


def plan(
    recipe: Annotated[str, typer.Argument(help=RECIPE)],
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help=SETTINGS)
    ] = None,
    gpu: Annotated[str | None, typer.Option(help="One GPU, such as L4 [default: all].")] = None,
    completion: Annotated[
        int | None,
        typer.Option(min=1, help="Mean length of a completion, in tokens [default: max_tokens]."),
    ] = None,
) -> None:
    """Estimate a recipe's memory and hours, and on which GPUs it fits; no model is loaded."""
    from rlcourse.planning.plan import plan as planned
    from rlcourse.planning.plan import plan_table
    from rlcourse.training import load_recipe, parse_overrides

    chosen = load_recipe(recipe, **parse_overrides(settings or []))
    print(plan_table(planned(chosen, gpu, completion)))
