"""Teaching notes answer what lessons ask, in their order, and are in no package for students."""

import math
import re
from pathlib import Path

import pytest
import torch
from small_courses import write_course
from typer.testing import CliRunner

from rlcourse.algorithms import group_normalized_advantages, ppo_clip_loss
from rlcourse.authoring.teaching import answers, questions, teaching_notes
from rlcourse.cli import app
from rlcourse.courses import current, shipped
from rlcourse.errors import UserError
from rlcourse.policy import ToyPolicy

LESSONS = shipped().lessons
REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("lesson", LESSONS[1:], ids=lambda lesson: lesson.name)
def test_every_question_to_think_about_has_an_answer(lesson):
    found = answers(lesson)
    assert len(found) == 3 and all(len(answer) > 150 for _, answer in found)


def test_the_first_lesson_asks_nothing():
    assert questions(LESSONS[0]) == [] and answers(LESSONS[0]) == []


def test_the_command_prints_a_page_or_writes_it(tmp_path):
    done = CliRunner().invoke(app, ["teaching-notes", "02", "--out", str(tmp_path / "notes.md")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "notes.md").read_text()
    assert page == CliRunner().invoke(app, ["teaching-notes", "02"]).output
    assert "**1. Add 10 to every reward. What happens to the expected gradient" in page


TEXT = "# 90 · A\n\n**To think about**, without points.\n\n1. Why?\n2. And\n   then?\n\n## End\n"


@pytest.fixture
def lesson(tmp_path):
    course = write_course(tmp_path / "course", {"90_fixture": TEXT})
    (course / "teaching").mkdir()
    return current(course).lessons[0]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("## And then\n\nb\n\n## Why\n\na\n", "stands where the lesson asks 'Why?"),
        ("## Why\n\na\n", "1 answers, but the lesson asks 2 questions"),
        (None, "run this command in a clone, or write the file"),
    ],
)
def test_notes_that_do_not_fit_the_lesson_are_named(lesson, written, said):
    path = lesson.home / "teaching" / "90_fixture.md"
    if written:
        path.write_text(written)
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        teaching_notes([lesson])
    assert str(path) in str(caught.value)


def test_notes_that_fit_are_paired(lesson):
    (lesson.home / "teaching" / "90_fixture.md").write_text("## Why\n\na\n\n## And then\n\nb\n")
    assert answers(lesson) == [("Why?", "a"), ("And then?", "b")]


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


@pytest.mark.parametrize("clip", [0.2, 1e6])
def test_five_updates_remain_under_a_limit_on_the_kl(clip):
    """At 0.05 nats, as the note on lesson 05 says; the KL after five is 0.054 to 0.066."""
    for seed in range(3):
        old, toy = (ToyPolicy(vocab_size=3, length=4, seed=1, eos_id=0) for _ in range(2))
        batch = toy.sample(64, generator=torch.Generator().manual_seed(seed))
        rewards = (((batch.tokens == 2) & batch.mask).sum(dim=1) == 1).double()
        optimizer = torch.optim.Adam(toy.parameters(), lr=0.05)
        distances, before = [], toy.logprobs(batch).detach()
        while not distances or distances[-1] <= 0.05:
            loss, _ = ppo_clip_loss(
                toy.logprobs(batch), before, rewards - rewards.mean(), batch.mask, clip
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            distances.append(old.kl(toy).item())
        assert len(distances) == 5
