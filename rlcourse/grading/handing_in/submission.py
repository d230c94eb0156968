"""Read a submission without trusting it, and rebuild the notebook around the student's answers.

A submitted notebook is taken for what it says, never for what it is: from it come the text of the
cells that students write, and the cells that they added. Everything else, metadata, tags, outputs,
the instructor's cells, comes from the released notebook.
"""

import ast
import hashlib
import threading
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell

from rlcourse.authoring.cells import is_text_of_a_lesson, names_bound_by, without_magics
from rlcourse.authoring.notebook_file import FileCell, NotANotebook, read_notebook_file
from rlcourse.checks.asking.wire import clean
from rlcourse.grading.handing_in import written
from rlcourse.grading.pages.markdown import harmless
from rlcourse.grading.rejected import REFUSED, UNREADABLE, WRONG, Rejected

MOST_BRACKETS = 2_000_000  # of a file: each may become a list or a dictionary in memory
MOST_CELLS = 1000
LONGEST_CELL = 200_000  # characters

ELSEWHERE = "# The answer is in another cell."
_PARSING = threading.Lock()  # Python 3.11 counts the depth of all threads' trees together


@dataclass(frozen=True)
class Found:
    """A cell of the submission: its kind, its text, and the ids that it claims."""

    kind: str
    source: str
    cell_id: str
    grade_id: str


def parse(data: bytes) -> list[Found]:
    """The cells of a notebook file, or ``Rejected``."""
    if data.count(b"[") + data.count(b"{") > MOST_BRACKETS:
        raise Rejected(REFUSED, "the file has too many parts")
    try:
        read, _ = read_notebook_file(data)
    except NotANotebook as error:
        raise Rejected(UNREADABLE, f"the file {error}") from None
    if len(read) > MOST_CELLS:
        raise Rejected(REFUSED, f"more than {MOST_CELLS} cells")
    return [_found(cell) for cell in read]


def _found(cell: FileCell) -> Found:
    source = cell.source if cell.kind == "code" else written.without_data(cell.source)
    if len(source) > LONGEST_CELL:
        raise Rejected(REFUSED, f"a cell of more than {LONGEST_CELL} characters")
    return Found(cell.kind, clean(source), cell.id, cell.nbgrader.get("grade_id", ""))


def digest(*parts: bytes) -> str:
    """A fingerprint of a submission and of what it is graded against."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8, "little"))
        sha.update(part)
    return sha.hexdigest()


# Rebuilding


def rebuild(release: NotebookNode, found: list[Found]) -> NotebookNode:
    """The released notebook with the student's answers, and the cells that the student added.

    Raises ``Rejected`` when the submission answers nothing of this lesson.
    """
    notebook = from_dict(release)
    matches = _match(notebook, found)
    answers = [i for i, cell in enumerate(notebook.cells) if _is_answer(cell)]
    if answers and not any(_tells(notebook, i, found, matches) for i in (0, *answers)):
        raise Rejected(WRONG, "it has none of the cells that this lesson asks students to fill in")
    defined_by = _definitions(notebook, found, matches)
    elsewhere: dict[int, str] | None = None
    for i, cell in enumerate(notebook.cells):
        released = cell.source
        source = found[matches[i]].source if i in matches and _is_open(cell) else released
        if source != released:
            cell.source = source if cell.cell_type == "code" else harmless(source)
        if _is_question(cell) and written.is_blank(source, released):
            if elsewhere is None:
                elsewhere = _written_elsewhere(release, found, matches)
            if elsewhere:
                cell.source = harmless(written.shown(_nearest(i, elsewhere, matches)))
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            others = defined_by.get(_grade_id(cell), set()) - {matches.get(i)}
            if _is_answer(cell) and cell.source == released and others:
                cell.source = ELSEWHERE  # a stub would replace the answer
    notebook.cells = _with_added_cells(notebook.cells, found, matches)
    return notebook


def _written_elsewhere(
    release: NotebookNode, found: list[Found], matches: dict[int, int]
) -> dict[int, str]:
    """By cell the words of a submission that neither the release has nor the cell of an answer."""
    of_submission = {j: release.cells[i] for i, j in matches.items()}
    questions = [cell for cell in release.cells if _is_question(cell)]
    named = {name for cell in questions for name in (_grade_id(cell), cell.get("id"))} - {"", None}
    texts = [
        ("placeholder" if _is_question(cell) else cell.cell_type, cell.source)
        for cell in release.cells
    ]
    words, new = written.Words(texts, parsed), dict[int, str]()
    for j, cell in enumerate(found):
        released = of_submission.get(j)
        if released is not None and _is_question(released):
            continue
        kind = "raw" if {cell.grade_id, cell.cell_id} & named else cell.kind  # turned into code
        function = released is not None and _is_answer(released)
        said = words.new(kind, cell.source, function)
        if said and not is_text_of_a_lesson(cell.cell_id, cell.kind, cell.source):
            new[j] = said
    return new


def _nearest(i: int, elsewhere: dict[int, str], matches: dict[int, int]) -> list[str]:
    """The words found elsewhere, those first that are nearest to the question in cell `i`."""
    place = max((j for k, j in matches.items() if k <= i), default=0)
    return [elsewhere[j] for j in sorted(elsewhere, key=lambda j: abs(j - place))]


def _is_question(cell: NotebookNode) -> bool:
    """Whether a cell of the release is for an answer in words."""
    return cell.cell_type == "markdown" and _is_answer(cell)


def _tells(notebook: NotebookNode, i: int, found: list[Found], matches: dict[int, int]) -> bool:
    """Whether a cell of the release was found, one that no other lesson has: where answers to
    questions go, all lessons have the same words."""
    cell = notebook.cells[i]
    if i not in matches:
        return False
    named = found[matches[i]].grade_id == _grade_id(cell) or found[matches[i]].cell_id == cell.id
    return named or cell.cell_type == "code" or not _is_answer(cell)


def _grade_id(cell: NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def _definitions(notebook, found: list[Found], matches: dict[int, int]) -> dict[str, set[int]]:
    """Which cells of the submission define a function, of those that will run."""
    passed_over = {matches[i] for i in matches if is_demo(notebook.cells[i])}
    where: dict[str, set[int]] = {}
    for j, cell in enumerate(found):
        for name in bound_in(cell.source) if cell.kind == "code" and j not in passed_over else ():
            where.setdefault(name, set()).add(j)
    return where


def _is_answer(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def _is_open(cell: NotebookNode) -> bool:
    """Whether the student's text is kept: answers, and ordinary code such as imports."""
    if "nbgrader" in cell.metadata:
        return _is_answer(cell)
    return cell.cell_type == "code"


