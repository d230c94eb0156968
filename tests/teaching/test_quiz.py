"""The bank of quiz questions: right answers are computed, wrong ones say why, and both platforms'
files have the structure that their importers read."""

import io
import math
import re
import zipfile
from xml.etree import ElementTree

import pytest
import torch
from small_courses import write_course

import rlcourse.algorithms
from rlcourse.courses import current, shipped
from rlcourse.errors import UserError
from rlcourse.teaching.moodle import moodle_xml
from rlcourse.teaching.qti import MANIFEST, QTI, QUIZ, qti_package
from rlcourse.teaching.quiz import bank

LESSONS = shipped().lessons
NAMES = {"torch": torch, "tensor": torch.tensor, "math": math}
NAMES |= {name: getattr(rlcourse.algorithms, name) for name in rlcourse.algorithms.__all__}
BANK = [(lesson.name, lesson.heading, bank(lesson)) for lesson in LESSONS if bank(lesson)]
Q = f"{{{QTI}}}"


@pytest.mark.parametrize("lesson", LESSONS[1:], ids=lambda lesson: lesson.name)
def test_numbers_are_what_the_library_computes(lesson):
    questions = bank(lesson)
    assert len(questions) >= 6
    for quiz in (q for q in questions if q.number):
        value, tolerance = quiz.number
        assert abs(float(eval(quiz.code, dict(NAMES))) - value) <= tolerance / 2, quiz.title
    assert any(q.number for q in questions) and any(not q.number for q in questions)
    assert len({q.stem for q in questions}) == len(questions)


def seen(text):
    """How long an option looks to a student: a command of LaTeX is one sign, marks are none."""
    return len(re.sub(r"[${}_^`*]", "", re.sub(r"\\[a-zA-Z]+", "x", text)))


def by_length(extreme):
    def fits(options):
        lengths = [seen(option) for option in options]
        return [length == extreme(lengths) for length in lengths]

    return fits


# For each way to guess, which options it may choose. If it fits none, any may be chosen.
GUESSES = {
    "the longest": by_length(max),
    "the second longest": by_length(lambda lengths: sorted(lengths)[-2]),
    "the shortest": by_length(min),
    "one without a reason": lambda options: [not re.search("because|since", o) for o in options],
    "the first": lambda options: [i == 0 for i in range(len(options))],
    "the second": lambda options: [i == 1 for i in range(len(options))],
    "the third": lambda options: [i == 2 for i in range(len(options))],
    "the last": lambda options: [i == len(options) - 1 for i in range(len(options))],
}


@pytest.mark.parametrize("guess", GUESSES)
def test_neither_length_nor_place_gives_the_right_option_away(guess):
    """Somebody who knows nothing and guesses in this way is right in at most 0.4 of all choices.

    A blind guess among four is right in 0.25. When this was written the best of these had 0.30, and
    "the longest" 0.27.
    """
    choices = [quiz.options for _, _, questions in BANK for quiz in questions if not quiz.number]
    hits = 0.0
    for options in choices:
        fits = GUESSES[guess]([option.text for option in options])
        fits = fits if any(fits) else [True] * len(fits)
        hits += sum(o.right for o, fit in zip(options, fits, strict=True) if fit) / sum(fits)
    assert hits / len(choices) <= 0.4


def test_moodle_reads_it():
    root = ElementTree.fromstring(moodle_xml("A course", [(h, qs) for _, h, qs in BANK]))
    assert root.tag == "quiz"
    by_type = {kind: root.findall(f"question[@type='{kind}']") for kind in
               ("category", "multichoice", "numerical")}  # fmt: skip
    assert sum(map(len, by_type.values())) == len(root)
    assert len(by_type["category"]) == len(BANK)
    ids = [q.findtext("idnumber") for q in root if q.get("type") != "category"]
    assert len(set(ids)) == len(ids) and all(ids)
    for question in by_type["multichoice"] + by_type["numerical"]:
        answers = question.findall("answer")
        assert question.findtext("name/text") and question.findtext("questiontext/text")
        assert sum(a.get("fraction") == "100" for a in answers) == 1
        assert all(a.findtext("feedback/text") for a in answers)
        assert not re.search(r"<math|\$", ElementTree.tostring(question, encoding="unicode"))
    for question in by_type["multichoice"]:
        assert question.findtext("shuffleanswers") == "true" and question.findtext("single")
    for question in by_type["numerical"]:
        assert all(float(a.findtext("text")) < 1e9 for a in question.findall("answer"))
        assert all(float(a.findtext("tolerance")) > 0 for a in question.findall("answer"))


