"""``make publish-as ADDRESS=…``: writes the address of the repository wherever it is needed."""

import re
import sys
from pathlib import Path

from rlcourse import published
from rlcourse.authoring.builder import build
from rlcourse.courses.finding import clone_root
from rlcourse.errors import UserError
from rlcourse.files import write_text

ADDRESS = re.compile(r"https://github\.com/[\w-]+/[\w.-]+")


def publish_as(address: str, root: Path | None = None, **options) -> list:
    """Build all notebooks for `address`, then keep it in rlcourse/published.py and CITATION.cff.

    No lesson is executed: solutions keep their outputs. ``root`` and ``options`` are ``build``'s.

    Raises:
        UserError: it is not the address of a repository on GitHub, or the notebooks cannot be
            built; the address is then not stored anywhere.
    """
    address = address.rstrip("/").removesuffix(".git")
    if not ADDRESS.fullmatch(address):
        raise UserError(f"{address!r} is not a repository: write https://github.com/OWNER/NAME")
    root = root or clone_root()
    if root is None:
        raise UserError("only a clone of the course can be published: run this in one")
    before, published.REPOSITORY = published.REPOSITORY, address
    try:
        built = build(root=root, **options)
        _set_line(root / "rlcourse" / "published.py", "REPOSITORY = ", f'"{address}"')
        _set_line(root / "CITATION.cff", "repository-code: ", f'"{address}"')
    except BaseException:
        published.REPOSITORY = before
        raise
    return built


def _set_line(path: Path, start: str, value: str) -> None:
    """Write `value` after `start` in the line that begins so; add the line if there is none.

    What follows the value, such as a comment, stays.
    """
    text = path.read_text("utf-8")
    line = re.compile(rf'^({re.escape(start)})"[^"\n]*"', re.MULTILINE)
    if line.search(text):
        text = line.sub(lambda found: found[1] + value, text, count=1)
    else:
        text = f"{text.rstrip()}\n{start}{value}\n"
    write_text(path, text)


if __name__ == "__main__":
    try:
        for built in publish_as(sys.argv[1]):
            print(built)
    except UserError as error:
        sys.exit(f"publish-as: {error}")
