"""Quiz questions as QTI 1.2, in the package that Canvas's *Settings → Import* reads.

Canvas makes a quiz of each lesson, and adds its questions to the course's banks. Options are
shuffled; what is said about a wrong answer is shown to who gave it.
"""

import io
import zipfile
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rlcourse.teaching.html import for_canvas, html, plain
from rlcourse.teaching.quiz import Option, Quiz

QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
MANIFEST = "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1"
CANVAS = "http://canvas.instructure.com/xsd/cccv1p0"
QUIZ, SETTINGS = (
    "imsqti_xmlv1p2",
    "associatedcontent/imscc_xmlv1p1/learning-application-resource",
)


def qti_package(bank: Sequence[tuple[str, str, list[Quiz]]]) -> bytes:
    """The archive, for lessons of (name, heading, questions); equal questions, equal bytes."""
    files: dict[str, Element] = {"imsmanifest.xml": _manifest([name for name, _, _ in bank])}
    for name, heading, questions in bank:
        files[f"{name}/{name}.xml"] = _assessment(name, heading, questions)
        files[f"{name}/assessment_meta.xml"] = _settings(name, heading, len(questions))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, root in files.items():
            indent(root)
            text = '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode")
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), text)
    return buffer.getvalue()


def _manifest(names: Sequence[str]) -> Element:
    root = Element("manifest", identifier="rlcourse_quizzes", xmlns=MANIFEST)
    metadata = SubElement(root, "metadata")
    SubElement(metadata, "schema").text = "IMS Content"
    SubElement(metadata, "schemaversion").text = "1.1.3"
    SubElement(root, "organizations")
    resources = SubElement(root, "resources")
    for name in names:
        quiz = SubElement(resources, "resource", identifier=name, type=QUIZ)
        SubElement(quiz, "file", href=f"{name}/{name}.xml")
        SubElement(quiz, "dependency", identifierref=f"{name}_meta")
        path = f"{name}/assessment_meta.xml"
        meta = SubElement(
            resources, "resource", identifier=f"{name}_meta", type=SETTINGS, href=path
        )
        SubElement(meta, "file", href=path)
    return root


def _settings(name: str, heading: str, points: int) -> Element:
    root = Element("quiz", identifier=name, xmlns=CANVAS)
    for tag, value in (
        *(("title", heading), ("shuffle_answers", "true"), ("quiz_type", "practice_quiz")),
        *(("points_possible", f"{points}.0"), ("scoring_policy", "keep_highest")),
        *(("show_correct_answers", "true"), ("allowed_attempts", "1")),
    ):
        SubElement(root, tag).text = value
    return root


def _assessment(name: str, heading: str, questions: list[Quiz]) -> Element:
    root = Element("questestinterop", xmlns=QTI)
    assessment = SubElement(root, "assessment", ident=name, title=heading)
    section = SubElement(assessment, "section", ident="root_section")
    for quiz in questions:
        section.append(_item(quiz))
    return root


def _item(quiz: Quiz) -> Element:
    item = Element("item", ident=quiz.name, title=plain(quiz.title))
    fields = SubElement(SubElement(item, "itemmetadata"), "qtimetadata")
    kind = "numerical_question" if quiz.number else "multiple_choice_question"
    for label, entry in (("question_type", kind), ("points_possible", "1.0")):
        one = SubElement(fields, "qtimetadatafield")
        SubElement(one, "fieldlabel").text = label
        SubElement(one, "fieldentry").text = entry
    presentation = SubElement(item, "presentation")
    _material(presentation, quiz.stem)
    if quiz.number:
        answer = SubElement(presentation, "response_str", ident="response1", rcardinality="Single")
        SubElement(
            SubElement(answer, "render_fib", fibtype="Decimal"), "response_label", ident="answer1"
        )
    else:
        _choices(presentation, quiz.options)
    _processing(item, quiz)
    return item


def _choices(presentation: Element, options: list[Option]) -> None:
    answer = SubElement(presentation, "response_lid", ident="response1", rcardinality="Single")
    choices = SubElement(answer, "render_choice", shuffle="Yes")
    for i, option in enumerate(options):
        _material(SubElement(choices, "response_label", ident=str(i)), option.text)


def _processing(item: Element, quiz: Quiz) -> None:
    """What each answer earns, and what is said about a wrong one."""
    processing = SubElement(item, "resprocessing")
    outcomes = SubElement(processing, "outcomes")
    SubElement(outcomes, "decvar", maxvalue="100", minvalue="0", varname="SCORE", vartype="Decimal")
    for i, option in enumerate(quiz.options):
        if option.feedback:
            respond = SubElement(processing, "respcondition", attrib={"continue": "Yes"})
            SubElement(
                SubElement(respond, "conditionvar"), "varequal", respident="response1"
            ).text = option.text if quiz.number else str(i)
            SubElement(respond, "displayfeedback", feedbacktype="Response", linkrefid=f"{i}_fb")
    right = SubElement(processing, "respcondition", attrib={"continue": "No"})
    condition = SubElement(right, "conditionvar")
    if quiz.number:
        value, tolerance = quiz.number
        either = SubElement(condition, "or")
        SubElement(either, "varequal", respident="response1").text = repr(value)
        within = SubElement(either, "and")
        for tag, edge in (("vargte", value - tolerance), ("varlte", value + tolerance)):
            SubElement(within, tag, respident="response1").text = repr(round(edge, 9))
    else:
        chosen = next(i for i, option in enumerate(quiz.options) if option.right)
        SubElement(condition, "varequal", respident="response1").text = str(chosen)
    SubElement(right, "setvar", action="Set", varname="SCORE").text = "100"
    for i, option in enumerate(quiz.options):
        if option.feedback:
            said = SubElement(item, "itemfeedback", ident=f"{i}_fb")
            _material(SubElement(said, "flow_mat"), option.feedback)


def _material(parent: Element, markdown: str) -> None:
    material = SubElement(parent, "material")
    text = html(markdown, for_canvas)
    SubElement(material, "mattext", texttype="text/html").text = text
