"""Make the starting point of the page "Train one": `python course/site/live/export.py`.

`world.json` holds what the library knows of problems and tokens, `cases.json` what the check of
`grpo_loss` asks and what each declared mistake answers, `warm.safetensors` the policy that
`rlcourse train sft` makes, in half precision. All are part of the repository.
"""

import dataclasses
import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor

from rlcourse import exercises
from rlcourse.policy import Policy
from rlcourse.policy.loading import TINY
from rlcourse.tasks import templates, word_problems
from rlcourse.training import load_recipe, train

HERE = Path(__file__).parent


def world() -> dict:
    """Templates, numbers and words of the training problems, and the tokenizer."""
    tokenizer = json.loads((TINY / "tokenizer.json").read_text("utf-8"))
    ids = tokenizer["model"]["vocab"]
    return {
        "level": dataclasses.asdict(word_problems.LEVELS["default"]),
        "names": templates.NAMES,
        "things": templates.THINGS,
        "containers": templates.CONTAINERS,
        "templates": [
            {
                "name": template.name,
                "numbers": template.numbers.split(),
                "steps": [step.split() for step in template.steps.split(";")],
                "texts": template.texts,
            }
            for template in templates.TEMPLATES
        ],
        "tokenizer": {
            "vocabulary": sorted(ids, key=ids.get),
            "pattern": tokenizer["pre_tokenizer"]["pattern"]["Regex"],
        },
    }


def cases() -> dict:
    """Cases of `grpo_loss`, and every mistake that the loss's values show, in plain numbers."""
    exercise = exercises.get("grpo_loss")
    drawn = [case for case in exercise.draw_cases(0) if case.arguments["advantages"].dim() == 1]

    def values(fn) -> list[float | None]:
        found = [float(f"{float(fn(**case.arguments)):.9g}") for case in drawn]
        return [x if x == x else None for x in found]  # JSON has no NaN

    right, mistakes = values(exercise.reference), []
    for mistake in exercise.mistakes:
        about = {name: getattr(mistake, name) for name in ("name", "diagnosis", "telling")}
        with suppress(RuntimeError):  # shapes that do not fit: numbers have none
            mistakes.append({**about, "values": values(mistake.implementation)})
    listed = []
    for case, expected in zip(drawn, right, strict=True):
        given = {n: x.tolist() if isinstance(x, Tensor) else x for n, x in case.arguments.items()}
        given = {"clip": 0.2, "beta": 0.04, **given}
        listed.append({"label": case.label, "given": given, "expected": expected})
    return {"cases": listed, "mistakes": [m for m in mistakes if m["values"] != right]}


def warm_policy() -> Policy:
    """The imitated policy that every recipe's warm start gives for seed 0, in float32."""
    return train(load_recipe("sft", eval_problems=0, device="cpu"), progress=False).trained


def main() -> None:
    for name, made in {"world": world(), "cases": cases()}.items():
        text = json.dumps(made, indent=0, ensure_ascii=False)
        (HERE / f"{name}.json").write_text(text + "\n", "utf-8")
    policy = warm_policy()
    policy.model.half()
    with TemporaryDirectory() as scratch:
        policy.save(Path(scratch, "policy"))
        weights = Path(scratch, "policy", "model.safetensors").read_bytes()
        (HERE / "warm.safetensors").write_bytes(weights)


if __name__ == "__main__":
    main()
