"""Quiz questions as Moodle XML, which *Question bank → Import* reads."""

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rlcourse.teaching.html import for_moodle, html, plain
from rlcourse.teaching.quiz import Option, Quiz


def moodle_xml(category: str, bank: Iterable[tuple[str, list[Quiz]]]) -> str:
    """One file; each lesson of `bank`, (heading, questions), is a category below `category`."""
    root = Element("quiz")
    for heading, questions in bank:
        place = SubElement(SubElement(root, "question", type="category"), "category")
        _text(place, f"$course$/top/{category}/{heading}".replace("//", "/"))
        for quiz in questions:
            root.append(_question(quiz))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _question(quiz: Quiz) -> Element:
    question = Element("question", type="numerical" if quiz.number else "multichoice")
    _text(SubElement(question, "name"), plain(quiz.title))
    _html(question, "questiontext", quiz.stem)
    _html(question, "generalfeedback", f"The right answer: {quiz.right}")
    for tag, value in (("defaultgrade", "1"), ("penalty", "0"), ("hidden", "0")):
        SubElement(question, tag).text = value
    SubElement(question, "idnumber").text = quiz.name
    if quiz.number:
        _answer(question, Option(repr(quiz.number[0]), True), f"{quiz.number[1]:g}")
        for wrong in quiz.options:
            _answer(question, wrong, f"{quiz.number[1]:g}")
        return question
    for tag, value in (
        *(("single", "true"), ("shuffleanswers", "true"), ("answernumbering", "abc")),
        ("showstandardinstruction", "0"),
    ):
        SubElement(question, tag).text = value
    for option in quiz.options:
        _answer(question, option)
    return question


def _answer(question: Element, option: Option, tolerance: str = "") -> None:
    answer = SubElement(question, "answer", fraction="100" if option.right else "0")
    if tolerance:
        answer.set("format", "moodle_auto_format")
        _text(answer, option.text)
        SubElement(answer, "tolerance").text = tolerance
    else:
        answer.set("format", "html")
        _text(answer, html(option.text, for_moodle))
    _html(answer, "feedback", option.feedback or ("Right." if option.right else ""))


def _html(parent: Element, tag: str, markdown: str) -> None:
    _text(SubElement(parent, tag, format="html"), html(markdown, for_moodle))


def _text(parent: Element, text: str) -> None:
    SubElement(parent, "text").text = text
