"""What commands take before they do anything, and the tests: seconds of a processor.

    python tests/benchmarks/bench_start.py             # each command three times, the least counts
    python tests/benchmarks/bench_start.py --tests     # and `make test`, once

With a jsonschema that builds a grammar of addresses when it is imported, `import nbformat` takes
1.2 s in place of .2 on a fast machine and 3 s on a slow one, in each process that reads a notebook.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LESSON = ROOT / "notebooks" / "02_policy_gradient" / "02_policy_gradient.ipynb"
COMMANDS = {
    "rlcourse --help": ("-m", "rlcourse", "--help"),
    "rlcourse check, of a lesson that nobody has begun": ("-m", "rlcourse", "check", LESSON),
    "rlcourse grade --help": ("-m", "rlcourse", "grade", "--help"),
    "import nbformat": ("-c", "import nbformat"),
    "import nbgrader.apps": ("-c", "import nbgrader.apps"),
    "jupyter lab, its extensions loaded": ("-m", "jupyter", "labextension", "list"),
}


def seconds(command, **options) -> float:
    """Of a processor, that a command takes with all that it starts."""
    before = os.times()
    done = subprocess.run(command, capture_output=True, cwd=ROOT, **options)
    after = os.times()
    if done.returncode > 1 or b"Traceback" in done.stderr:  # 1: a lesson that is not solved
        raise SystemExit(f"{command} failed: {done.stderr.decode()}")
    return sum(after[2:4]) - sum(before[2:4])


with tempfile.TemporaryDirectory() as home:
    environment = {**os.environ, "RLCOURSE_HOME": home, "OMP_NUM_THREADS": "1"}
    for name, command in COMMANDS.items():
        taken = [seconds([sys.executable, *command], env=environment) for _ in range(3)]
        print(f"{min(taken):6.2f} s  {name}", flush=True)
    if "--tests" in sys.argv:
        print(f"{seconds(['make', 'test']):6.0f} s  make test")
