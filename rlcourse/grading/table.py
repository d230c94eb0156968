"""A CSV file of a learning platform, read as it was exported and written so that nothing runs."""

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained, write_text
from rlcourse.grading.names import cell, one_line

LONGEST_NOTE = 50_000  # characters; it may name a whole class


@dataclass
class Table:
    """A CSV file: its header, its rows, how it was written, and notes about it."""

    header: list[str]
    rows: list[list[str]]
    delimiter: str = ","
    encoding: str = "utf-8"
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Table":
        """The table in a file that a platform wrote, with commas, semicolons or tabs."""
        try:
            content = path.read_bytes()
            text = content.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path} cannot be read as a UTF-8 table: {error}") from None
        first = text.partition("\n")[0]
        delimiter = max(",;\t", key=first.count)
        try:
            lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        except csv.Error as error:
            raise UserError(f"{path} is not a readable table: {error}") from None
        if len(lines) < 2:
            raise UserError(f"{path} has no students: export it again, as CSV")
        width = len(lines[0])
        rows = [row + [""] * (width - len(row)) for row in lines[1:]]
        bom = content.startswith(b"\xef\xbb\xbf")
        return cls(lines[0], rows, delimiter, "utf-8-sig" if bom else "utf-8")

    def column(self, name: str) -> int | None:
        """The index of the column of that name; capitals and surrounding spaces do not count."""
        names = [header.strip().casefold() for header in self.header]
        return names.index(name.casefold()) if name.casefold() in names else None

    def field(self, row: list[str], name: str) -> str:
        """What `row` has in the column of that name, without spaces around it; "" without one."""
        at = self.column(name)
        return "" if at is None else row[at].strip()

    def say(self, note: str) -> None:
        """Add a note, for a terminal, unless it is there."""
        if (line := one_line(note, LONGEST_NOTE)) not in self.notes:
            self.notes.append(line)

    def text(self) -> str:
        """The file's text, quoted where a field needs it; no field is a formula."""
        out = io.StringIO(newline="")
        writer = csv.writer(out, delimiter=self.delimiter, lineterminator="\n")
        writer.writerows([cell(field) for field in row] for row in [self.header, *self.rows])
        return out.getvalue()

    def write(self, path: Path) -> None:
        """Write the table, whole or not at all."""
        with write_errors_explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        mark = "\ufeff" if self.encoding == "utf-8-sig" else ""
        write_text(path, mark + self.text(), 0o600)  # with names and points
