"""``rlcourse plan`` and ``gpu-check``."""

from textwrap import indent
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
    from rlcourse.planning.plan import plan as planned
    from rlcourse.planning.plan import plan_table
    from rlcourse.policy.loading import tokenizer_of
    from rlcourse.policy.prompts import format_prompt
    from rlcourse.training import load_recipe, parse_overrides

    chosen = load_recipe(recipe, **parse_overrides(settings or []))
    print(plan_table(planned(chosen, gpu, completion)))
    try:
        tokenizer = tokenizer_of(chosen.policy)
    except UserError as error:
        print(f"How a question is put to the policy is not known here. {error}")
        return
    print("A question, as the policy reads it:")
    prompt = format_prompt(tokenizer, "QUESTION", chosen.system, chosen.template)
    print(indent(prompt.rstrip(), "  "))


def gpu_check(
    device: Annotated[str | None, typer.Option(help="Such as cuda:1 [default: the best].")] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="Small sizes, to try the command.")] = False,
) -> None:
    """Check a GPU with the course: parity with the CPU, tokens/s, seconds, memory."""
    from rlcourse.planning.gpu_check import check
    from rlcourse.policy.loading import choose_device

    chosen = choose_device(device)
    if chosen.type == "cpu" and not tiny:
        raise UserError("there is no GPU to check: add --tiny to try the command on the CPU")
    if failed := check(chosen, tiny):
        raise UserError(f"not everything works on {chosen}: {', '.join(failed)} failed")
