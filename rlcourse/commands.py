"""How the commands of ``rlcourse`` are listed and refused, and how a Ctrl-C ends one."""

from itertools import groupby

from typer.core import TyperGroup

from rlcourse import edition
from rlcourse.errors import UserError

# Groups whose commands need every right answer, or are for who has them; but whoever has the
# instructor's public key may verify with it.
OF_THE_WHOLE_COURSE = ("For instructors (grading)", "For authors and contributors")
FOR_EVERYBODY = ("verify",)


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

    def list_commands(self, ctx):
        """The names of all commands; in a students' edition, of those that it runs."""
        return [name for name in super().list_commands(ctx) if not self._refuses(ctx, name)]

    def resolve_command(self, ctx, args):
        """The command that is called, whatever follows it; a students' edition may refuse it."""
        if args and self._refuses(ctx, args[0]):
            edition.refuse_in_edition(f"run `rlcourse {args[0]}`")
        return super().resolve_command(ctx, args)

    def _refuses(self, ctx, name: str) -> bool:
        if not edition.EDITION or name in FOR_EVERYBODY:
            return False
        if name == "demo":  # it trains with right answers, and hands in one with a bug
            return bool(edition.WITHHELD)
        command = self.get_command(ctx, name)
        return command is not None and command.rich_help_panel in OF_THE_WHOLE_COURSE

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
