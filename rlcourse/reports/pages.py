"""What the pages share: a template engine that escapes all text, and how numbers are written."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rlcourse.evaluation.answers import with_answer_marked


def render(template: str, **values) -> str:
    """The page that the template makes from the values."""
    return environment().get_template(template).render(**values)


@cache
def environment() -> Environment:
    """The engine with the filters that the templates use."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {
        "percent": lambda share: f"{100 * share:.1f}",
        "duration": duration,
        "thousands": lambda number: f"{number:,.0f}",
        "answered": lambda c: with_answer_marked(c.text, c.given),
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
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
