"""What this machine has, what the course needs, and how to get what is missing."""

import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
    return [_python(), *_packages(), *_machine(), *_isolation()]


def _python() -> Finding:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("python", "Python", "ok", found)


def _packages() -> Iterator[Finding]:
    from packaging.requirements import Requirement

    try:
        needed = importlib.metadata.requires(NAME) or ()
    except importlib.metadata.PackageNotFoundError:
        advice = f"pip install {Path(__file__).parents[1]}, in the environment of {sys.executable}"
        yield Finding("packages", NAME, "missing", "runs from its folder", advice)
        return
    for requirement in map(Requirement, needed):
        name, marker, extra = requirement.name, requirement.marker, ""
        if marker is not None:
            extra = "".join(re.findall(r'extra == "(\w+)"', str(marker)))
            if extra in ("", "test") or not marker.evaluate({"extra": extra}) or name == NAME:
                continue  # for another machine, for tests, or an extra that includes another
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = None
        if version and requirement.specifier.contains(version, prereleases=True):
            yield Finding("packages", name, "ok", version)
            continue
        found = f"{version}, but rlcourse needs {requirement.specifier}" if version else "absent"
        advice = f"optional: {install_command(extra)}"
        if not extra:
            advice = f'pip install "{name}{requirement.specifier}"'
        yield Finding("packages", name, "absent" if extra else "missing", found, advice)


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
        advice = "not needed: every lesson runs on the CPU"
        yield Finding("machine", "GPU", "absent", "none", advice)
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:  # not on Windows
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        advice = "" if memory >= 4 else "close other programs: lessons need about 4 GiB"
        state = "absent" if advice else "ok"
        yield Finding("machine", "memory", state, f"{memory:.1f} GiB", advice)
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    advice = "" if free >= 1 else "free at least 1 GiB: training writes checkpoints"
    state = "missing" if advice else "ok"
    yield Finding("machine", "free disk", state, f"{free:.1f} GiB", advice)


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


def doctor() -> None:
    """Say what this machine has, what is missing and how to get it."""
    findings = examine()
    for finding in findings:
        mark = {"ok": "✓", "absent": "–", "missing": "✗"}[finding.state]
        advice = f"   {finding.advice}" if finding.advice else ""
        print(f"{mark} {finding.name:16} {finding.found}{advice}")
    missing = [finding.name for finding in findings if finding.state == "missing"]
    if missing:
        raise UserError(f"not ready: {', '.join(missing)}; the lines marked ✗ say what to do")
