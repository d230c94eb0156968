"""The tests in on_device/, each file in a process that has a pretended GPU (pretended_gpu.py).

The build takes about ten seconds of a processor, once for each version of torch and of the source.
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


@pytest.mark.parametrize("name", FILES)
def test_file(name, environment, request):
    if name == "test_gpu_lessons.py" and not request.config.getoption("--lessons-on-a-gpu"):
        pytest.skip("takes long: asked for with --lessons-on-a-gpu, which is done once a week")
    options = ["-p", "no:xdist", "-p", "no:cacheprovider", "--tb=short", "--color=no"]
    command = [sys.executable, "-m", "pytest", *options, str(HERE / "on_device" / name)]
    done = subprocess.run(
        command, cwd=HERE.parents[1], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-2_000:]}"
