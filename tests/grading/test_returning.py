"""Feedback through the exchange, in a class of which some handed in elsewhere."""

from pathlib import Path

import pytest
from nbgrader.apps import NbGraderAPI
from nbgrader.utils import notebook_hash

from rlcourse.grading.books.gradebook import Course

LESSON = "02_policy_gradient"
SETTINGS = Path(__file__).parents[2] / "course" / "nbgrader_config.py"


@pytest.fixture
def api(tmp_path):
    """The course's settings; ada and cyd handed in through the exchange, bob by mail."""
    (tmp_path / "nbgrader_config.py").write_text(SETTINGS.read_text("utf-8"), "utf-8")
    config = Course.open(tmp_path).config
    config.CourseDirectory.root = str(tmp_path)
    config.Exchange.root = str(tmp_path / "exchange")
    (tmp_path / "exchange").mkdir()
    for student in ("ada", "bob", "cyd"):
        folder = tmp_path / "feedback" / student / LESSON
        folder.mkdir(parents=True)
        (folder / f"{LESSON}.html").write_text(f"to {student}")
        (folder / "timestamp.txt").write_text("2026-10-01 11:00:00 UTC")
        if student != "bob":
            (folder / "submission_secret.txt").write_text(f"secret of {student}")
    return NbGraderAPI(config=config)


def returned(root: Path) -> set[str]:
    return {page.read_text() for page in (root / "exchange/rlcourse/feedback").glob("*.html")}


def test_who_handed_in_elsewhere_is_named_and_everybody_else_gets_their_page(api, tmp_path):
    done = api.release_feedback(LESSON)
    assert done["success"], done
    assert returned(tmp_path) == {"to ada", "to cyd"}
    assert "send them their pages" in done["log"] and "yourself: bob" in done["log"]
    name = notebook_hash(secret="secret of cyd", notebook_id=LESSON)
    assert (tmp_path / f"exchange/rlcourse/feedback/{name}.html").read_text() == "to cyd"
    assert api.coursedir.student_id_exclude == "", "a server keeps it for the next lesson"


def test_one_student_is_served_or_refused_in_a_sentence(api, tmp_path):
    assert api.release_feedback(LESSON, "cyd")["success"]
    assert returned(tmp_path) == {"to cyd"}
    done = api.release_feedback(LESSON, "bob")
    assert not done["success"] and "yourself: bob" in done["log"], done


def test_whom_the_instructor_excludes_stays_out(api, tmp_path):
    api.coursedir.student_id_exclude = "ada"
    assert api.release_feedback(LESSON)["success"]
    assert returned(tmp_path) == {"to cyd"}
