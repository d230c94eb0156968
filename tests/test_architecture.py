"""The shape of the repository: who imports whom, how long files are, what must not be in them."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rlcourse"

# What each part may import of ours, besides itself. Arrows run one way; the command line may use
# everything, and nothing may use it.
COMMAND_LINE = {"cli", "demo", "doctor", "__main__"}
UTILITIES = {"bars", "errors", "files", "installed", "machine", "seeds", "signals", "words"}
BELOW = {
    "bars": set(),
    "errors": set(),
    "files": {"errors"},
    "installed": {"errors", "published"},
    "intervals": {"algorithms"},
    "machine": set(),
    "moments": set(),
    "on_first_use": set(),
    "seeds": set(),
    "signals": {"errors"},
    "pictures": set(),
    "published": set(),
    "words": set(),
    "plots": {"pictures"},
    "algorithms": set(),
    "hub": {"errors"},
    "tasks": {"errors", "hub", "algorithms"},
    "policy": {"errors", "hub", "installed", "algorithms"},
    "evaluation": {*UTILITIES, "algorithms", "intervals", "tasks", "policy"},
    "reports": {*UTILITIES, "algorithms", "evaluation", "pictures"},
    "training": {*UTILITIES, "algorithms", "tasks", "policy", "evaluation", "reports"},
    "trl_engine": {
        *UTILITIES,
        *("algorithms", "tasks", "policy", "evaluation", "reports", "training"),
    },
    "planning": {*UTILITIES, "algorithms", "tasks", "policy", "evaluation", "training"},
    "checks": {"errors", "intervals", "policy", "plots", "words"},
    "courses": {"errors", "moments", "checks"},
    "exercises": {"errors", "checks", "courses"},
    "student": {"errors", "files", "checks", "courses", "exercises", "words"},
    "lab": {"errors", "files", "installed", "courses", "words"},
    "authoring": {
        *("errors", "checks", "courses", "exercises", "lab"),
        *("bars", "files", "installed", "published", "words"),
    },
    "grading": {
        *("errors", "files", "installed", "algorithms", "tasks", "policy", "checks", "courses"),
        *("exercises", "authoring", "moments", "published", "evaluation", "reports"),
        "words",
    },
    "teaching": {*("errors", "files", "installed", "checks", "courses", "exercises", "authoring")},
}
# The same inside of grading. Above its rooms are the engine, the commands and what nbgrader starts.
GRADING_TOP = {"__init__", "commands", "engine", "nbgrader_plugin", "pages.showing"}
GRADING_BELOW = {
    "names": set(),
    "rejected": {"names"},
    "table": {"names"},
    "class_page": set(),
    **{room: set() for room in ("locking", "confinement")},
    "running": {"confinement", "rejected"},
    "untrusted": {"confinement", "running"},
    "pages": {"confinement"},
    "handing_in": {"names", "rejected", "pages", "running"},
    "judging": {"names", "rejected", "pages", "running", "confinement", "handing_in"},
    "report": {"names", "judging"},
    "books": {"names", "rejected", "locking", "handing_in", "judging"},
    "platforms": {"names", "rejected", "table", "handing_in", "books"},
    "gradescope": {
        *("names", "rejected", "locking", "confinement", "running", "handing_in", "judging"),
        "books",
    },
    "ranking": {"books", "judging", "class_page"},
    "insight": {"handing_in", "judging", "books", "report", "class_page"},
}
# Run once by hand to make what is shipped; it trains, so it may look up. Nothing may import it.
SCRIPTS = {"rlcourse.policy.build_tiny"}


def part_of(path: Path) -> str:
    """ "tasks" for rlcourse/tasks/rewards.py, "errors" for rlcourse/errors.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imported_modules(path: Path, top_level_only: bool = False) -> set[str]:
    """Full names of everything a file imports, also inside functions; relative ones resolved."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = [*path.relative_to(ROOT).parent.parts]
    names = set()
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def ours(names: set[str]) -> set[str]:
    """The parts of rlcourse among imported names."""
    parts = {path.stem for path in PACKAGE.iterdir()}
    found = {name.split(".")[1] for name in names if name.startswith("rlcourse.")}
    return found & parts


@cache
def tracked_files() -> list[Path]:
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a git checkout: it reads the list of tracked files")
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


# imports


def test_every_part_of_the_package_has_its_place():
    found = {part_of(path) for path in sources()} - COMMAND_LINE - {"__init__"}
    assert found <= set(BELOW), f"say in design and here what {found - set(BELOW)} may import"


@pytest.mark.parametrize("table", [BELOW, GRADING_BELOW])
def test_the_arrows_have_no_cycle(table):
    def everything_below(part):
        return {part}.union(*(everything_below(b) for b in table[part]))

    for part, below in table.items():
        for lower in below:
            assert part not in everything_below(lower)


def test_arrows_in_grading_run_one_way():
    for path in (PACKAGE / "grading").rglob("*.py"):
        name = module_of(path).removeprefix("rlcourse.grading.")
        parts = [n.split(".") for n in imported_modules(path)]
        used = {part[2] for part in parts if part[1:2] == ["grading"] and part[2:]}
        room = name.split(".")[0]
        if name not in GRADING_TOP:
            wrong = used - GRADING_BELOW[room] - {room}
            assert not wrong, f"{path.relative_to(ROOT)} must not import {sorted(wrong)}"


def runtime_imports(tree: ast.AST) -> list[ast.stmt]:
    """Import statements, also inside functions, without those that only type checkers follow."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        found += [node] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        found += runtime_imports(node)
    return found


