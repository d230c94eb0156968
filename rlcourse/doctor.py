"""What this machine has, what the course needs, and how to get what is missing."""

import importlib.metadata
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from packaging.requirements import Requirement

from rlcourse.errors import UserError
from rlcourse.installed import NAME, install_command


@dataclass(frozen=True)
class Finding:
    """One line of the report. `state` is "ok", "absent" (optional) or "missing" (needed)."""

    group: str
    name: str
    state: str
    found: str
    advice: str = ""


def examine() -> list[Finding]:
    """All findings, required things first. Nothing is changed."""
    return [*_python(), *_packages(), *_machine(), *_isolation()]


def _python() -> Iterator[Finding]:
    good = sys.version_info >= (3, 11)
    yield Finding(
        "python",
        "Python",
        "ok" if good else "missing",
        f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "" if good else "install Python 3.11 or newer and run make again",
    )


def _packages() -> Iterator[Finding]:
    try:
        needed = importlib.metadata.requires("rlcourse") or ()
    except importlib.metadata.PackageNotFoundError:
        advice = f"pip install {Path(__file__).parents[1]}, in the environment of {sys.executable}"
        yield Finding("packages", "rlcourse", "missing", "runs from its folder", advice)
        return
    for text in needed:
        requirement = Requirement(text)
        extra = _extra_of(requirement)
        if requirement.marker is not None and extra is None:
            continue  # for tests, or for another machine
        if requirement.name == NAME:
            continue  # an extra that includes another
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            version = None
        if version and requirement.specifier.contains(version, prereleases=True):
            yield Finding("packages", requirement.name, "ok", version)
            continue
        found = f"{version}, but rlcourse needs {requirement.specifier}" if version else "absent"
        if extra:
            advice = f"optional: {install_command(extra)}"
            yield Finding("packages", requirement.name, "absent", found, advice)
        else:
            advice = f'pip install "{requirement.name}{requirement.specifier}"'
            yield Finding("packages", requirement.name, "missing", found, advice)


def _extra_of(requirement: Requirement) -> str | None:
    """The extra that includes a requirement; None if it is always needed, or for tests only."""
    marker = requirement.marker
    if marker is None or marker.evaluate({"extra": ""}):
        return None
    extras = importlib.metadata.metadata("rlcourse").get_all("Provides-Extra") or []
    brings = (extra for extra in extras if marker.evaluate({"extra": extra}))
    return next((extra for extra in brings if extra != "test"), None)


def _machine() -> Iterator[Finding]:
    import torch

    from rlcourse.machine import nvidia_gpus, unusable_gpu

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("machine", "CPU", "ok", f"{cores} cores, torch uses {torch.get_num_threads()}")
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            memory = torch.cuda.get_device_properties(index).total_memory / 2**30
            name = f"{torch.cuda.get_device_name(index)}, {memory:.0f} GiB"
            yield Finding("machine", f"GPU {index}", "ok", name)
    elif torch.backends.mps.is_available():
        yield Finding("machine", "GPU", "ok", "Apple (mps)")
    elif why := unusable_gpu():
        yield Finding("machine", "GPU", "absent", nvidia_gpus()[0], why)
    else:
        yield Finding(
            "machine", "GPU", "absent", "none", "not needed: every lesson runs on the CPU"
        )
    if memory := _memory_bytes():
        enough = memory >= 4 * 2**30
        advice = "" if enough else "close other programs: lessons need about 4 GiB"
        state = "ok" if enough else "absent"
        yield Finding("machine", "memory", state, f"{memory / 2**30:.1f} GiB", advice)
    free = shutil.disk_usage(Path.cwd()).free
    enough = free >= 2**30
    advice = "" if enough else "free at least 1 GiB: training writes checkpoints"
    state = "ok" if enough else "missing"
    yield Finding("machine", "free disk", state, f"{free / 2**30:.1f} GiB", advice)


def _memory_bytes() -> int | None:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _isolation() -> Iterator[Finding]:
    """The layers around student code, each of them tested; only instructors need them."""
    try:
        from rlcourse.grading.confinement.isolation import ADVICE, LAYERS
        from rlcourse.grading.confinement.probing import probe
    except ImportError:  # Windows has no such users and limits
        reason = f"not on {platform.system()}"
        yield Finding("isolation", "grading", "absent", reason, "grade on Linux")
        return
    found = probe()
    for name in LAYERS:
        if name in found.standing:
            yield Finding("isolation", name, "ok", f"student code {LAYERS[name]}")
        else:
            reason = found.missing.get(name, "not tried")
            yield Finding("isolation", name, "absent", reason, f"for grading: {ADVICE[name]}")


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Say what this machine has, what is missing and how to get it."""
    findings = examine()
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            mark = {"ok": "✓", "absent": "–", "missing": "✗"}[finding.state]
            advice = f"   {finding.advice}" if finding.advice else ""
            print(f"{mark} {finding.name:16} {finding.found}{advice}")
    missing = [finding.name for finding in findings if finding.state == "missing"]
    if missing:
        raise UserError(f"not ready: {', '.join(missing)}; the lines marked ✗ say what to do")
