"""``rlcourse evaluate`` and ``compare``."""

from pathlib import Path
from typing import Annotated

import typer

from rlcourse.errors import UserError


def evaluate(
    policy: Annotated[str, typer.Option(help='"tiny", or a Hugging Face name or path.')] = "tiny",
    task: Annotated[
        str, typer.Option(help='"word_problems", "calculator", "stories", "gsm8k" or a JSONL file.')
    ] = "word_problems",
    data: Annotated[str | None, typer.Option(help="Directory with the task's files.")] = None,
    problems: Annotated[int, typer.Option(min=1, help="How many evaluation problems.")] = 256,
    samples: Annotated[
        int, typer.Option(min=0, help="Completions per problem; 0: only the greedy one.")
    ] = 8,
    temperature: Annotated[float, typer.Option(min=0.01, help="Of the samples.")] = 1.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest completion.")] = 64,
    system: Annotated[str | None, typer.Option(help="System message, before the question.")] = None,
    template: Annotated[
        str | None,
        typer.Option(help="Arguments of its chat template, such as '{enable_thinking: false}'."),
    ] = None,
    extract: Annotated[
        str | None,
        typer.Option(help="marked, tagged, boxed or lenient [default: the task's]."),
    ] = None,
    max_turns: Annotated[
        int, typer.Option(min=1, help="Turns of an episode, where the task is an environment.")
    ] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the samples and of generated problems.")] = 0,
    batch: Annotated[int, typer.Option(min=1, help="Completions sampled at once.")] = 512,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda or mps [default: the best].")
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="Precision of the weights, such as bfloat16 [default: float32]."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory that keeps everything.")] = None,
    resume: Annotated[bool, typer.Option(help="Continue the evaluation in --out.")] = False,
) -> None:
    """Measure a policy on a task: accuracy, pass@k, majority vote, format, with 95 % intervals.

    Writes settings.json, completions.jsonl, table.txt and result.json to the directory --out.
    """
    import yaml

    from rlcourse.evaluation import evaluate_policy, evaluation_table
    from rlcourse.policy import Policy
    from rlcourse.policy.turns import World
    from rlcourse.tasks import EXTRACTORS, format_reward, load_task, strict_format_reward

    if resume and out is None:
        raise UserError("--resume needs --out, the directory of the evaluation to continue")
    if extract is not None and extract not in EXTRACTORS:
        raise UserError(f"--extract {extract} is unknown: choose one of {', '.join(EXTRACTORS)}")
    try:
        arguments = yaml.safe_load(template or "{}")
    except yaml.YAMLError:
        arguments = None
    if not isinstance(arguments, dict):
        raise UserError(f"--template {template!r} is not like '{{enable_thinking: false}}'")
    drawn = {"evaluation_size": problems} if task in ("word_problems", "calculator") else {}
    chosen = load_task(task, data=data, seed=seed, **drawn)
    judge = strict_format_reward if extract == "strict_tagged" else format_reward
    loaded = Policy.load(policy, device=device, dtype=dtype)
    loaded.template = arguments
    evaluation = evaluate_policy(
        loaded,
        chosen.evaluation[:problems],
        samples,
        temperature,
        max_tokens,
        extract=EXTRACTORS[extract] if extract else chosen.extract,
        format_reward=judge if extract in ("tagged", "strict_tagged") else None,
        system=system,
        seed=seed,
        batch=batch,
        progress=True,
        out=out,
        resume=resume,
        world=World(chosen.environment, max_turns) if chosen.environment else None,
        names={"policy": policy, "task": task, "data": data, "dtype": dtype}
        | ({"template": template} if template else {}),
    )
    print(evaluation_table(evaluation))


def compare(
    a: Annotated[Path, typer.Argument(help="An evaluation's directory, or a training run's.")],
    b: Annotated[
        Path | None, typer.Argument(help="The other [default: the run A before training].")
    ] = None,
) -> None:
    """Compare two policies on the same problems: differences with intervals, and a verdict.

    A training run stands for its evaluation after training, and RUN/evaluation_before.json for the
    one before. Given one training run alone, the command compares these two.
    """
    from rlcourse.evaluation import compare as compared

    if b is None:
        if not (a / "evaluation_before.json").is_file():
            raise UserError(
                f"{a} holds no evaluation before training to compare with: name a run's directory, "
                "or two evaluations"
            )
        a, b = a / "evaluation_before.json", a
    print(compared(a, b))
