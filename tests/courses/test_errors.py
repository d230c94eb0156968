"""An author's mistake gets one sentence that names the file, and the line of a page."""

from datetime import UTC, datetime

import pytest

from rlcourse import exercises
from rlcourse.courses import current
from rlcourse.errors import UserError

LESSON = "lessons/01_critics"
PAGE, MODULE, TEXT = (
    f"{LESSON}/{name}" for name in ("explained_variance.md", "explained_variance.py", "lesson.md")
)
FIRST_MISTAKE = "**the squared correlation of values and returns**"
CELL = '```python exercise="explained_variance"\n```\n'


def change(file, old, new):
    text = file.read_text("utf-8")
    assert text.count(old) == 1, old
    file.write_text(text.replace(old, new), "utf-8")


def load(own):
    return exercises.get("explained_variance", current(own))


def refusal(own, what=load):
    """The one sentence in which that ends."""
    with pytest.raises(UserError) as refused:
        what(own)
    said = str(refused.value)
    assert "\n" not in said
    return said


COURSE = {
    "a key that is none": ('title = "Our course"', 'titel = "Our"', "key 'titel'; did you mean ti"),
    "a name with a space": ('name = "ours"', 'name = "our own"', "name is 'our own'"),
    "no TOML": ('title = "Our course"', "title = ", "cannot be read"),
    "a lesson that is not there": ('"01_critics",', '"01_critic",', "lesson '01_critic' has no"),
    "a lesson without a number": ('"01_critics",', '"critics",', "name a lesson NN_topic"),
    "a lesson twice": ('"01_critics",', '"01_critics", "01_critics",', "is listed twice"),
    "a lesson of ours that is none": (":03_baselines", ":03_basis", "has no lesson '03_basis'"),
    "a course that is none": ("rlcourse:03", "stanford:03", "there is no course 'stanford'"),
    "points of nothing": (
        'title = "Our course"',
        "points.explained_varianc = 2",
        "[points] has 'explained_varianc', no exercise or question here; did you mean explained_v",
    ),
    "points below 0": ('title = "Our course"', "points.reinforce_loss = -1", "is -1: "),
    "due in words": ('title = "Our course"', 'due.01_critics = "May"', "a date and time with"),
    "due without a zone": ('title = "Our course"', "due.01_critics = 2027-02-01T12:00:00", "zone"),
    "due in no zone": ('title = "Our course"', 'due.01_critics = "2027-02-01 12:00 Utopia"', "Uto"),
    "due for no lesson": ('title = "Our course"', "due.06_grpo = 2027-02-01T12:00:00Z", "06_grpo"),
}  # fmt: skip


@pytest.mark.parametrize("what", COURSE)
def test_course_toml(what, own):
    old, new, sentence = COURSE[what]
    change(own / "course.toml", old, new)
    said = refusal(own, current)
    assert said.startswith(f"{own / 'course.toml'}") and sentence in said


@pytest.mark.parametrize("told", ['"2027-07-01 23:59 Europe/Berlin"', "2027-07-01T23:59:00+02:00"])
def test_a_due_date_is_the_same_moment_on_every_machine(told, own, monkeypatch):
    change(own / "course.toml", "# [due]", f"[due]\n01_critics = {told}\n#")
    monkeypatch.setenv("TZ", "America/New_York")
    assert current(own).due["01_critics"] == datetime(2027, 7, 1, 21, 59, tzinfo=UTC)


