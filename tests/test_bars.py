"""Progress in a notebook and in a terminal: an output that survives saving, and tqdm's."""

import io
import time

import nbformat
from nbclient import NotebookClient
from tqdm.std import tqdm

from rlcourse import bars
from rlcourse.policy import Policy
from rlcourse.policy.sampler import telling

BAR = """
import sys
from rlcourse import bars
for i in bars.bar(range(3), desc="a lesson", mininterval=0):
    pass
with bars.bar(total=2, desc="train", mininterval=0) as shown:
    for _ in range(2):
        shown.set_postfix(reward="0.75", refresh=False)
        shown.update()
for i in bars.bar(range(3), desc="short", leave=False, mininterval=0):
    pass
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


def test_a_bar_is_saved_as_html_and_a_failure_is_one_line():
    shown, failure = executed(BAR, FAILURE)
    assert all(output.output_type == "display_data" for output in shown)
    html = [output["data"]["text/html"] for output in shown]
    assert "a lesson: 100%| 3/3 [" in html[0] and '<progress value="3" max="3">' in html[0]
    assert "train: 100%| 2/2 [" in html[1] and "reward=0.75" in html[1]
    assert html[2] == ""  # it was not to be left
    assert not any("widget" in mime for output in shown for mime in output["data"])
    assert failure[0].traceback == ["rlcourse: the disk is full: free some space"]


def test_outside_of_a_notebook_it_is_tqdm(capfd):
    assert list(bars.bar(range(2), desc="plain")) == [0, 1]
    assert "plain: 100%" in capfd.readouterr().err
    with bars.bar(total=1, disable=True) as shown:
        shown.update()
    assert capfd.readouterr().err == ""


def test_tokens_drawn_move_a_bar_whose_batch_takes_long(monkeypatch):
    monkeypatch.setattr(bars.Tokens, "EVERY", 0.0)
    drawn = io.StringIO()
    shown = tqdm(total=2, file=drawn, desc="evaluate", mininterval=0)
    policy, tokens = Policy.load("tiny"), bars.Tokens(shown, "evaluate")
    with telling(tokens):
        rollouts = policy.sample([policy.format_prompt("How many?")], max_tokens=5)
    assert tokens.drawn >= rollouts.mask.sum() > 0
    assert f"evaluate, {tokens.drawn} tokens, " in drawn.getvalue()
    tokens.begin()
    policy.sample(["w"], max_tokens=2)  # nobody listens
    assert tokens.drawn == 0 and shown.desc == "evaluate: "
    told = len(drawn.getvalue())
    time.sleep(0.2)  # nothing is drawn, and the clock runs
    assert len(drawn.getvalue()) > told
    shown.close()
