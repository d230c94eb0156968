"""The directory of an evaluation, which can be killed at any moment and resumed.

``settings.json`` (what the numbers depend on), ``completions.jsonl`` (a problem a line, everything
that was said and read), and at the end ``table.txt`` and ``result.json``, whose presence says:
finished.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

import yaml

from rlcourse.errors import UserError
from rlcourse.evaluation.scores import Evaluation, Transcript
from rlcourse.evaluation.tables import evaluation_table
from rlcourse.files import TEMPORARY, hold, write_errors_explained, write_json, write_text
from rlcourse.machine import hardware, versions
from rlcourse.tasks import Problem

NOT_MEASURED = ("settings", "versions", "hardware")  # in result.json besides the evaluation


class Records:
    """What an evaluation has found so far; this class keeps it in memory only."""

    lasting = False
    kept_in = "memory"

    def __init__(self):
        self.transcripts: list[Transcript] = []
        self.seconds = 0.0
        self.at_once: int | None = None  # completions sampled at once in the last batch

    def append(self, transcripts: Sequence[Transcript], at_once: int, seconds: float) -> None:
        """Keep a finished batch."""
        self.transcripts += transcripts
        self.seconds += seconds
        self.at_once = at_once

    def finish(self, evaluation: Evaluation, device) -> None:
        """Keep the result."""

    def close(self) -> None:
        """Nothing more will come."""


class EvaluationDirectory(Records):
    """Records that a directory keeps: a new one, or one to `resume`, with the same settings."""

    lasting = True

    def __init__(self, path: str | Path, settings: dict, resume: bool):
        super().__init__()
        self.path = Path(path).expanduser()
        self.kept_in = str(self.path)
        self.settings = json.loads(json.dumps(settings))  # as it will be read back
        self.completions = self.path / "completions.jsonl"
        if (self.path / "settings.json").exists():
            self._check_may_resume(resume)
            self.lock = hold(self.path)
            try:
                self._read_whole_batches()
            except UserError:
                self.close()
                raise
        else:
            self._create()
            self.lock = hold(self.path)

    def _check_may_resume(self, resume: bool) -> None:
        if not resume:
            state = "finished" if (self.path / "result.json").exists() else "started"
            raise UserError(
                f"{self.path} already holds a {state} evaluation: add --resume to continue it, "
                "or choose another --out"
            )
        earlier = read_settings(self.path)
        for key in {**self.settings, **earlier}:
            if earlier.get(key) != self.settings.get(key):
                raise UserError(
                    f"{self.path} was started with {key}={earlier.get(key)!r}, not "
                    f"{self.settings.get(key)!r}: resume it with the same settings, or choose "
                    "another --out"
                )

    def _create(self) -> None:
        if self.path.is_file():
            raise UserError(f"{self.path} is a file: --out names a directory")
        with write_errors_explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            if any(not entry.name.startswith(TEMPORARY) for entry in self.path.iterdir()):
                raise UserError(
                    f"{self.path} is not empty and holds no evaluation: choose another --out"
                )

    def _read_whole_batches(self) -> None:
        """Read what a kill left; an incomplete batch, with its cut lines, is removed from the file.

        The samples of a problem depend on its batch, so half a batch cannot be continued.
        """
        if not self.completions.exists():
            return
        rows: list[dict] = []
        ends: list[int] = []
        place = 0
        for line in self.completions.read_bytes().splitlines(keepends=True):
            place += len(line)
            if not line.endswith(b"\n"):
                break
            rows.append(_row(line, self.completions, len(rows)))
            ends.append(place)
        while rows and len(rows) < rows[-1]["batch"][1]:
            rows.pop()
        with write_errors_explained(self.completions):
            os.truncate(self.completions, ends[len(rows) - 1] if rows else 0)
        self.transcripts = [_transcript(row) for row in rows]
        self.seconds = sum(row["seconds"] for row in rows)
        self.at_once = rows[-1]["at_once"] if rows else None

    def append(self, transcripts: Sequence[Transcript], at_once: int, seconds: float) -> None:
        """Keep a finished batch, a problem a line."""
        start = len(self.transcripts)
        common = {"batch": [start, start + len(transcripts)], "at_once": at_once}
        common["seconds"] = seconds / len(transcripts)
        lines = [
            json.dumps({"problem": i} | common | asdict(transcript), ensure_ascii=False)
            for i, transcript in enumerate(transcripts, start)
        ]
        # Half a surrogate pair, which UTF-8 cannot hold, becomes \\udc00, which JSON reads back.
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        if (
            start == 0
        ):  # an evaluation that failed immediately may be tried again with other settings
            write_json(self.path / "settings.json", self.settings)
        with write_errors_explained(self.completions), self.completions.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        super().append(transcripts, at_once, seconds)

    def finish(self, evaluation: Evaluation, device) -> None:
        """Write the table and, last of all, ``result.json``."""
        facts = {"settings": self.settings, "versions": versions(), "hardware": hardware(device)}
        write_text(self.path / "table.txt", f"{evaluation_table(evaluation)}\n")
        write_json(self.path / "result.json", evaluation.to_dict(transcripts=False) | facts)

    def close(self) -> None:
        """Let others use the directory."""
        self.lock.release()


def read_evaluation(path: str | Path) -> Evaluation:
    """A finished evaluation, with its transcripts, from where it was kept.

    `path` is an evaluation's directory, the directory of a training run, whose evaluation after
    training is meant, or the JSON file of an evaluation, such as a run's
    ``evaluation_before.json``.

    Raises:
        UserError: there is none, it is not finished, or it cannot be read.
    """
    path = Path(path).expanduser()
    if (path / "settings.json").exists() and not (path / "result.json").exists():
        raise UserError(f"the evaluation in {path} is not finished: run it again with --resume")
    file: Path | None = path
    if path.is_dir():
        names = ("completions.jsonl", "evaluation_after.json")
        file = next((path / name for name in names if (path / name).exists()), None)
    if file is None or not file.exists():
        raise UserError(
            f"{path} holds no evaluation: name a directory that rlcourse evaluate --out wrote, a "
            "finished run's directory, or its evaluation_before.json"
        )
    try:
        if file.name != "completions.jsonl":
            return Evaluation.from_dict(json.loads(file.read_text(encoding="utf-8")))
        result = json.loads((path / "result.json").read_text(encoding="utf-8"))
        measured = {name: value for name, value in result.items() if name not in NOT_MEASURED}
        rows = [json.loads(line) for line in file.read_bytes().splitlines()]
        return replace(Evaluation.from_dict(measured), transcripts=[_transcript(r) for r in rows])
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            f"{file} cannot be read as an evaluation ({error!r}): make it again"
        ) from None


def read_settings(path: str | Path) -> dict:
    """The settings of an evaluation, or of a run by its recipe; {} if there are none."""
    for name, read in (("settings.json", json.loads), ("recipe.yaml", yaml.safe_load)):
        file = Path(path).expanduser() / name
        if file.exists():
            try:
                return dict(read(file.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError, yaml.YAMLError) as error:
                raise UserError(f"{file} cannot be read ({error}): make it again") from None
    return {}


def fingerprint(policy, problems: Sequence[Problem]) -> dict[str, str]:
    """Short names that tell these weights and these problems from others.

    Some numbers of each weight are enough: a step of training changes nearly all of them.
    """
    weights, texts = hashlib.sha256(), hashlib.sha256()
    for name, weight in getattr(policy, "named_parameters", tuple)():
        some = weight.detach().flatten()[:: max(1, weight.numel() // 64)].float().cpu().tolist()
        weights.update(f"{name} {tuple(weight.shape)} {weight.dtype} {some}".encode())
    for problem in problems:
        texts.update(json.dumps([problem.question, problem.answer]).encode())
    asked = f"{len(problems)} ({texts.hexdigest()[:8]})"
    return {"problems": asked, "weights": weights.hexdigest()[:8]}


def _transcript(row: dict) -> Transcript:
    return Transcript.from_dict({field.name: row[field.name] for field in fields(Transcript)})


def _row(line: bytes, file: Path, number: int) -> dict:
    try:
        row = json.loads(line)
        if row["problem"] == number:
            return row
        reason = f"it is problem {row['problem']}"
    except (ValueError, TypeError, KeyError) as error:
        reason = repr(error)
    raise UserError(f"{file}, line {number + 1} has been changed ({reason}): choose another --out")
