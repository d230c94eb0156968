"""What a student has done, over all lessons: one small file per exercise."""

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

from rlcourse import exercises
from rlcourse.checks.result import Result, counted

DRIVE = Path("/content/drive/MyDrive")  # Google Drive on Colab, where it was mounted
KAGGLE = Path("/kaggle/working")  # what Kaggle can keep


def home() -> Path:
    """``$RLCOURSE_HOME``, by default ``~/.rlcourse``; on Colab and Kaggle a place that lasts."""
    if chosen := os.environ.get("RLCOURSE_HOME"):
        return Path(chosen)
    if _on_colab() and DRIVE.is_dir():
        return DRIVE / "rlcourse"
    if _on_kaggle():
        return KAGGLE / ".rlcourse"
    return Path.home() / ".rlcourse"


def _on_colab() -> bool:
    return "COLAB_RELEASE_TAG" in os.environ or "COLAB_GPU" in os.environ


def _on_kaggle() -> bool:
    return "KAGGLE_KERNEL_RUN_TYPE" in os.environ and KAGGLE.is_dir()


def not_kept() -> str:
    """Why this record may not be there tomorrow, and what helps; "" on a machine of one's own."""
    if os.environ.get("RLCOURSE_HOME"):
        return ""
    if _on_colab() and not DRIVE.is_dir():
        return (
            "Colab deletes this record with its machine. To keep it, mount your Drive in a cell "
            "above all others: `from google.colab import drive; drive.mount('/content/drive')`."
        )
    if _on_kaggle():
        return "Kaggle keeps this record if the notebook's *Persistence* option includes files."
    return ""


def save(result: Result) -> None:
    """Remember the best score and count the attempt. A full or read-only disk is no error."""
    before = load(result.exercise)
    entry = {
        "score": max(result.score, before["score"]),
        "passed": result.passed or before["passed"],
        "attempts": before["attempts"] + (not result.unwritten),
    }
    with contextlib.suppress(OSError):
        _write(_path(result.exercise), json.dumps(entry))


def load(exercise: str) -> dict:
    """The entry of an exercise; an unreadable one counts as none."""
    try:
        entry = json.loads(_path(exercise).read_text("utf-8"))
        return {
            "score": float(entry["score"]),
            "passed": bool(entry["passed"]),
            "attempts": int(entry["attempts"]),
        }
    except (OSError, ValueError, TypeError, KeyError):
        return {"score": 0.0, "passed": False, "attempts": 0}


def _path(exercise: str) -> Path:
    return home() / "progress" / f"{exercise}.json"


def _write(path: Path, text: str) -> None:
    """All or nothing: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


@dataclass(frozen=True)
class Progress:
    """The panel of ``progress()``: (lesson, [(exercise, entry, points)])."""

    lessons: tuple[tuple[str, tuple[tuple[str, dict, float], ...]], ...]

    @property
    def done(self) -> int:
        return sum(entry["passed"] for _, rows in self.lessons for _, entry, _ in rows)

    @property
    def total(self) -> int:
        return sum(len(rows) for _, rows in self.lessons)

    def __repr__(self) -> str:
        lines = [f"{self.done} of {self.total} exercises pass"]
        for lesson, rows in self.lessons:
            passed = sum(entry["passed"] for _, entry, _ in rows)
            lines.append(f"{_title(lesson)}   {passed} of {len(rows)}")
            lines += [
                f"  {_sign(entry)} {name}  {_words(entry, points)}" for name, entry, points in rows
            ]
        lines += filter(None, [not_kept()])
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from rlcourse.checks.html import GREEN, GREY, box, prose

        parts = [f"<strong>{self.done} of {self.total} exercises pass</strong>"]
        for lesson, rows in self.lessons:
            chips = "".join(
                f'<span title="{escape(_words(entry, points))}" '
                f'style="display: inline-block; margin-right: 1.2em; white-space: nowrap">'
                f'<span style="color: {_color(entry)}">'
                f"{_sign(entry)}</span> <code>{escape(name)}</code></span>"
                for name, entry, points in rows
            )
            parts.append(
                f'<div style="margin-top: .4em">{escape(_title(lesson))}</div><div>{chips}</div>'
            )
        if note := not_kept():
            parts.append(f'<div style="margin-top: .4em">{prose(note)}</div>')
        return box("".join(parts), GREEN if self.done == self.total else GREY)


def progress() -> Progress:
    """What passes and what does not, over all lessons."""
    lessons = groupby(exercises.all(), key=lambda exercise: exercise.lesson)
    return Progress(
        tuple(
            (lesson, tuple((e.name, load(e.name), float(e.points)) for e in exercises))
            for lesson, exercises in lessons
        )
    )


def _title(lesson: str) -> str:
    number, _, topic = lesson.partition("_")
    return f"Lesson {number} · {topic.replace('_', ' ')}"


def _color(entry: dict) -> str:
    from rlcourse.checks.html import GREEN, RED

    return GREEN if entry["passed"] else RED if entry["attempts"] else "inherit"


def _sign(entry: dict) -> str:
    return "✓" if entry["passed"] else "·" if not entry["attempts"] else "✗"


def _words(entry: dict, points: float) -> str:
    if entry["passed"]:
        return f"passes, {counted(points, 'point')}"
    if entry["attempts"]:
        earned = f"{entry['score'] * points:.2g} of {counted(points, 'point')}"
        return f"{counted(entry['attempts'], 'attempt')}, {earned}"
    return f"not begun, {counted(points, 'point')}"