def import_graph() -> dict[str, set[str]]:
    """Which module of rlcourse imports which."""
    modules = {module_of(path).removesuffix(".__init__"): path for path in sources()}
    graph = {}
    for module, path in modules.items():
        names = set()
        for node in runtime_imports(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            else:
                package = path.relative_to(ROOT).parent.parts
                base = package[: len(package) - node.level + 1] if node.level else ()
                source = ".".join([*base, *filter(None, [node.module])])
                inside = {f"{source}.{alias.name}" for alias in node.names}
                names |= (inside & set(modules)) or {source}
        graph[module] = names & set(modules) - {module}
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or around a corner."""
    reached = {}
    for start in graph:
        found, new = set(), set(graph[start])
        while new:
            found |= new
            new = set().union(*(graph[module] for module in new)) - found
        reached[start] = found
    groups = {
        tuple(sorted(b for b in reached[a] if a in reached[b])) for a in graph if a in reached[a]
    }
    return [list(group) for group in sorted(groups)]


def test_no_modules_import_each_other():
    """Not even inside of functions, where Python lets them: each can be read before the other."""
    assert not circles(import_graph())


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"f"}, "f": {"e"}}
    assert circles(graph) == [["b", "c"], ["e", "f"]]


@pytest.mark.parametrize("part", BELOW)
def test_arrows_run_one_way(part):
    for path in sources():
        if part_of(path) == part and module_of(path) not in SCRIPTS:
            wrong = ours(imported_modules(path)) - BELOW[part] - {part, "on_first_use"}
            assert not wrong, f"{path.relative_to(ROOT)} must not import {sorted(wrong)}"


def test_nothing_imports_the_build_scripts():
    for path in sources():
        assert not imported_modules(path) & SCRIPTS, path


def test_the_package_itself_imports_nothing_until_asked():
    assert not ours(imported_modules(PACKAGE / "__init__.py", top_level_only=True))


def test_the_command_line_itself_imports_nothing_that_takes_long():
    code = "import sys, rlcourse.cli; print({'torch', 'numpy', 'pydantic'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT).split() == [b"set()"]


@pytest.mark.slow
@pytest.mark.parametrize("module", ["rlcourse.exercises", "rlcourse.grading.books.gradebook"])
def test_checks_and_gradebooks_do_without_models(module):
    """Importing transformers takes seconds: of a notebook's first cell, and of every command."""
    code = f"import sys, {module}; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_algorithms_need_only_torch_and_the_standard_library():
    allowed = sys.stdlib_module_names | {"torch", "rlcourse"}
    for path in (PACKAGE / "algorithms").glob("*.py"):
        foreign = {name.split(".")[0] for name in imported_modules(path)} - allowed
        assert not foreign, f"{path.name} imports {sorted(foreign)}"


def test_lessons_use_only_earlier_lessons():
    from rlcourse import exercises

    homes = dict.fromkeys(
        e.reference.__module__.rpartition(".") for e in exercises.all(contests=True)
    )
    taught = [module for package, _, module in homes if package == "rlcourse.algorithms"]
    for path in (PACKAGE / "algorithms").glob("*.py"):
        if path.stem == "__init__":
            continue
        assert path.stem in taught, f"no lesson teaches {path.name}"
        earlier = taught[: taught.index(path.stem)]
        for name in imported_modules(path):
            if name.startswith("rlcourse.algorithms."):
                assert name.split(".")[2] in earlier, f"{path.name} imports {name}"


def algorithms_compared(tree: ast.AST) -> list[int]:
    """Lines that compare ``….algorithm`` with anything, or anything with an algorithm's name."""
    from rlcourse.training.recipes.methods import METHODS

    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            sides += [part for side in sides for part in getattr(side, "elts", [])]
            names = {side.value for side in sides if isinstance(side, ast.Constant)}
            asked = any(isinstance(s, ast.Attribute) and s.attr == "algorithm" for s in sides)
            if asked or names & set(METHODS):
                found.append(node.lineno)
    return found


def test_only_the_table_of_methods_tells_algorithms_apart():
    """A comparison elsewhere is a fact that a new method would lack: put it into METHODS."""
    for path in sources():
        assert not algorithms_compared(ast.parse(path.read_text("utf-8"))), path


@pytest.mark.parametrize(
    "code",
    ["recipe.algorithm == 'x'", "'dpo' != name", "name in ('a', 'sft')", "r.algorithm not in OURS"],
)
def test_comparisons_of_algorithms_are_seen(code):
    assert algorithms_compared(ast.parse(code)) == [1]


@pytest.mark.parametrize("name", ["plots.py", "pictures.py"])
def test_plots_need_only_matplotlib_what_it_brings_and_torch(name):
    allowed = sys.stdlib_module_names | {"torch", "matplotlib", "numpy", "PIL", "rlcourse"}
    found = {name.split(".")[0] for name in imported_modules(PACKAGE / name)}
    assert not found - allowed - {"matplotlib_inline"}  # IPython's, which only a notebook asks for


def test_import_checker_sees_every_form(tmp_path, monkeypatch):
    """The checks above rest on this reading of the syntax tree."""
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    module = tmp_path / "rlcourse" / "tasks" / "x.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "import rlcourse.cli\n"
        "from rlcourse import plots\n"
        "from rlcourse.training.loop import train\n"
        "from . import rewards\n"
        "from ..policy import toy\n"
        "def f():\n    import rlcourse.exercises as e\n"
    )
    assert {"rlcourse.cli", "rlcourse.plots", "rlcourse.training.loop", "rlcourse.tasks.rewards",
            "rlcourse.policy.toy", "rlcourse.exercises"} <= imported_modules(module)  # fmt: skip


