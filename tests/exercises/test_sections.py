"""A message sends its reader to a section; the section must be there."""

import re
from pathlib import Path

import pytest

from rlcourse import exercises

LESSONS = Path(__file__).parents[2] / "course" / "lessons"


@pytest.mark.parametrize("exercise", exercises.all(), ids=lambda exercise: exercise.name)
def test_the_section_that_a_message_names_is_a_heading_of_its_lesson(exercise):
    text = (LESSONS / f"{exercise.lesson}.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (?:\d+\. )?(.+?)$", text, flags=re.MULTILINE)
    assert exercise.section in headings
