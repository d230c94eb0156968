"""Make the starting point of the page "Train one": `python course/site/live/export.py`.

`world.json` holds what the library knows of problems and tokens, `warm.safetensors` the policy that
`rlcourse train sft` makes, in half precision. Both are part of the repository.
"""

import dataclasses
import json
from pathlib import Path
from tempfile import TemporaryDirectory

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


def warm_policy() -> Policy:
    """The imitated policy that every recipe's warm start gives for seed 0, in float32."""
    return train(load_recipe("sft", eval_problems=0, device="cpu"), progress=False).trained


def main() -> None:
    text = json.dumps(world(), indent=0, ensure_ascii=False)
    (HERE / "world.json").write_text(text + "\n", "utf-8")
    policy = warm_policy()
    policy.model.half()
    with TemporaryDirectory() as scratch:
        policy.save(Path(scratch, "policy"))
        weights = Path(scratch, "policy", "model.safetensors").read_bytes()
        (HERE / "warm.safetensors").write_bytes(weights)


if __name__ == "__main__":
    main()
