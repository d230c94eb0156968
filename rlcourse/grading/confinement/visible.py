"""The files that student code may read: an allow-list, made by the trusted side.

Python's standard library, the packages that lessons may use with all that those need, shared
libraries, fonts and time zones. Everything else on this machine is out of sight: not because
somebody thought of hiding it, but because it is not listed. If a listed directory holds a copy of
the course or a whole repository, that is cut out.
"""

import importlib.metadata
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache

# What students may import besides the standard library and the course, if it is installed
PACKAGES = (
    "torch", "numpy", "matplotlib", "transformers", "datasets", "safetensors", "tqdm", "ipython",
    "ipywidgets", "pandas", "scipy", "peft", "PyYAML", "Jinja2",
)  # fmt: skip
LIBRARIES = (
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib",
    "/usr/local/lib64",
)  # fmt: skip
FILES = (
    "/usr/share/zoneinfo", "/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/fontconfig",
    "/usr/share/locale", "/etc/ld.so.cache", "/etc/localtime", "/etc/fonts",
    "/etc/ssl/openssl.cnf", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
    "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu",
)  # fmt: skip
_SEARCHED = 4  # levels below a directory of libraries in which copies are looked for


@cache
def readable_paths() -> tuple[str, ...]:
    """All paths that are shown, even those below one of ``hidden_paths``."""
    packages = [path for _, path in _packages()]
    paths = {*_libraries(), *_standard_library(), *packages, *FILES}
    return tuple(sorted(path for path in paths if os.path.lexists(path)))


@cache
def hidden_paths() -> tuple[str, ...]:
    """Directories below the shown ones that are not: other packages, repositories, the course."""
    kept = {*_standard_library()}
    hidden = {
        f"{library}/{name}" for library in kept for name in ("site-packages", "dist-packages")
    }
    for library in _libraries():
        hidden |= {path for path in _other_pythons(library) if path not in kept}
    for directory in {*_libraries(), *kept}:
        hidden |= set(_copies(directory, _SEARCHED))
    return tuple(sorted(path for path in hidden if os.path.isdir(path)))


def package_paths() -> list[str]:
    """The directories in which the listed packages are, in the order of this Python's path."""
    homes = dict.fromkeys(home for home, _ in _packages())
    order = {os.path.realpath(path): i for i, path in enumerate(sys.path) if path}
    return sorted(homes, key=lambda home: order.get(os.path.realpath(home), len(order)))


@cache
def _packages() -> tuple[tuple[str, str], ...]:
    """(directory, entry in it) for all that belongs to the listed packages and to what they need.

    The entries are those that a package's installer recorded, so files that somebody else put next
    to them are left out.
    """
    found, open_ends, seen = [], list(PACKAGES), set()
    while open_ends:
        name = open_ends.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen or key.startswith("rlcourse"):
            continue
        seen.add(key)
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        home = str(package.locate_file("")).rstrip("/")
        found += [(home, f"{home}/{entry}") for entry in _entries(package)]
        open_ends += [
            re.split(r"[^\w.-]", needed, maxsplit=1)[0]
            for needed in package.requires or ()
            if "extra ==" not in needed
        ]
    return tuple(dict.fromkeys(item for item in found if os.path.lexists(item[1])))


def _entries(package: importlib.metadata.Distribution) -> set[str]:
    """Names directly in the packages' directory that an installed package consists of."""
    names = {path.parts[0] for path in package.files or ()}
    unwanted = ("rlcourse", "..", "__pycache__", "__editable__", "/")
    return {n for n in names if n and not n.startswith(unwanted) and not n.endswith(".pth")}


def _standard_library() -> tuple[str, ...]:
    paths = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = {*paths, f"{sys.base_prefix}/lib/{version}", f"{sys.base_exec_prefix}/lib/{version}"}
    # a virtual environment has none of its own
    return tuple(sorted(path for path in found if path and os.path.isfile(f"{path}/os.py")))


def _libraries() -> tuple[str, ...]:
    """Directories of shared libraries, of the system and of this Python."""
    own = [f"{sys.base_prefix}/lib", *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    return tuple(path.rstrip("/") for path in (*LIBRARIES, *own) if path and os.path.isdir(path))


def _other_pythons(library: str) -> Iterator[str]:
    """The directories in which this or another Python keeps packages."""
    for entry in os.scandir(library):
        if entry.name.startswith(("python", "pypy", "node_modules")) and not entry.is_symlink():
            yield entry.path


def _copies(directory: str, depth: int) -> Iterator[str]:
    """Copies of the course and whole repositories, of the course or not, below a directory."""
    try:
        entries = [entry for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    names = {entry.name for entry in entries}
    if names & {".git", ".hg", ".svn"}:
        yield directory
        return
    for entry in entries:
        if entry.name.startswith("rlcourse"):
            yield entry.path
        elif depth > 1:
            yield from _copies(entry.path, depth - 1)
