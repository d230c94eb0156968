"""What the pages share: a template engine that escapes all text, how numbers and settings are
written, and files that are replaced only if one of our commands has made them.
"""

import re
from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained, write_text
from rlcourse.words import amount

OURS = '<meta name="generator" content="rlcourse report">'
HERE = Path(__file__).parent
CODE = re.compile(r"`([^`]+)`")


def render(template: str | Path, **values) -> str:
    """The page that the template makes from the values, with today's date: one of ours, or the path
    of another one, which may extend ours."""
    path = HERE / template
    now = datetime.now().strftime("%Y-%m-%d %H:%M")
    return _environment(path.parent).get_template(path.name).render(date=now, **values)


@cache
def _environment(folder: Path) -> Environment:
    """The engine with the filters that the templates use."""
    made = Environment(
        loader=FileSystemLoader([folder, HERE]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {
        "percent": lambda share: f"{100 * share:.1f}",
        "duration": duration,
        "thousands": lambda number: f"{number:,.0f}",
        "amount": amount,
        "code": lambda sentence: Markup(CODE.sub(r"<code>\1</code>", str(escape(sentence)))),
    }
    return made


def duration(seconds: float) -> str:
    """12.3 s, 4 min 05 s, 3 h 20 min."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def flat(settings: dict) -> dict[str, object]:
    """Settings, with nested ones spelled out: ``{"rewards.format": 0.2}``."""
    values: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            values |= {f"{name}.{inner}": one for inner, one in value.items()}
        else:
            values[name] = value
    return values


def written(value: object) -> str:
    """A setting's value as a recipe would write it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_page(path: Path, page: str, replace: bool = False, mode: int = 0o666) -> None:
    """Write a page that carries our mark; `replace` puts it in the place of any other file, too.

    `mode` is that of the file, less what the umask takes.

    Raises:
        UserError: `path` is no .html, or a file that rlcourse did not write.
    """
    if path.suffix != ".html":
        raise UserError(f"the page cannot be named {path}: choose an --out that ends in .html")
    if path.exists() and not replace and not is_ours(path):
        raise UserError(f"{path} exists and was not made by rlcourse: choose another --out")
    with write_errors_explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page, mode)


def is_ours(path: Path) -> bool:
    """Whether a file is a page that one of our commands has made."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return OURS in file.read(2000)
    except OSError:
        return False
