"""How long each solved lesson takes from its first cell to its last, one after the other.

    python tests/benchmarks/bench_lessons.py            # every lesson, about half an hour
    python tests/benchmarks/bench_lessons.py 12 16

With as many threads as JupyterLab would use. The warm start that lessons train from, alone and
right before each lesson, is the yardstick for other machines. Run it where nothing else runs.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

os.environ["RLCOURSE_HOME"] = tempfile.mkdtemp()  # no record of the reader's own

import nbformat
import torch

from rlcourse.authoring.kernel import error_of, run_cells
from rlcourse.tasks import load_task
from rlcourse.training import load_recipe, train

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def warm_start() -> float:
    """Seconds that the start of most lessons takes."""
    began = time.perf_counter()
    task = load_task("word_problems", seed=0)
    train(load_recipe("sft", seed=0, eval_problems=0), task=task, progress=False)
    return time.perf_counter() - began


def lesson(path: Path) -> float:
    """Seconds that all of its cells take in a kernel of its own."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        failed = run_cells(
            notebook, Path(folder), timeout=None, stop_on_error=True, label=path.stem
        )
    if failed is not None:
        sys.exit(f"{path}: cell {failed} failed: {error_of(notebook.cells[failed])}")
    return time.perf_counter() - began


def main() -> None:
    numbers = sys.argv[1:]
    paths = sorted(p for p in SOLUTIONS.glob("*.ipynb") if not numbers or p.name[:2] in numbers)
    if not paths:
        sys.exit(f"no lesson begins with {' or '.join(numbers)}: name some as 06 or 12")
    print(f"{os.cpu_count()} processors, {torch.get_num_threads()} threads")
    print(f"{'seconds':32}{'start':>8}{'lesson':>8}{'ratio':>8}")
    for path in paths:
        start, took = warm_start(), lesson(path)
        print(f"{path.stem:32}{start:8.1f}{took:8.1f}{took / start:8.1f}", flush=True)


if __name__ == "__main__":
    main()