def is_demo(cell: NotebookNode) -> bool:
    """Whether a cell of the release is skipped in a graded run."""
    tags = cell.metadata.get("tags", [])
    return "nbgrader" not in cell.metadata and ("demo" in tags or "skip-execution" in tags)


def _match(notebook: NotebookNode, found: list[Found]) -> dict[int, int]:
    """Release cell → submission cell: by grade id, then cell id, then the function it defines.

    If several claim the same, the first one gets it; the others become added cells in their places,
    so that a later definition replaces an earlier one as it did in the notebook.
    """
    matches: dict[int, int] = {}
    taken: set[int] = set()
    where: dict[tuple[str, ...], list[int]] = defaultdict(list)  # what a cell says that it is
    for j, cell in enumerate(found):
        where["grade id", cell.kind, cell.grade_id].append(j)
        where["cell id", cell.kind, cell.cell_id].append(j)
        where["text", cell.kind, cell.source.strip()].append(j)
        for name in _functions(cell):
            where["function", cell.kind, name].append(j)

    def claim(i: int, *said: str) -> None:
        free = [j for j in where.get(said, ()) if j not in taken]
        if i not in matches and free:
            matches[i] = free[0]
            taken.add(free[0])

    cells = [(i, c.cell_type, _grade_id(c), c) for i, c in enumerate(notebook.cells)]
    for i, kind, grade_id, _ in cells:
        if grade_id:
            claim(i, "grade id", kind, grade_id)
    for i, kind, _, cell in cells:
        claim(i, "cell id", kind, cell.get("id"))
    for i, kind, grade_id, cell in cells:
        if kind == "code" and _is_answer(cell):
            claim(i, "function", kind, grade_id)
    for i, kind, _, cell in cells:  # the instructor's own text, when ids were lost on the way
        claim(i, "text", kind, cell.source.strip())
    return matches


def _functions(cell: Found) -> frozenset[str]:
    """Names of the functions that a cell defines; importing one is not writing it."""
    tree = parsed(cell.source) if cell.kind == "code" else None
    body = tree.body if tree and not cell.source.lstrip().startswith("%%writefile") else []
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef))


def parsed(source: str) -> ast.Module | None:
    """A cell's code, without IPython's own lines; None if it is not Python."""
    try:
        with _PARSING:
            return ast.parse(without_magics(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None


@lru_cache(maxsize=256)  # a check asks about every cell of the notebook
def bound_in(source: str) -> frozenset[str]:
    """Names that code gives a value when it runs: by def, class, assignment or import, also inside
    an ``if``, ``try``, ``with`` or loop."""
    if source.lstrip().startswith("%%writefile"):
        return frozenset()
    tree = parsed(source)
    return frozenset(names_bound_by(tree)) if tree else frozenset()


def _with_added_cells(cells, found: list[Found], matches: dict[int, int]) -> list[NotebookNode]:
    """Added cells follow the release cell that they followed in the submission.

    Cells of the lesson's earlier versions are left out: the release has what stands in their place.
    """
    of_submission = {j: i for i, j in matches.items()}
    checks = {_grade_id(cell): cell.source.strip() for cell in cells if _is_check(cell)}
    after: dict[int, list[NotebookNode]] = {}
    anchor = -1
    for j, cell in enumerate(found):
        own_words = cell.source.strip() and cell.source.strip() != checks.get(cell.grade_id)
        if j in of_submission:
            at = of_submission[j]
            if (
                _is_check(cells[at])
                and own_words
                and cell.source.strip() != cells[at].source.strip()
            ):
                after.setdefault(at - 1, []).append(_added(cell, f"added-{j}"))  # a helper, say
            anchor = at
        elif own_words and not is_text_of_a_lesson(cell.cell_id, cell.kind, cell.source):
            after.setdefault(anchor, []).append(_added(cell, f"added-{j}"))
    rebuilt = list(after.get(-1, []))
    for i, cell in enumerate(cells):
        rebuilt += [cell, *after.get(i, [])]
    return rebuilt


def _is_check(cell: NotebookNode) -> bool:
    """A check: the release's text is kept, and what a student wrote into it is an added cell."""
    return cell.cell_type == "code" and _grade_id(cell).startswith("check_")


def _added(cell: Found, name: str) -> NotebookNode:
    if cell.kind == "code":
        return new_code_cell(cell.source, id=name, metadata={"rlcourse": {"added": True}})
    made = new_markdown_cell(harmless(cell.source), id=name)
    made.metadata.rlcourse = {"added": True}
    return made