PAGES = {
    "no facts": ("---\nsection", "section", 1, "begins with its facts"),
    "facts that are no YAML": ("points: 3", "points: [3", 4, "is not YAML"),
    "a key that is none": ("minutes: 10", "minutes: 10\npoint: 3", 6, "did you mean points?"),
    "a fact too few": ("minutes: 10\n", "", 1, "minutes is missing"),
    "a difficulty beyond 5": ("difficulty: 2", "difficulty: 9", 4, "difficulty is 9: "),
    "a constant that is no argument": ("minutes: 10", "minutes: 10\nconstants: value", None,
                                       "names no argument, 'value'; did you mean values?"),
    "a function that is not there": ("functions.exp", "functions.unexp", None, "no function ours."),
    "a module that is not there": ("ours.functions", "ours.elsewhere", None, "there is no"),
    "two hints": ("3. Three lines:", "Three lines:", None, "three hints"),
    "no mistakes": ("# Mistakes", "# Errors", None,
                    "one of # Hints, # Mistakes"),
    "an edit that fits nowhere": ("`1 - unexplained / total` → `total - unexplained`",
                                  "`1 - unexplaned / total` → `total`", 51, "stands 0 times"),
    "an edit that fits twice": ("`1 - unexplained / total` → `total - unexplained`",
                                "`total` → `1`", 51, "times in line_by_line, not once"),
    "a mistake without a sentence": ("That is what is left: subtract it from 1.\n", "", 47,
                                     "needs a sentence"),
    "a function that nobody wrote": ("`squared_correlation`", "`correlation`", 23, "has no value"),
    "an option that is none": (FIRST_MISTAKE, f"{FIRST_MISTAKE}, tells 1", 23, "followed only by"),
    "a shared mistake that is none": (FIRST_MISTAKE, "**[objective-return]**", 23,
                                      "did you mean [objective-returned]?"),
}  # fmt: skip


@pytest.mark.parametrize("what", PAGES)
def test_a_page(what, own):
    old, new, line, sentence = PAGES[what]
    change(own / PAGE, old, new)
    said = refusal(own)
    place = f":{line}: " if line else ""
    assert said.startswith(f"{own / PAGE}{place}") and sentence in said


MODULES = {
    "no Python": ("sketch = Sketch(line_by_line)", "sketch = Sketch(", None, "SyntaxError"),
    "a name that is not there": ("(by_covariance,", "(by_hand,", 53, "NameError: name 'by_hand'"),
    "an import that fails": ("import torch\n", "import torsh\n", 5, "No module named 'torsh'"),
    "no cases": ("def cases(", "def drawn(", None, "defines `cases`, a function"),
    "one alternative without a comma": ("(by_covariance,)", "by_covariance", None, "functions"),
}


@pytest.mark.parametrize("what", MODULES)
def test_a_module(what, own):
    old, new, line, sentence = MODULES[what]
    change(own / MODULE, old, new)
    said = refusal(own)
    place = f":{line}: " if line else ""
    assert said.startswith(f"{own / MODULE}{place}") and sentence in said


@pytest.mark.parametrize("ending", ["md", "py"])
def test_a_cell_needs_a_page_and_a_module(ending, own):
    (own / LESSON / f"explained_variance.{ending}").unlink()
    said = refusal(own)
    line = (own / TEXT).read_text("utf-8").partition(CELL)[0].count("\n") + 1
    assert said.startswith(f"{own / TEXT}:{line}: exercise 'explained_variance' has no ")


def test_a_name_stands_once_in_a_course(own):
    change(own / TEXT, CELL, CELL.replace("explained_variance", "reinforce_loss"))
    said = refusal(own)
    assert "02_policy_gradient" in said and "'reinforce_loss' is in lesson 01_critics" in said


def test_what_a_student_mistypes_is_answered_from_this_course(own):
    with pytest.raises(UserError, match="did you mean “explained_variance”"):
        exercises.get("explained_varianse", current(own))
    with pytest.raises(UserError, match="There is no exercise “grpo_loss”"):
        exercises.get("grpo_loss", current(own))


def test_a_variable_that_names_nothing_is_named(own, monkeypatch):
    monkeypatch.setenv("RLCOURSE_COURSE", "stanford")
    assert "RLCOURSE_COURSE=stanford: there is no course 'stanford'" in refusal(own, current)
