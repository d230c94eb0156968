"""Each extra, installed from the wheel into a fresh environment, does what it is for.

Run weekly: it downloads about two gigabytes. `vllm` needs CUDA and is only resolved, in
test_vllm_resolves.py.
"""

import os
import re
import subprocess
import sys
import tomllib

import pytest
from building import ROOT, run
from uv import find_uv_bin

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
SMALL = "rlcourse train grpo steps=1 prompts_per_step=2 group_size=4 eval_problems=4 eval_samples=1"
SMALL += " --out out"
USES = {
    "": "rlcourse lab --copy-only --dir m; rlcourse check m/00_start_here/00_start_here.ipynb",
    "lab": "jupyterlab --version",
    "grade": "rlcourse demo",
    "tensorboard": f"{SMALL}; tensorboard.main --inspect --logdir out",
    "trl": f"{SMALL} --engine trl",
    "lora": f"{SMALL} lora.rank=2",
    "gguf": "rlcourse model smollm2-135m; rlcourse plan grpo policy=models/smollm2-135m",
    "adam8bit": f"{SMALL} optimizer=adamw_8bit",
    "site": "sphinx --version",
}
OFFLINE = re.compile("No matching distribution|Failed to establish a new connection")


def test_each_extra_is_used_or_cannot_be_here():
    assert {*EXTRAS, ""} - {*USES} == {"vllm", "test"}


def without_cuda(python):
    """Install the CPU build of torch as the guide says; where it cannot be had, pip finds one."""
    command = [find_uv_bin(), "pip", "install", "--quiet", "--python", python, "torch"]
    command += ["--torch-backend=cpu", "-c", ROOT / "requirements.lock"]
    subprocess.run(command, capture_output=True)


@pytest.mark.weekly
@pytest.mark.parametrize("extra", USES)
def test_an_extra_installs_and_works(archives, tmp_path, extra):
    run(sys.executable, "-m", "venv", "fresh", cwd=tmp_path)
    python = tmp_path / ("fresh/Scripts/python.exe" if os.name == "nt" else "fresh/bin/python")
    install = (python, "-m", "pip", "install", "--quiet", "-c", ROOT / "requirements.lock")
    try:
        without_cuda(python)
        wheel = f"{archives[1]}[{extra}]" if extra else archives[1]
        run(*install, wheel, cwd=tmp_path)
    except AssertionError as error:
        if OFFLINE.search(str(error)) and os.environ.get("CI") != "true":
            pytest.skip("the package registry cannot be reached")
        raise
    home = {"RLCOURSE_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    for command in USES[extra].split("; "):
        run(python, "-m", *command.split(), cwd=tmp_path, **home)
