"""An exercise's words, as Markdown: ``grpo_loss.md`` next to its ``grpo_loss.py``.

    ---
    section: The loss
    points: 6
    difficulty: 4
    minutes: 25
    function: rlcourse.algorithms.grpo.grpo_loss
    differentiable: logprobs
    ---

    # Hints

    1. A nudge.

    2. The idea.

    3. Nearly the code, which is indented.

    # Mistakes

    ## the averages: over tokens

    **a mean over all real tokens of the batch**, telling 1
    `(per_token * mask).sum(1)` → `masked_mean(per_token, mask)`
    neighbor: `(per_token * mask).sum(1)` → `per_token.sum(1) / mask.sum()`
    paraphrase: `mean_of_selected`
    That is DAPO's average: GRPO takes each completion's mean first.

``function`` is what students write; without it, the module's function of the page's name.
``differentiable`` are the arguments whose gradient is compared, ``constants`` float arguments that
must get none, ``derived`` places of the result, such as "[1]", that are judged after the others.

A mistake belongs under the decision that was taken wrongly. It is one or several edits of the
exercise's ``sketch``, each on a line of its own (→ nothing if the text is removed), or an
expression whose value in the module is the wrong function: a name, a call, a lambda. Mistakes above
the first decision are never combined with others. A name may be followed by ``telling 1``, on how
many cases an answer must have the mistake's numbers to be named (3, unless it shows on fewer by its
nature), and by ``atol 1e-3``, how near they must come.

A ``paraphrase`` is another way to write the mistake, with the same effect: the proof fails unless
it gets the name. A ``neighbor`` is code that looks like it and has another effect: the proof fails
if it gets the name. Both are an edit of the sketch or an expression, one a line.

A mistake that several exercises share is written once, in ``lessons/mistakes.md``, below a heading
that exercises refer to: ``**[the sign]**``. Its edits and sentence apply unless the exercise gives
others.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlcourse.courses.course import Amount, complaint
from rlcourse.errors import UserError

NAMES = ("differentiable", "constants", "derived")  # of arguments, or of places in the result
HEADINGS = ("Hints", "Mistakes")
OPTION = re.compile(r", (telling|atol) ([\d.e-]+)")
HEAD = re.compile(rf"\*\*(?P<name>.+?)\*\*(?P<options>({OPTION.pattern})*)", re.DOTALL)
EDIT = re.compile(r"`(.*)` → (?:`(.*)`|nothing)")
EXPRESSION = re.compile(r"`([^`]+)`")
OTHER = re.compile(r"(paraphrase|neighbor): (`.*)")
SHARED = "mistakes.md"
Edits = tuple[tuple[str, str], ...]
Code = tuple[Edits, str]  # edits of the sketch, or else an expression


class Facts(BaseModel):
    """What stands at the top of a page."""

    model_config = ConfigDict(extra="forbid", strict=True)

    section: str
    points: Amount
    difficulty: int = Field(ge=1, le=5)
    minutes: Amount
    function: str = ""
    differentiable: str = ""
    constants: str = ""
    derived: str = ""


@dataclass(frozen=True)
class Entry:
    """A mistake as a page describes it; ``at`` is the page's path and the line."""

    at: str
    name: str = ""
    shared: str = ""  # the heading in mistakes.md that it refers to
    decision: str = ""
    edits: Edits = ()
    expression: str = ""
    diagnosis: str = ""
    options: dict[str, float] = field(default_factory=dict)
    paraphrases: tuple[Code, ...] = ()
    neighbors: tuple[Code, ...] = ()

    def error(self, sentence: str) -> UserError:
        return UserError(f"{self.at}: {sentence}")

    def filled_in(self, pages: tuple[Path, ...]) -> "Entry":
        """With what the shared page says, unless this page says something else."""
        if not self.shared:
            return self
        known = {name: entry for path in reversed(pages) for name, entry in shared(path).items()}
        if self.shared not in known:
            close = get_close_matches(self.shared, known, n=1)
            hint = f"did you mean [{close[0]}]?" if close else "it has none yet."
            raise self.error(f"{SHARED} has no mistake [{self.shared}]; {hint}")
        theirs = known[self.shared]
        own = bool(self.edits or self.expression)
        return replace(
            self,
            name=theirs.name,
            edits=self.edits if own else theirs.edits,
            expression=self.expression if own else theirs.expression,
            diagnosis=self.diagnosis or theirs.diagnosis,
            options={**theirs.options, **self.options},
        )


@dataclass(frozen=True)
class Page:
    """What an exercise's page says."""

    path: Path
    facts: dict[str, Any]
    hints: tuple[str, ...]
    mistakes: tuple[Entry, ...]


def read_page(path: Path) -> Page:
    """The page at `path`.

    Raises:
        UserError: one sentence with file and line, if the page cannot be understood.
    """
    lines = path.read_text("utf-8").splitlines()
    if not lines or lines[0] != "---" or "---" not in lines[1:]:
        raise UserError(f"{path}:1: an exercise begins with its facts, between two lines of ---.")
    end = lines.index("---", 1)
    parts = dict(_parts(path, lines, end + 1))
    for heading in HEADINGS:
        if heading not in parts:
            raise UserError(f"{path}:{len(lines)}: there is no heading # {heading}.")
    return Page(
        path,
        facts=_facts(path, "\n".join(lines[1:end])),
        hints=_hints(path, *parts["Hints"]),
        mistakes=tuple(_entries(path, *parts["Mistakes"])),
    )


