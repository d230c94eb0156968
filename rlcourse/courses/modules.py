"""Python files of lessons. Their folders' names begin with digits, so `import` does not find them.

grpo_loss.py takes what it shares with another lesson's file by

    clipped_losses = beside(__file__, "../05_ppo/clipped_losses.py")
"""

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from rlcourse.errors import UserError, first_line


def beside(file: str, path: str) -> ModuleType:
    """The module at `path`, seen from the folder of `file`."""
    return load_module(Path(file).parent / path)


def load_module(path: Path) -> ModuleType:
    """A Python file of a lesson's folder, imported once.

    Its name is that of the folders above it, as in ``course.lessons.06_grpo.grpo_loss``.

    Raises:
        UserError: there is no such file, or running it fails; with the line.
    """
    path = path.resolve()
    name = ".".join(path.with_suffix("").parts[-4:])
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path):
        return known
    if not path.is_file():
        raise UserError(f"there is no {path}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, UserError) or not isinstance(error, Exception):
            raise
        raise explained(error, path) from error
    return module


def explained(error: Exception, path: Path) -> UserError:
    """An error that arose in a module, as one sentence with the line of that file."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        line = error.lineno or 1
    else:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((f.lineno or 1 for f in reversed(frames) if f.filename == str(path)), 1)
    return UserError(f"{path}:{line}: {type(error).__name__}: {first_line(error)}.")
