"""``rlcourse plan`` and ``gpu-check``."""

from typing import Annotated

import typer

from rlcourse.errors import UserError
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
    """Estimate a recipe's memory and hours, and on which GPUs it fits; no weights are loaded."""
    from rlcourse.planning import plan as planning
    from rlcourse.policy.loading import question_as_read
    from rlcourse.training import load_recipe, parse_overrides

    chosen = load_recipe(recipe, **parse_overrides(settings or []))
    print(planning.plan_table(planning.plan(chosen, gpu, completion)))
    print(question_as_read(chosen.policy, chosen.system, chosen.template))


def gpu_check(
    device: Annotated[str | None, typer.Option(help="Such as cuda:1 [default: the best].")] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="Small sizes, to try the command.")] = False,
) -> None:
    """Time GRPO steps on a GPU, beside the plan's memory for them."""
    from rlcourse.planning.gpu_check import check
    from rlcourse.policy.loading import choose_device

    chosen = choose_device(device)
    if chosen.type == "cpu" and not tiny:
        raise UserError("there is no GPU to check: add --tiny to try the command on the CPU")
    check(chosen, tiny)
