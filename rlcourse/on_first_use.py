"""Import a package's names on first use, so that ``rlcourse --help`` need not wait for torch."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of `package`, where `homes` says which module has a name."""

    def attribute(name: str):
        if name in homes:
            return getattr(import_module(homes[name], package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute
