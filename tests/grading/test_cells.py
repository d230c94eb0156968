"""Cells are run as IPython would run them, where that can matter for what comes after."""

import sys

import pytest

from rlcourse.grading.untrusted import worker


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs cells one after the other and returns what the last one printed, or its error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, ""])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    session = worker.Session()

    def run_all(*cells: str) -> str:
        for number, source in enumerate(cells):
            answer = session.run_cell(f"cell {number}", source, worker.Time(60, 600))
        return str(answer["error"] or answer["printed"])

    return run_all


def test_a_module_that_a_cell_writes_can_be_imported(run):
    write = "%%writefile helper_of_a_student.py\ndef helped(): return 7\n"
    more = "%%writefile -a helper_of_a_student.py\ndef more(): return 8\n"
    use = "from helper_of_a_student import helped, more\nprint(helped() + more())"
    try:
        assert run(write, more, use) == "15\n"
    finally:
        sys.modules.pop("helper_of_a_student", None)


@pytest.mark.parametrize("first", ["%%time", "%%capture out", "%time 1", "!ls", "import os; os?"])
def test_what_stands_below_a_magic_is_defined(run, first):
    assert run(f"{first}\n%time 2\ndef f(): return 3", "print(f())") == "3\n"


def test_a_line_that_is_timed_defines_its_names(run):
    assert run("%time x = 5", "print(x)") == "5\n"