@cache
def shared(path: Path) -> dict[str, Entry]:
    """The mistakes of a ``mistakes.md``, by their headings; none if there is no such file."""
    if not path.is_file():
        return {}
    lines = path.read_text("utf-8").splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("## ")), len(lines))
    found: dict[str, Entry] = {}
    for entry in _entries(path, lines[first:], first):
        if entry.decision in found:
            raise entry.error(f"[{entry.decision}] appears twice.")
        found[entry.decision] = entry
    return found


def _parts(path: Path, lines: list[str], start: int) -> Iterator[tuple[str, tuple[list[str], int]]]:
    """(heading, (its lines, the index of the first)) of every ``# heading``."""
    begins = [i for i in range(start, len(lines)) if lines[i].startswith("# ")]
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        heading = lines[begin][2:].strip()
        if heading not in HEADINGS:
            known = ", ".join(f"# {name}" for name in HEADINGS)
            raise UserError(f"{path}:{begin + 1}: a heading is one of {known}.")
        yield heading, (lines[begin + 1 : end], begin + 1)


def _facts(path: Path, text: str) -> dict[str, Any]:
    try:
        facts = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        raise UserError(f"{path}:{line}: this is not YAML, lines of key: value.") from error
    where = {line.partition(":")[0]: i for i, line in enumerate(text.splitlines(), start=2)}
    try:
        Facts.model_validate(facts)
    except ValidationError as error:
        key, said = complaint(error, Facts)
        raise UserError(f"{path}:{where.get(key, 1)}: {said}.") from error
    return facts | {key: tuple(facts.get(key, "").split()) for key in NAMES}


def _hints(path: Path, lines: list[str], start: int) -> tuple[str, ...]:
    """Three numbered hints: prose is joined into one line, indented code stays as it is."""
    found: list[list[str]] = []
    for line in lines:
        if f"{line} ".startswith(f"{len(found) + 1}. "):
            found.append([])
        if found:
            found[-1].append(line[3:])
    if len(found) != 3:
        raise UserError(
            f"{path}:{start}: an exercise has three hints, numbered 1. to 3.: a nudge, the idea, "
            f"nearly the code; here are {len(found)}."
        )
    return tuple(_unwrapped("\n".join(hint).strip("\n")) for hint in found)


def _unwrapped(text: str) -> str:
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if p.startswith("    ") else " ".join(p.split("\n")) for p in paragraphs)


def _entries(path: Path, lines: list[str], start: int) -> Iterator[Entry]:
    """Every mistake: blocks between empty lines, below ``## decision``."""
    decision, begin = "", 0
    block: list[str] = []
    for i, line in enumerate([*lines, ""]):
        if line.startswith("## "):
            decision = line[3:].strip()
        elif line.strip():
            begin = begin if block else i
            block.append(line)
        elif block:
            yield _entry(f"{path}:{start + begin + 1}", decision, block)
            block = []


def _entry(at: str, decision: str, block: list[str]) -> Entry:
    after = next((i for i, line in enumerate(block) if _is_code(line)), None)
    if after is None:
        after = next((i + 1 for i, line in enumerate(block) if _ends_head(line)), len(block))
    head = HEAD.fullmatch(" ".join(block[:after]))
    if not head:
        raise UserError(
            f"{at}: a mistake begins with its name, **in bold**, followed only by the options "
            "“, telling 1” and “, atol 1e-3”."
        )
    options = {
        key: int(value) if key == "telling" else float(value)
        for key, value in OPTION.findall(head["options"])
    }
    rest = block[after:]
    edits, expression = [], ""
    while rest and (found := EDIT.fullmatch(rest[0])):
        edits.append((found[1], found[2] or ""))
        rest = rest[1:]
    if rest and not edits and (found := EXPRESSION.fullmatch(rest[0])):
        expression, rest = found[1], rest[1:]
    name, referred = head["name"], ""
    if name.startswith("[") and name.endswith("]"):
        name, referred = "", name[1:-1]
    others: dict[str, list[Code]] = {"paraphrase": [], "neighbor": []}
    while rest and (found := OTHER.fullmatch(rest[0])):
        others[found[1]].append(_code(at, found[2]))
        rest = rest[1:]
    diagnosis = " ".join(line.strip() for line in rest)
    if not referred and not diagnosis:
        raise UserError(f"{at}: the mistake “{name}” needs a sentence that says why it is wrong.")
    return Entry(
        at, name, referred, decision, tuple(edits), expression, diagnosis, options,
        tuple(others["paraphrase"]), tuple(others["neighbor"]),
    )  # fmt: skip


def _code(at: str, text: str) -> Code:
    if edit := EDIT.fullmatch(text):
        return ((edit[1], edit[2] or ""),), ""
    if expression := EXPRESSION.fullmatch(text):
        return (), expression[1]
    raise UserError(f"{at}: a paraphrase or neighbor is `old` → `new` or `an expression`.")


def _is_code(line: str) -> bool:
    return bool(EDIT.fullmatch(line) or EXPRESSION.fullmatch(line) or OTHER.fullmatch(line))


def _ends_head(line: str) -> bool:
    return bool(re.search(r"\*\*(, \w+ [\w.+-]+)*$", line))
