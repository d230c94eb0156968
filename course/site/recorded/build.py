"""The page "A recorded run": one run to scrub through, as a report shows it.

`python course/site/recorded/build.py DIRECTORY` takes what the page shows from the directory of a
finished run, and keeps it in run.json next to this file with the command that made the run.
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

```{{raw}} html
{run}
```

Recorded by `{command}` with rlcourse {version}; the {steps} steps took {seconds} on {hardware}
that had other work to do, too. Each step shows the first questions of its batch. The `report.html`
of every run that you train has the same. The method is derived in lesson 06,
[Group relative policy optimization](lessons/06_grpo.md); [Train one](train-one.md) trains in
this tab.
"""


def page() -> str:
    """The page as Markdown."""
    kept = json.loads((HERE / "run.json").read_text("utf-8"))
    text = TEXT.format(
        title=TITLE,
        run=fragment(kept["data"]),
        command=kept["command"],
        version=kept["version"],
        steps=kept["data"]["steps"],
        seconds=duration(kept["seconds"]),
        hardware=kept["hardware"],
    )
    return f"---\nhide-toc: true\n---\n{text}"


def keep(directory: Path) -> Path:
    """Write run.json from a run's directory, and return its path.

    Raises:
        UserError: there is no finished run, or none that kept groups of completions.
    """
    record = read_run(directory)
    if not record.finished or not record.kept_groups:
        raise UserError(f"{directory} holds no finished run with a groups.jsonl: train one first")
    usual = load_recipe(record.recipe["algorithm"]).to_dict()
    own = [f"{k}={v}" for k, v in record.recipe.items() if usual.get(k) != v]
    cores, device = (record.result["hardware"][name] for name in ("cores", "device"))
    kept = {
        "command": " ".join(["rlcourse train", record.recipe["algorithm"], *own]),
        "version": __version__,
        "seconds": round(record.seconds, 1),
        "hardware": f"{cores} {'cores' if device == 'cpu' else f'cores and {device}'}",
        "data": run_data(record),
    }
    write_json(HERE / "run.json", kept, indent=None)
    return HERE / "run.json"


if __name__ == "__main__":
    try:
        print(keep(Path(sys.argv[1])))
    except (UserError, IndexError) as error:
        sys.exit(f"rlcourse: {error}")