# names


def test_the_library_knows_no_lesson_by_its_name():
    from rlcourse.courses import shipped

    names = {lesson.name for lesson in shipped().lessons}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            known = isinstance(node, ast.Constant) and node.value in names
            assert not known, f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"


def test_the_checks_know_no_exercise_and_what_runs_beside_student_code_no_right_answer():
    for path in (PACKAGE / "checks").rglob("*.py"):
        names = imported_modules(path)
        rooms = {name.split(".")[2] for name in names if name.startswith("rlcourse.checks.")}
        assert "exercises" not in ours(names), path
        assert path.parent.name != "asking" or rooms <= {"asking"}, path


FORMER = re.compile(
    r"\b(sequence_level_loss|scalar_model|enable_recomputing|cut_off|by_first|recipe\.updates"
    r"|recipe\.prompts|quiet_exercises|quiet_training|COMPARE_GROUPS|COMPARE_PAIRS)\b"
)


def test_former_names_do_not_come_back():
    for path in sources():
        found = FORMER.search(path.read_text("utf-8"))
        assert not found, f"{path.relative_to(ROOT)}: {found.group()}"


def test_python_files_are_under_four_hundred_lines():
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked_files()
        if path.suffix == ".py" and (lines := path.read_text("utf-8").count("\n")) >= 400
    }
    assert not long


# spelled so that this file does not hold what it forbids
FORBIDDEN = {
    "a package index": re.compile(r"--(extra-)?index-url|pythonhosted\.org|/simple/\s*$", re.M),
    "a local path": re.compile(r"(?<![\w.])/(work|home/\w+|Users/\w+|root)/[\w.]"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_tracked_files_name_no(what):
    found = []
    for path in tracked_files():
        if path == Path(__file__):
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue  # weights, pictures
        hit = FORBIDDEN[what].search(text)
        if hit:
            found.append(f"{path.relative_to(ROOT)}: {hit.group()!r}")
    assert not found


def test_test_files_have_unique_names():
    """Without packages among the tests, two files of one name cannot be collected together."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert len(names) == len(set(names)), sorted({n for n in names if names.count(n) > 1})
