"""The last section of a lesson, on a real model: measured here, or shown as it was recorded.

The model is SmolLM2-135M-Instruct after 36 steps of imitation on the course's word problems. A
lesson passes the function that measures it, so what runs is the student's code; ``on_real/`` has
what was found before, and each file there says how. Where neither a GPU nor
``RLCOURSE_REAL_MODEL`` asks for a measurement, nothing is downloaded, loaded or trained.
"""

import json
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path
from time import monotonic

import torch

from rlcourse.errors import UserError
from rlcourse.files import write_json
from rlcourse.policy import Policy
from rlcourse.training.recipes.recipe import load_recipe
from rlcourse.training.run import train
from rlcourse.training.runs.outcome import Run

VARIABLE = "RLCOURSE_REAL_MODEL"  # the model's directory, or "recorded" to measure nothing
RECORDS = Path(__file__).with_name("on_real")


def measured(name: str, measure: Callable[[Policy], dict]) -> dict:
    """What `measure` finds on the real model, or what it found when it was recorded.

    Prints first which of the two it is. A measurement is kept in ``real/NAME.json`` of the present
    directory, and read from there the next time.

    Raises:
        UserError: RLCOURSE_REAL_MODEL names no model, or the model cannot be had.
    """
    directory, kept = _directory(), Path("real", f"{name}.json")
    if directory is None:
        found = recorded(name)
        print(
            f"A GPU measures it anew; so does {VARIABLE}=DIR of `rlcourse model smollm2-135m DIR`."
        )
        return found
    if kept.is_file():
        print(f"Measured here before: {kept}; remove it to measure again.")
        return json.loads(kept.read_text(encoding="utf-8"))["found"]
    policy = imitated(directory)
    print(f"Measured here now, on {policy.device}; the result is kept in {kept}.")
    began = monotonic()
    found = measure(policy)
    kept.parent.mkdir(exist_ok=True)
    facts = {"when": str(date.today()), "seconds": round(monotonic() - began)}
    write_json(kept, facts | {"found": found}, indent=None)
    return found


def recorded(name: str) -> dict:
    """What was recorded as `name`, after a line that says when, where and how."""
    record = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    print(f"Recorded on {record['when']}, {record['machine']}: {record['command']}.")
    return record["found"]


def imitated(directory: Path) -> Policy:
    """The real model after imitation, which is trained once and kept beside `directory`."""
    ready = directory.with_name(f"{directory.name}-imitated")
    if not (ready / "config.json").is_file():
        if not (directory / "config.json").is_file():
            _get(directory)
        recipe = load_recipe("laptop_sft", eval_problems=0)
        policy = train(recipe, policy=Policy.load(directory)).policy
        assert policy is not None, "imitation trains a policy"
        policy.save(ready)
    return Policy.load(ready)


def learned(policy: Policy, **functions) -> Run:
    """The run of the recipe `laptop` from `policy`, kept in ``real/grpo``, resumed from there."""
    recipe, out = load_recipe("laptop", eval_problems=0, warm_start=None), Path("real", "grpo")
    return train(recipe, out=out, resume=out.exists(), policy=policy, **functions)


def _directory() -> Path | None:
    """The model's directory where something is to be measured, else None."""
    if given := os.environ.get(VARIABLE):
        return None if given == "recorded" else Path(given)
    return Path("models", "smollm2-135m") if torch.cuda.is_available() else None


def _get(directory: Path) -> None:
    if os.environ.get(VARIABLE):
        raise UserError(
            f"{VARIABLE}={directory} holds no model: "
            f"run `rlcourse model smollm2-135m {directory}`, or correct the variable"
        )
    from rlcourse.policy import real_model

    print(f"{directory}: from {real_model.fetch(directory)}. {real_model.LICENCE}")
