"""What cells showed when the course ran them: what is kept, where it appears, what drifts."""

import base64
import io
import json

import nbformat
import pytest
from fixture_course import LESSON, NAME
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from rlcourse.authoring.builder import build
from rlcourse.authoring.lesson import read_lesson
from rlcourse.authoring.recording import recording, with_opening
from rlcourse.courses.outputs import Outputs, key
from rlcourse.errors import UserError

SOURCE = "if ready(f):\n    draw()"


def picture(color: str, width: int = 40) -> str:
    """A panel as a figure shows it: twice as many pixels as it is wide on the page."""
    file = io.BytesIO()
    Image.new("RGB", (2 * width, 60), color).save(file, "PNG")
    png = base64.b64encode(file.getvalue()).decode()
    return (
        f'<img class="rlcourse-picture" alt="a {color} [panel] &lt;1&gt;" width="{width}" '
        f'style="" src="data:image/png;base64,{png}">'
    )


def solved(*html: str, tags=(), text: str = "") -> nbformat.NotebookNode:
    shown = [new_output("display_data", {"text/html": part}) for part in html]
    shown += [new_output("stream", text=text)] if text else []
    cell = new_code_cell(SOURCE, outputs=shown, metadata={"tags": list(tags)})
    return new_notebook(cells=[cell, new_code_cell("draw()", outputs=shown)])


def test_what_waiting_cells_showed_is_kept_and_nothing_with_scripts():
    found = recording(solved("<b>bold</b>", "<script>1</script>", text="2 < 3 $\n"), Outputs())
    kept = '<b>bold</b><pre style="background: none">2 &lt; 3 <span>$</span></pre>'
    assert found.cells == {key(SOURCE): kept}
    assert found.opening == {}  # no cell is tagged


def test_panels_become_one_picture_at_their_size_on_the_page():
    opening = recording(solved(picture("red"), picture("blue"), tags=["opening"]), Outputs())
    whole = Image.open(io.BytesIO(base64.b64decode(opening.opening["png"]))).convert("RGB")
    assert whole.size == (84, 30)
    assert whole.getpixel((10, 10)) == (255, 0, 0) and whole.getpixel((70, 10)) == (0, 0, 255)
    text = with_opening(
        new_notebook(cells=[new_markdown_cell("a\n\n<!-- opening -->\n\nb")]), opening
    )
    cell = text.cells[0]
    assert cell.source.startswith("a\n\n![a red  panel  <1> a blue")
    assert cell.source.endswith("](attachment:opening.png)\n\nb")
    assert cell.attachments["opening.png"]["image/png"] == opening.opening["png"]


@pytest.mark.parametrize(
    "text",
    [
        LESSON.replace("Write the score.", "<!-- opening -->"),
        LESSON.replace('["demo"]', '["demo", "opening"]'),
    ],
)
def test_a_mark_without_its_cell_is_named_and_the_other_way_around(tmp_path, registry, text):
    path = tmp_path / NAME / "lesson.md"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(UserError, match=rf"{NAME}/lesson.md:\d+: .* just one cell tagged opening"):
        read_lesson(path, registry)


@pytest.mark.slow
def test_an_executed_lesson_is_recorded_beside_its_text(course, registry):
    text = LESSON.replace("Write the score.", "Write the score.\n\n<!-- opening -->")
    shows = f'    display(HTML("""{picture("red")}"""))\n    print("the demo ran"'
    imports = "from tqdm.notebook import tqdm\n"
    drawn = (
        text.replace('["demo"]', '["demo", "opening"]')
        .replace('    print("the demo ran"', shows)
        .replace(imports, imports + "from IPython.display import HTML, display\n")
    )
    (course / "course/lessons" / NAME / "lesson.md").write_text(drawn)
    options = {"root": course, "registry": registry, "progress": False}
    build(execute=True, **options)
    recorded = json.loads((course / "course/lessons" / NAME / "recorded.json").read_text("utf-8"))
    (shown,) = recorded["cells"].values()
    assert "the demo ran [0.5, -0.5]" in shown and "rlcourse-picture" in shown
    for path in (course / "notebooks" / NAME / f"{NAME}.ipynb", course / f"solutions/{NAME}.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        (opened,) = [cell for cell in cells if cell.get("attachments")]
        assert opened.attachments["opening.png"]["image/png"] == recorded["opening"]["png"]
    assert build(check=True, **options) == [] and build(**options)[0].written == ()
