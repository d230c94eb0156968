"""Keys that a recipe does not have: another method's, or an older version's."""

from collections.abc import Iterable, Mapping
from typing import Any

from rlcourse.errors import UserError
from rlcourse.training.recipes.values import nearest

# Keys of earlier versions, and what they are called now.
RENAMED = {"prompts": "prompts_per_step", "updates": "num_iterations"}


def refuse_unknown(
    values: Mapping[str, Any], kind: Any, kinds: Mapping[str, Any], where: str = ""
) -> None:
    """Raise ``UserError`` for the first key that `kind`, the class of the recipe's method, has not.

    `kinds` are the classes of all methods, by name; `where` is the file that the keys are in.
    """
    for key in values:
        if key not in kind.settings():
            refuse_misspelled(key, kinds, where)
            owners = [name for name, other in kinds.items() if key in other.settings()]
            place, instead = where and f"{where}: ", _otherwise(key, kind, values)
            raise UserError(
                f"{place}{key} is {_possessive(owners)}; {values['algorithm']} {instead}"
            )


def refuse_misspelled(key: str, kinds: Mapping[str, Any], where: str = "") -> None:
    """Raise ``UserError`` if no method has a setting of this name."""
    known = {name for kind in kinds.values() for name in kind.settings()}
    if key in known:
        return
    if key in RENAMED:
        hint = f": it is called '{RENAMED[key]}' now"
    else:
        hint = nearest(str(key), sorted(known))
    raise UserError(f"{where or 'the recipe'} has no key '{key}'{hint}")


def _otherwise(key: str, kind: Any, values: Mapping[str, Any]) -> str:
    """What the method does in place of a setting that it lacks."""
    said = [c.instead[key] for c in kind.__mro__ if key in getattr(c, "instead", {})]
    own = {name: values.get(name, field.default) for name, field in kind.settings().items()}
    return said[0].format(**own) if said else "has no such setting"


def _possessive(owners: Iterable[str]) -> str:
    *others, last = [f"{name}'s" for name in owners]
    if len(others) > 3:
        return f"{', '.join(others[:3])} and others'"
    return f"{', '.join(others)} and {last}" if others else last
