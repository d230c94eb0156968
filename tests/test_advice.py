"""No message advises an option that does not exist, or not for the command that it names."""

import ast
import re
from pathlib import Path

import pytest
import typer

from rlcourse import cli

PACKAGE = Path(cli.__file__).parent
COMMANDS = typer.main.get_command(cli.app).commands
OPTIONS = {name: {o for p in c.params for o in p.opts} for name, c in COMMANDS.items()}
OPTION = re.compile(r"(?<![\w(-])--[a-z][a-z-]+")  # and no variable of a style sheet
COMMAND = re.compile(r"`?rlcourse ([a-z][a-z-]+)([^`;.:]*)")
FOREIGN = re.compile(r"\b(pip|uv|jupyter|nbgrader|git|conda|torchrun|accelerate|pytest|docker)\b")
# Packages whose messages only their own commands print
CLOSED = {"grading", "authoring", "teaching", "courses", "student"}
# Modules whose messages every command prints
EVERYBODYS = ("files.py", "signals.py", "errors.py", "machine.py")
SCRIPTS = ("build_tiny.py",)  # with options of their own


def texts_of(path: Path) -> list[str]:
    """The texts in a module's code but its docstrings, "{}" where something is filled in."""
    found = []
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if hasattr(node, "body") and isinstance(node.body, list) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
              for part in ast.walk(node) if part is not node}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
            found.append("".join(parts))
        elif isinstance(node, ast.Constant) and id(node) not in docstrings | inside:
            found.append(str(node.value))
    return [text for text in found if " " in text]  # a word alone is no sentence


def commands_of(path: Path) -> set[str]:
    """The commands that may print what a module says: those of its package, or all of them."""
    package = path.relative_to(PACKAGE).parts[0]
    its_own = {
        name
        for name, command in COMMANDS.items()
        if f"{command.callback.__module__}.".startswith(f"rlcourse.{package}.")
    }
    return its_own if package in CLOSED else set(COMMANDS)


def unknown_options(text: str, commands: set[str]) -> list[str]:
    """Options in a message that none of the commands has, or not the one that the message names."""
    if FOREIGN.search(text):
        return []
    wrong = []
    for name, rest in COMMAND.findall(text):
        if name in OPTIONS:
            wrong += [f"{name} {o}" for o in OPTION.findall(rest) if o not in OPTIONS[name]]
    known = set().union({"--help", "--version"}, *(OPTIONS[name] for name in commands))
    others = OPTION.findall(COMMAND.sub("", text))
    return wrong + [option for option in others if option not in known]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.stem)
def test_every_option_that_a_message_advises_exists(path):
    if path.name not in SCRIPTS:
        commands = commands_of(path)
        wrong = [option for text in texts_of(path) for option in unknown_options(text, commands)]
        assert not wrong


@pytest.mark.parametrize("name", EVERYBODYS)
def test_what_runs_under_every_command_advises_no_option(name):
    assert not [text for text in texts_of(PACKAGE / name) if OPTION.search(text)]


def test_wrong_advice_is_seen():
    assert unknown_options("run `rlcourse grade 02 --resume`", set(COMMANDS)) == ["grade --resume"]
    assert unknown_options("run the same command with --resume", {"grade"}) == ["--resume"]
    assert not unknown_options("run the same command with --resume", {"train"})
