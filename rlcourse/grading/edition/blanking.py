"""Take the right answers out of a copy of the course's sources.

What stands in the place of a function's body calls the student's own. Functions on which the rest
of the library runs, such as the one that samples tokens, are needed before anybody has written
them: their text goes along packed, which is no secret, only out of the way.
"""

import ast
import base64
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from rlcourse.authoring.stubs import blank_functions, source_of
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.names import free_names

# What a run needs only where its method has the function, or what is read and not run: there, the
# student's own will do.
NOT_RUNNING = (
    *(
        "algorithms/",
        "authoring/",
        "checks/",
        "grading/",
        "student/",
        "pretraining/",
        "trl_engine/",
    ),
    *("training/minimal.py", "training/episodes.py", "training/faults/"),
)
ANSWER = re.compile(
    r"^<!-- #region (?:answer|rubric)=.*?^<!-- #endregion -->\n?", re.MULTILINE | re.DOTALL
)
VALUES = """
# of this edition
EDITION = True
OPEN = {opened!r}
WITHHELD = {withheld!r}
BLANK = {functions!r}
PACKED = {packed!r}
"""


def _calls_own(name: str) -> list[str]:
    return [
        "arguments = dict(locals())",
        "from rlcourse.student.own import written",
        "",
        f'return written("{name}", arguments)',
    ]


def blank(
    tree: Path, opened: Iterable[str], withheld: Iterable[str], exercises: Iterable[Exercise]
) -> list[str]:
    """Replace the bodies of the exercises' functions in the copy; returns which ones are packed."""
    functions = {e.name: e.reference for e in exercises if not e.suspects}
    packed = _needed(tree, functions)
    about = {
        name: (
            functions[name].__module__,
            base64.b64encode(zlib.compress(source_of(functions[name]).encode(), 9)).decode(),
        )
        for name in packed
    }
    by_module: dict[str, set[str]] = defaultdict(set)
    for name, function in functions.items():
        by_module[function.__module__].add(name)
    for module, names in by_module.items():
        path = tree.joinpath(*module.split(".")).with_suffix(".py")
        path.write_text(blank_functions(path.read_text("utf-8"), names, _calls_own), "utf-8")
    values = VALUES.format(
        opened=tuple(opened),
        withheld=tuple(withheld),
        functions=tuple(f"{f.__module__}.{f.__name__}" for f in functions.values()),
        packed=about,
    )
    with (tree / "rlcourse" / "edition.py").open("a", encoding="utf-8") as file:
        file.write(values)
    return packed


def _needed(tree: Path, functions: dict) -> list[str]:
    """The functions that modules of the library import, and those that these call."""
    package = tree / "rlcourse"
    needed = set()
    for path in package.rglob("*.py"):
        place = path.relative_to(package).as_posix()
        if not place.startswith(NOT_RUNNING):
            module = f"rlcourse.{place[:-3].replace('/', '.')}"
            here = {name for name, function in functions.items() if function.__module__ == module}
            needed |= _used(ast.parse(path.read_text("utf-8")), here) & functions.keys()
    while (
        more := {
            other
            for name in needed
            for other in free_names(source_of(functions[name])) & functions.keys()
        }
        - needed
    ):
        needed |= more
    return [name for name in functions if name in needed]


def _used(tree: ast.Module, here: set[str]) -> set[str]:
    """Names that a module imports from the course's algorithms and rewards, and those of its own
    functions, `here`, that others of its functions call."""
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    homes = ("rlcourse.algorithms", "rlcourse.tasks")
    ours = [n for n in imports if (n.module or "").startswith(homes)]
    called: set[str] = set()
    for node in tree.body:
        inside = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        called |= inside & (here - {getattr(node, "name", "")})
    return {alias.name for n in ours for alias in n.names} | called


def without_answers(text: str) -> str:
    """A lesson's text without the model answers of its questions."""
    return ANSWER.sub("", text)


def reachable(text: str, wanted: str) -> str:
    """A module's text without what the function `wanted` does not use."""
    tree = ast.parse(text)
    made = {name: node for node in tree.body for name in _defined(node)}
    open_ends, kept = [wanted], set()
    while open_ends:
        node = made.get(open_ends.pop())
        if node is not None and node not in kept:
            kept.add(node)
            open_ends += sorted(free_names(ast.unparse(node)))
    return "\n".join(ast.unparse(node) for node in tree.body if node in kept) + "\n"


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [
            n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)
        ]
    return []
