"""The page "A recorded run": two runs to scrub through, as a report shows them.

`python course/site/recorded/build.py DIRECTORY RECIPE` takes what the page shows from the directory
of a finished run, and keeps it in RECIPE.json next to this file with the command that made the run.
"""

import json
import sys
from pathlib import Path

from rlcourse import __version__
from rlcourse.errors import UserError
from rlcourse.files import write_json
from rlcourse.reports import read_run
from rlcourse.reports.html_pages import duration
from rlcourse.reports.scrubbing import fragment, run_data
from rlcourse.training.recipes.recipe import load_recipe

HERE = Path(__file__).parent
TITLE = "A recorded run"
TEXT = """\
# {title}

One run of GRPO on the course's language model, from its first step to its last. Drag the slider,
or press Play. Notice how early the blue dots rise, and how long the orange curve takes: greedy
answers are right as soon as the better habit is the likeliest, sampled ones only as often as it
is drawn. And notice the colors fade: more and more groups agree, and a group that agrees teaches
nothing.

{grpo}

Each step shows the first questions of its batch. The `report.html` of every run that you train has
the same. The method is derived in lesson 06,
[Group relative policy optimization](lessons/06_grpo.md); [Train one](train-one.md) trains in
this tab.

## A real model

The same method on SmolLM2-135M-Instruct, which has 560 times as many weights. The run begins where
36 steps of imitation end, and its curve rises less.

{laptop}

[A real language model learns, on a laptop](course/laptop.md) says how to train it. Its texts are
by a model of Hugging Face's, under the Apache License 2.0.
"""


def page() -> str:
    """The page as Markdown."""
    runs = {recipe: shown(recipe) for recipe in ("grpo", "laptop")}
    return "---\nhide-toc: true\n---\n" + TEXT.format(title=TITLE, **runs)


def shown(recipe: str) -> str:
    """One of the runs, and how it was made."""
    kept = json.loads((HERE / f"{recipe}.json").read_text("utf-8"))
    return (
        f"```{{raw}} html\n{fragment(kept['data'])}\n```\n\n"
        f"Recorded by `{kept['command']}` with rlcourse {kept['version']}; its steps took "
        f"{duration(kept['seconds'])} on {kept['hardware']} that had other work to do, too."
    )


def keep(directory: Path, recipe: str) -> None:
    """Write RECIPE.json from the directory of a run of that recipe.

    Raises:
        UserError: there is no finished run, or none that kept groups of completions.
    """
    record = read_run(directory)
    if not record.finished or not record.kept_groups:
        raise UserError(f"{directory} holds no finished run with a groups.jsonl: train one first")
    usual = load_recipe(recipe).to_dict()
    own = [f"{k}={v}" for k, v in record.recipe.items() if usual.get(k) != v]
    cores, device = (record.result["hardware"][name] for name in ("cores", "device"))
    kept = {
        "command": " ".join(["rlcourse train", recipe, *own]),
        "version": __version__,
        "seconds": round(record.seconds, 1),
        "hardware": f"{cores} {'cores' if device == 'cpu' else f'cores and {device}'}",
        "data": run_data(record),
    }
    write_json(HERE / f"{recipe}.json", kept, indent=None)


if __name__ == "__main__":
    try:
        keep(Path(sys.argv[1]), sys.argv[2])
    except (UserError, IndexError) as error:
        sys.exit(f"rlcourse: {error}")
