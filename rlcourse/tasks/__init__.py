"""Problems to solve and the rewards that say whether they were solved."""

import inspect
from collections.abc import Callable
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.tasks import calculator, gsm8k, stories, word_problems
from rlcourse.tasks.calculator import CalculatorEnvironment
from rlcourse.tasks.environment import Environment, Reply
from rlcourse.tasks.numbers import exact_number, numbers_in
from rlcourse.tasks.problem import Problem, Task
from rlcourse.tasks.rewards import (
    EXTRACTORS,
    FORMATS,
    correctness_reward,
    extract_answer,
    extract_boxed_answer,
    extract_lenient_answer,
    extract_strict_tagged_answer,
    extract_tagged_answer,
    format_reward,
    length_reward,
    strict_format_reward,
)

__all__ = [
    "EXTRACTORS",
    "FORMATS",
    "CalculatorEnvironment",
    "Environment",
    "Problem",
    "Reply",
    "Task",
    "correctness_reward",
    "exact_number",
    "extract_answer",
    "extract_boxed_answer",
    "extract_lenient_answer",
    "extract_strict_tagged_answer",
    "extract_tagged_answer",
    "format_reward",
    "length_reward",
    "load_task",
    "numbers_in",
    "strict_format_reward",
]


EMBEDDED: dict[str, Callable[..., Task]] = {
    "word_problems": word_problems.load,
    "calculator": calculator.load,
    "stories": stories.load,
}


def load_task(name: str, data: str | Path | None = None, seed: int = 0, **options) -> Task:
    """The task called `name`.

    Args:
        name: "word_problems" or "calculator" (embedded), "stories" (longer ones), "gsm8k", or the
            path of a JSONL file, or of a directory with train.jsonl and test.jsonl.
        data: for "gsm8k", a directory with its train.jsonl and test.jsonl; None asks the hub.
        seed: chooses the problems.
        options: see `word_problems.load`, `calculator.load`, `gsm8k.load` and `gsm8k.load_jsonl`.

    Raises:
        UserError: there is no such task or option, or its data cannot be used.
    """
    if name in EMBEDDED:
        load, arguments = EMBEDDED[name], {}
    elif name == "gsm8k":
        load, arguments = gsm8k.load, {"data": data}
    elif name.endswith(".jsonl") or Path(name).is_dir():
        load, arguments = gsm8k.load_jsonl, {"path": name}
    else:
        raise UserError(
            f"There is no task {name!r}; use {', '.join(EMBEDDED)}, gsm8k, or the path of a JSONL "
            "file or of a directory with train.jsonl and test.jsonl."
        )
    if data is not None and "data" not in arguments:
        raise UserError(f"data={str(data)!r} belongs to the task gsm8k; remove it for {name!r}.")
    known = [o for o in inspect.signature(load).parameters if o not in ("seed", "data", "path")]
    for option in options:
        if option not in known:
            raise UserError(f"{name} has no option {option!r}; its options are {', '.join(known)}.")
    return load(**arguments, seed=seed, **options)
