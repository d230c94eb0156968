"""The tests in on_device/, in processes that have a pretended GPU (pretended_gpu.py).

The build takes about ten seconds of a processor, once for each version of torch and of the source.
Each file has a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pretended_gpu
import pytest
from filelock import FileLock

HERE = Path(__file__).parent
FILES = sorted(path.name for path in (HERE / "on_device").glob("test_*.py"))
MARKS = dict.fromkeys(
    ("test_gpu_budgets.py", "test_gpu_memory.py", "test_gpu_recipes.py"), "weekly"
)
MARKS["test_gpu_functions.py"] = "slow"


@pytest.fixture(scope="module")
def environment():
    """Of the processes, whose library is built by one and used by all."""
    if pretended_gpu.compiler() is None:
        # Where changes are judged the device must not go untested for want of a package.
        assert not os.environ.get("CI"), "install g++: the pretended GPU cannot be built without"
        pytest.skip("needs a C++ compiler, such as g++, to build the pretended GPU")
    if sys.platform != "linux":
        pytest.skip("the pretended GPU is built on Linux only")
    with FileLock(f"{pretended_gpu.folder()}.lock"):
        pretended_gpu.build()
    paths = [HERE, HERE.parent, HERE.parent / "policy"]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "RLCOURSE_PRETENDED_GPU": "1",
    }


def test_the_pretended_gpu_can_be_built(environment):
    """First, so that no other test is charged for it."""
    assert pretended_gpu.build().is_file()


@pytest.mark.parametrize(
    "name",
    [pytest.param(f, marks=getattr(pytest.mark, MARKS[f])) if f in MARKS else f for f in FILES],
)
def test_file(name, environment):
    options = ["-p", "no:xdist", "-p", "no:cacheprovider", "--tb=short", "--color=no"]
    command = [sys.executable, "-m", "pytest", *options, str(HERE / "on_device" / name)]
    done = subprocess.run(
        command, cwd=HERE.parents[1], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-2_000:]}"
