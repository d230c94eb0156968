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
    prompt: Annotated[int | None, typer.Option(min=1, help="Tokens of a mean prompt.")] = None,
    completion: Annotated[
        int | None,
        typer.Option(min=1, help="Mean length of a completion, in tokens [default: max_tokens]."),
    ] = None,
) -> None:
    """Estimate what a recipe takes: memory, hours, which GPU it fits on. Nothing is loaded."""
    from rlcourse.planning.plan import plan as planned
    from rlcourse.planning.plan import plan_table
    from rlcourse.training import load_recipe, parse_overrides

    chosen = load_recipe(recipe, **parse_overrides(settings or []))
    print(plan_table(planned(chosen, gpu, prompt, completion)))


def gpu_check(
    device: Annotated[str | None, typer.Option(help="Such as cuda:1 [default: the best].")] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="Small shapes, to try the command.")] = False,
) -> None:
    """Check a GPU with the course: parity with the CPU, tokens/s, seconds, memory."""
    from rlcourse.planning.gpu_check import Check
    from rlcourse.policy.loading import choose_device

    check = Check(choose_device(device), tiny)
    if check.device.type == "cpu" and not tiny:
        raise UserError("there is no GPU to check: add --tiny to try the command on the CPU")
    if not check.run():
        raise UserError(f"not everything works on {check.device}: the lines with FAILED say what")
