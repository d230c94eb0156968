"""The recorded run behind the home page, the README's picture and the report on the site.

`python course/site/run.py` trains it again (about a minute) and writes `run.zip`.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from rlcourse.reports.run_record import RunRecord, read_run

HERE = Path(__file__).parent
KEPT = HERE / "run.zip"
WORDS = ("train", "grpo", "seed=0", "eval_every=5")  # evaluations on the way change no step
COMMAND = " ".join(("rlcourse", *WORDS))
FILES = (
    *("recipe.yaml", "metrics.jsonl", "result.json"),
    *("evaluation_before.json", "evaluation_after.json"),
)


def recorded() -> RunRecord:
    """The run, as recorded in its directory."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch, "grpo")
        with zipfile.ZipFile(KEPT) as kept:
            kept.extractall(place)
        return read_run(place)


def train(target: Path = KEPT) -> None:
    """Train the run and keep everything that its pages are made from, without weights."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch, "grpo")
        command = [sys.executable, "-m", "rlcourse", *WORDS, "--out", str(place)]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as kept:
            for name in FILES:
                fixed = zipfile.ZipInfo(name)  # without the hour, so that equal runs are equal
                fixed.compress_type = zipfile.ZIP_LZMA
                kept.writestr(fixed, (place / name).read_bytes())


if __name__ == "__main__":
    train()
