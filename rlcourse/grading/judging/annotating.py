"""What became of a submission, written into its notebook for people."""

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output

from rlcourse.grading.judging.mark import Mark
from rlcourse.grading.pages.markdown import plain
from rlcourse.grading.running.steps import Incident, Transcript
from rlcourse.words import points_of


def annotate(
    notebook: NotebookNode,
    transcript: Transcript,
    marks: dict[str, Mark],
    incidents: list[Incident],
) -> None:
    """Insert what cells printed, how they failed, and the verdicts, as text only."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        mark = marks.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
        answer = transcript.cells.get(f"cell {cell.id}")
        if mark:
            cell.outputs = _verdict(mark)
        elif answer:
            cell.outputs = _said(answer)
    if incidents:
        said = "\n".join(f"- {plain(str(incident))}" for incident in incidents)
        text = f"**While this submission was graded:**\n\n{said}"
        notebook.cells.insert(0, new_markdown_cell(text, id="grading-status"))


def _verdict(mark: Mark) -> list[NotebookNode]:
    earned = points_of(mark.points, mark.possible)
    return [
        new_output("display_data", data={"text/plain": mark.message}),
        new_output("execute_result", data={"text/plain": earned}, execution_count=1),
    ]


def _said(answer) -> list[NotebookNode]:
    outputs = []
    if answer.printed:
        outputs.append(new_output("stream", name="stdout", text=answer.printed))
    if answer.error:
        error = answer.error
        line = f"line {error.line_number}: {error.line}" if error.line_number else ""
        summary = f"{error.type}: {error.message}"
        trace = [text for text in (line, summary) if text]
        outputs.append(new_output("error", ename=error.type, evalue=error.message, traceback=trace))
    return outputs
