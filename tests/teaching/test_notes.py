"""Teaching notes answer what lessons ask, in their order, and are in no package for students."""

import math
import re
from pathlib import Path

import pytest
import torch

from rlcourse.algorithms import group_normalized_advantages
from rlcourse.courses import shipped

LESSONS = shipped().lessons
REPOSITORY = Path(__file__).parents[2]


ASKED = re.compile(r"^\*\*To think about\*\*.*?\n\n(.*?)(?=\n\n)", re.MULTILINE | re.DOTALL)
NUMBERED = re.compile(r"^\d+\. (.*?)(?=^\d+\. |\Z)", re.MULTILINE | re.DOTALL)
ANSWER = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("lesson", LESSONS[1:], ids=lambda lesson: lesson.name)
def test_every_question_to_think_about_has_an_answer_under_its_first_words(lesson):
    asked = NUMBERED.findall(ASKED.search(lesson.text.read_text())[1])
    answers = ANSWER.findall((lesson.home / "teaching" / f"{lesson.name}.md").read_text())
    assert len(asked) == len(answers) == 3
    for question, (begins, answer) in zip(asked, answers, strict=True):
        assert " ".join(question.split()).startswith(begins) and len(answer.strip()) > 150


def test_no_package_has_them():
    source = (REPOSITORY / "setup.py").read_text() + (REPOSITORY / "MANIFEST.in").read_text()
    assert "course/lessons" in source and "teaching" not in source
    assert not list((REPOSITORY / "course" / "lessons").glob("**/teaching*"))


def note(number: str) -> str:
    path = next((REPOSITORY / "course" / "teaching").glob(f"{number}_*.md"))
    return path.read_text()


def test_closed_forms_are_what_the_notes_say():
    p = torch.tensor([0.5, 0.3, 0.2])
    cool = (p.log() / 0.7).softmax(0)
    there, back = (cool * (cool / p).log()).sum(), (p * (p / cool).log()).sum()
    assert f"{there:.4f} and {back:.4f} nats" in note("01")
    assert [f"{x:.3f}" for x in cool - p] == ["0.071", "-0.025", "-0.046"]
    assert "0.071, −0.025, −0.046" in note("02")
    assert pytest.approx(0.82) == 0.1**2 + 0.9**2 and "0.82" in note("03")
    assert math.ceil(math.log(500) / math.log(1.2)) == 35 and "35 batches" in note("05")
    assert f"{1 - 0.5**8:.3f}" in note("11") and f"{1 - 0.9**64:.4f}" in note("13")
    assert f"{3 * 0.2**2 * 0.8 + 0.2**3:.3f}" in note("15")


def test_advantages_are_what_the_notes_say():
    for reward, said in ((0.01, "+2.41"), (1.0, "+2.47")):
        found = group_normalized_advantages(torch.tensor([reward] + [0.0] * 7), 8)
        assert f"{found[0]:+.2f}" == said and said in note("06")
    for above, said in ((1e-7, "0.0007"), (1e-4, "0.5")):
        found = group_normalized_advantages(torch.tensor([0.1, 0.1, 0.1, 0.1 + above]), 4)
        assert f"{found[3]:.4f}".rstrip("0") == said and said in note("15")


def test_the_expected_largest_of_twenty_is_what_the_notes_say():
    x = torch.linspace(-8, 8, 200_001, dtype=torch.float64)
    normal = torch.distributions.Normal(0.0, 1.0)
    largest = torch.trapezoid(x * 20 * normal.cdf(x) ** 19 * normal.log_prob(x).exp(), x)
    assert f"{largest:.2f} standard" in note("11")
    assert f"{largest * 2.7 / 1.96:.1f} points" in note("11")
