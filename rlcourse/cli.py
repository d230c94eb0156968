"""The command line of the course: every package's commands, which ``rlcourse --help`` lists.

Exit codes: 0 done; 1 a failure that the user can fix, one sentence on stderr; 2 wrong usage;
130 interrupted, keeping the work done so far (0 if a scheduler's SIGTERM interrupted it). Heavy
modules are imported by the command that needs them.
"""

import errno
import sys
from itertools import groupby
from typing import Annotated

import typer
from typer.core import TyperGroup

import rlcourse
from rlcourse.authoring.commands import build, check, prove
from rlcourse.courses.commands import new_course
from rlcourse.demo import demo
from rlcourse.doctor import doctor
from rlcourse.errors import UserError, first_line
from rlcourse.evaluation.commands import compare, evaluate
from rlcourse.grading.commands import collect, extend, grade, grades, roster
from rlcourse.grading.gradescope.commands import gradescope
from rlcourse.grading.insight.commands import insight
from rlcourse.grading.ranking.commands import leaderboard
from rlcourse.lab.commands import lab
from rlcourse.planning.commands import gpu_check, plan
from rlcourse.policy.commands import model
from rlcourse.student.commands import progress
from rlcourse.teaching.commands import teaching
from rlcourse.training.commands import report
from rlcourse.trl_engine.commands import train

GROUPS = {
    "For students": (lab, check, progress, doctor, demo),
    "For instructors (grading)": (
        *(roster, collect, extend, grade, insight, grades, gradescope),
        *(leaderboard, teaching),
    ),
    "For training and measuring models": (
        *(model, train, plan, gpu_check),
        *(report, evaluate, compare),
    ),
    "For authors and contributors": (new_course, build, prove),
}


MAKE_SPACE = "free some space, then run the same command again"
ALLOW = "change its permissions, or name another directory"
TO_FIX = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), MAKE_SPACE),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), ALLOW),
}


class Stopped(UserError):
    """A Ctrl-C that no code below has turned into an orderly end, such as the second of two."""

    exit_code = 130


class Commands(TyperGroup):
    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Stopped(
                "interrupted immediately; everything written before that is kept"
            ) from None
        except OSError as error:  # wherever it happens: a read-only course, a full TMPDIR
            if error.errno not in TO_FIX:
                raise
            place = f"{error.filename}: " if error.filename else ""
            raise UserError(f"{place}{error.strerror}; {TO_FIX[error.errno]}") from error
        except RuntimeError as error:
            if not str(error).startswith("CUDA"):
                raise
            raise UserError(f"the GPU fails: {first_line(error)}") from error

    def get_command(self, ctx, cmd_name):
        """The command, with a short description that is not cut to the width of a line."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and command.help:
            command.short_help = command.help.partition("\n\n")[0]
        return command

    def format_commands(self, ctx, formatter):
        """One section for each group; Typer itself does so only with rich."""
        listed = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        for group, commands in groupby(listed, lambda item: item[1].rich_help_panel):
            with formatter.section(group or "Commands"):
                formatter.write_dl([(name, command.short_help) for name, command in commands])


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for group, commands in GROUPS.items():
    for command in commands:
        app.command(rich_help_panel=group)(command)


def _say_version(asked: bool) -> None:
    if asked:
        print(f"rlcourse {rlcourse.__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Reinforcement learning for language models: the functions you write train the model."""


def main() -> None:
    """The entry point: a failure the user can fix is one sentence, never a traceback."""
    try:
        app()
    except UserError as error:
        print(f"rlcourse: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
