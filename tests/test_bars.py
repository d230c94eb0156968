"""Progress in a notebook and in a terminal: whole lines, and an output that survives saving."""

import io
import re

import nbformat
import pytest
from nbclient import NotebookClient

from rlcourse import bars

BAR = """
import sys
from rlcourse import bars
for i in bars.bar(range(3), desc="a lesson", mininterval=0):
    pass

class Picture:
    seen = 0
    def _repr_html_(self):
        return f"<b>{self.seen} seen</b>"

picture = Picture()
with bars.bar(total=2, desc="train", mininterval=0, picture=picture) as shown:
    for picture.seen in (1, 2):
        shown.set_postfix(reward="0.75", refresh=False)
        shown.update()
picture.seen = "all"
shown.redraw_picture()
for i in bars.bar(range(3), desc="short", leave=False, mininterval=0):
    pass
print(bars.watched())
"""
FAILURE = """
from rlcourse.errors import UserError
def deep():
    raise UserError("the disk is full: free some space")
deep()
"""


def executed(*sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=600, kernel_name="python3", allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_bar_is_saved_as_html_with_its_picture_and_a_failure_is_one_line():
    (*shown, looked), failure = executed(BAR, FAILURE)
    assert all(output.output_type == "display_data" for output in shown)
    html = [output["data"]["text/html"] for output in shown]
    assert "a lesson 3 of 3" in html[0] and 'aria-label="100%"' in html[0]
    assert "train 2 of 2" in html[1] and "reward 0.75" in html[1]
    assert html[1].count("seen") == 1 and "<b>all seen</b>" in html[1]
    assert html[2] == ""  # it was not to be left
    assert not any("widget" in mime for output in shown for mime in output["data"])
    assert looked.text == "True\n"
    assert failure[0].traceback == ["rlcourse: the disk is full: free some space"]


def test_in_grading_nobody_watches(monkeypatch):
    monkeypatch.setattr(bars, "in_notebook", lambda: True)
    assert bars.watched()
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert not bars.watched()


def test_outside_of_a_notebook_it_is_tqdm(capfd):
    assert list(bars.bar(range(2), desc="plain")) == [0, 1]
    assert "plain: 100%" in capfd.readouterr().err
    with bars.bar(total=1, disable=True, picture=object()) as shown:
        shown.update()
    assert capfd.readouterr().err == ""


FACTS = {"reward": "0.53", "accuracy": "0.50", "held-out": "0.62", "{x}": "{n}"}


def line(columns: int | None, facts: int, desc: str = "grpo") -> str:
    with bars.bar(total=100, desc=desc, unit="step", ncols=columns, file=io.StringIO()) as shown:
        shown.start_t -= 3725  # an hour and some minutes: the longest that is usual
        shown.set_postfix(dict(list(FACTS.items())[:facts]), refresh=False)
        shown.update(37)
        return str(shown)


@pytest.mark.parametrize("columns", [None, 120, 100, 80, 79, 60, 40, 20])
@pytest.mark.parametrize("facts", range(5))
def test_a_line_is_whole_in_any_width(columns, facts):
    """It fits, ends where a fact ends, and says the count; what has no room is left out whole."""
    said = line(columns, facts)
    assert len(said) <= (columns or 80) and "37/100" in said
    whole = ", ".join(f"{name}={value}" for name, value in list(FACTS.items())[:facts])
    assert said.endswith(whole) or re.search(r"(37/100|left\]|step/s\]|<[\d:]+\])$", said)
    assert len(re.findall(r"\|[^|]{0,7}\|", said)) == 0, "a bar too short to say anything"
