"""How the commands of ``rlcourse`` are listed, and how a Ctrl-C ends one."""

from itertools import groupby

from typer.core import TyperGroup

from rlcourse.errors import UserError


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
