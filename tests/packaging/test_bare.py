"""Without an extra, the package does what the guide promises: lessons, checks, training.

The packages that only extras bring are there in this environment, and hidden from these commands.
"""

import importlib.metadata
import json
import os
import subprocess
import sys

import pytest
from building import ROOT
from packaging.requirements import Requirement

HIDING = """# Python reads this file at its start, in kernels as well.
from importlib.machinery import PathFinder

find = PathFinder.find_spec
hidden = {names!r}
PathFinder.find_spec = lambda name, *rest: None if name in hidden else find(name, *rest)
"""


def brought(*extras: str) -> set[str]:
    """Names of the distributions that come with rlcourse and these extras of it."""
    found, open_ = set(), [("rlcourse", extra) for extra in ("", *extras)]
    while open_:
        pair = open_.pop()
        if pair in found:
            continue
        found.add(pair)
        try:
            requirements = importlib.metadata.requires(pair[0]) or ()
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate({"extra": pair[1]}):
                name = requirement.name.lower().replace("_", "-")
                open_ += [(name, extra) for extra in ("", *requirement.extras)]
    return {name for name, _ in found}


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """``bare(command…)`` runs rlcourse as if no extra were installed."""
    place, needed = tmp_path_factory.mktemp("bare"), brought()
    hidden = {
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if not {owner.lower().replace("_", "-") for owner in owners} & needed
    }
    assert {"nbgrader", "nbconvert", "jupyterlab", "trl", "peft"} <= hidden
    assert not {"torch", "nbclient", "yaml", "IPython"} & hidden
    path = os.pathsep.join([str(place), str(ROOT)])
    (place / "sitecustomize.py").write_text(HIDING.format(names=hidden), encoding="utf-8")

    def bare(*words: str, start: tuple[str, ...] = ("-m", "rlcourse")):
        return subprocess.run(
            [sys.executable, *start, *words],
            cwd=place,
            env={**os.environ, "PYTHONPATH": path, "RLCOURSE_HOME": str(place / "home")},
            capture_output=True,
            text=True,
        )

    return bare


@pytest.mark.slow
def test_lessons_are_copied_and_checked(bare):
    assert bare("lab", "--copy-only", "--dir", "mine").returncode == 0
    checked = bare("check", "mine/00_start_here/00_start_here.ipynb")
    assert "not written yet" in checked.stdout, checked.stderr


# Several commands in one process, which then says how each has ended.
ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys
from rlcourse.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv[1:], said, status = words, io.StringIO(), 0
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as end:
            status = end.code
    print(json.dumps([status, said.getvalue()]))
"""
NEEDS = (
    ("lab --dir mine", "JupyterLab", "lab"),
    ("grade submitted", "nbgrader", "grade"),
    ("train grpo --engine trl --out trl", "trl", "trl"),
    ("train grpo lora.rank=2 --out lora", "peft", "lora"),
    ("train grpo optimizer=adamw_8bit --out 8", "bitsandbytes", "adam8bit"),
)


@pytest.mark.slow
def test_what_needs_an_extra_names_it_before_anything_is_done(bare):
    lines = json.dumps([line.split() for line, *_ in NEEDS])
    done = bare(lines, start=("-c", ONE_AFTER_ANOTHER))
    ends = [json.loads(line) for line in done.stdout.splitlines()]
    for (line, missing, extra), (status, said) in zip(NEEDS, ends, strict=True):
        assert status == 1 and "Traceback" not in said, (line, said)
        (sentence,) = said.splitlines()
        assert missing in sentence and f"[{extra}]" in sentence
