"""How a run directory tells that this engine made it. Read without TRL, and without torch."""

from pathlib import Path

from rlcourse.errors import UserError

ENGINE_FILE = "engine.json"


def require_local(out: Path) -> None:
    """Raise ``UserError`` if `out` holds an unfinished run, which only this engine can resume."""
    if (out / ENGINE_FILE).exists() and not (out / "result.json").exists():
        raise UserError(f"{out} was started with --engine trl: resume it with --engine trl")