def test_canvas_reads_it():
    package = qti_package(BANK)
    assert package == qti_package(BANK)
    archive = zipfile.ZipFile(io.BytesIO(package))
    manifest = ElementTree.fromstring(archive.read("imsmanifest.xml"))
    resources = manifest.findall(f".//{{{MANIFEST}}}resource")
    files = [f.get("href") for r in resources for f in r.findall(f"{{{MANIFEST}}}file")]
    assert sorted([*files, "imsmanifest.xml"]) == sorted(archive.namelist())
    known = {r.get("identifier") for r in resources}
    assert all(d.get("identifierref") in known
               for d in manifest.findall(f".//{{{MANIFEST}}}dependency"))  # fmt: skip
    for resource in (r for r in resources if r.get("type") == QUIZ):
        name = resource.get("identifier")
        root = ElementTree.fromstring(archive.read(f"{name}/{name}.xml"))
        assert root.tag == f"{Q}questestinterop"
        for item in root.findall(f".//{Q}item"):
            verify_item(item)
        settings = archive.read(f"{name}/assessment_meta.xml").decode()
        assert "<shuffle_answers>true</shuffle_answers>" in settings


def verify_item(item):
    """What an answer is, what it earns and what is said about it refer to one another."""
    kind = item.findtext(f".//{Q}qtimetadatafield/{Q}fieldentry")
    feedback = {f.get("ident") for f in item.findall(f"{Q}itemfeedback")}
    linked = {d.get("linkrefid") for d in item.findall(f".//{Q}displayfeedback")}
    assert feedback == linked and feedback
    scored = [c for c in item.findall(f".//{Q}respcondition") if c.find(f"{Q}setvar") is not None]
    assert len(scored) == 1 and scored[0].findtext(f"{Q}setvar") == "100"
    right = scored[0].find(f".//{Q}varequal")
    if kind == "numerical_question":
        low, high = (float(scored[0].findtext(f".//{Q}{tag}")) for tag in ("vargte", "varlte"))
        assert low <= float(right.text) <= high
    else:
        assert kind == "multiple_choice_question"
        labels = {x.get("ident") for x in item.findall(f".//{Q}response_label")}
        assert right.text in labels and len(labels) >= 3
    texts = [m.text for m in item.findall(f".//{Q}mattext")]
    assert all(texts) and not any("$" in text or "<math" in text for text in texts)


def test_formulas_are_in_each_platforms_way():
    moodle = moodle_xml("c", [(h, qs) for _, h, qs in BANK])
    assert "\\(\\pi = (0.5, 0.3, 0.2)\\)" in moodle
    archive = zipfile.ZipFile(io.BytesIO(qti_package(BANK)))
    canvas = archive.read("02_policy_gradient/02_policy_gradient.xml").decode()
    assert 'class="equation_image"' in ElementTree.fromstring(canvas).find(f".//{Q}mattext").text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("## A\n\nWhy?\n\n- [x] a\n- [ ] b\n  > no\n", "two wrong ones or more"),
        ("## A\n\nWhy?\n\n- [x] a\n- [ ] b\n- [ ] c\n  > no\n", "says why it is wrong"),
        ("## A\n\nHow many?\n\n= 2 ± 0.1\n", "no line `code`"),
        ("## A\n\nHow?\n\n= 2 ± 0.1\n`2`\n!= 2.05\n  > no\n", "within the tolerance"),
        ("## A\n\n- [x] a\n- [ ] b\n  > no\n- [ ] c\n  > no\n", "has no text"),
    ],
)
def test_an_incomplete_question_is_named(tmp_path, text, said):
    lesson = current(write_course(tmp_path / "course", {"90_fixture": "# 90 · A\n"})).lessons[0]
    assert bank(lesson) == []
    folder = lesson.home / "teaching" / "quiz"
    folder.mkdir(parents=True)
    (folder / "90_fixture.md").write_text(text)
    with pytest.raises(UserError, match=said) as caught:
        bank(lesson)
    assert "question 'A'" in str(caught.value) and "90_fixture.md" in str(caught.value)
