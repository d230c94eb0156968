"""Reading a lesson, and the sentence an author gets for each way of getting it wrong."""

import ast

import pytest
from fixture_course import LESSON, NAME

from rlcourse.authoring.cells import names_bound_by, without_magics
from rlcourse.authoring.lesson import read_lesson
from rlcourse.errors import UserError


@pytest.fixture
def read(tmp_path, registry):
    def read(text):
        path = tmp_path / NAME / "lesson.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return read_lesson(path, registry)

    return read


def test_cells_keep_their_kind_order_and_line(read):
    lesson = read(LESSON)
    kinds = "markdown code markdown exercise exercise code question answer markdown"
    assert [cell.kind for cell in lesson.cells] == kinds.split()
    starts = LESSON.splitlines()
    for cell in lesson.cells:
        first = cell.source.partition("\n")[0]
        here = "\n".join(starts[cell.line - 1 : cell.line + 1])
        assert (first or cell.name) in here
    assert lesson.title == "Fixture lesson"
    assert lesson.answer("why_sum").startswith("Because")


@pytest.mark.parametrize(
    ("old", "new", "sentence", "anchor"),
    [
        ('exercise="score_function"', 'exercise="scoer"', "no exercise named 'scoer'", "scoer"),
        (
            'exercise="reinforce_loss"',
            'exercise="score_function"',
            "is already on line",
            None,
        ),
        (
            'exercise="score_function"\n',
            'exercise="score_function"\npass\n',
            "an exercise cell is empty",
            None,
        ),
        ('tags=["demo"]', 'tags=["dmeo"]', "unknown tag", "dmeo"),
        ("points=2", "", "needs points", 'question="'),
        ('answer="why_sum"', 'answer="other"', "lacks", None),
        ("```text", "```bash", "would be run as a cell", "```bash"),
        ("import torch\n", "import torch as\n", "not valid Python", "import torch as"),
        ("The end.", "### BEGIN SOLUTION", "nbgrader's own marks", "### BEGIN"),
    ],
)
def test_an_authors_mistake_is_named_with_its_line(read, old, new, sentence, anchor):
    assert old in LESSON
    text = LESSON.replace(old, new, 1)
    with pytest.raises(UserError, match=sentence) as caught:
        read(text)
    place, line = str(caught.value).split(": ")[0].rsplit(":", 1)
    assert place.endswith(f"{NAME}/lesson.md")
    if anchor:
        assert anchor in text.splitlines()[int(line) - 1]


def test_names_are_bound_by_imports_definitions_and_assignments():
    code = "%matplotlib inline\nimport a.b, c as d\nfrom e import f\nx, y = 1, 2\ndef g(): pass"
    assert names_bound_by(ast.parse(without_magics(code))) == {"a", "d", "f", "x", "y", "g"}
