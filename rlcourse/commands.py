"""How the commands of ``rlcourse`` are listed, and how a Ctrl-C ends one."""

from typer.core import TyperGroup

from rlcourse.errors import UserError


class Stopped(UserError):
    """A Ctrl-C that nothing below has turned into an orderly end, such as the second of two."""

    exit_code = 130


class Commands(TyperGroup):
    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Stopped("interrupted at once; what was written before that is kept") from None

    def get_command(self, ctx, cmd_name):
        """The command, with a short description that is not cut to the width of a line."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and command.help:
            command.short_help = command.help.partition("\n\n")[0]
        return command
