"""How a run directory tells that this engine made it. Read without TRL, and without torch."""

from pathlib import Path

from rlcourse.errors import UserError

ENGINE_FILE = "engine.json"


def require_local(out: Path) -> None:
    """Raise ``UserError`` where `out` holds an unfinished run of this engine: it alone goes on."""
    if (out / ENGINE_FILE).exists() and not (out / "result.json").exists():
        raise UserError(f"{out} was started with --engine trl: resume it with --engine trl")
