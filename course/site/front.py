"""A named mistake, and the accuracy that rises once it is fixed: what everyone sees first.

Both are real. The check is run on the function with one word changed; the curve is read from the
recorded run. `python course/site/front.py` writes them to `front.svg` and in words to the README,
which shows it.
"""

import linecache
import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import run

from rlcourse import exercises
from rlcourse.authoring.stubs import solution
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.telling.result import Result
from rlcourse.checks.telling.shrinking import with_smaller_example
from rlcourse.errors import UserError
from rlcourse.reports.charts import Line, plot, svg, texts

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PICTURE, README = HERE / "front.svg", ROOT / "README.md"
EXERCISE, WRONG, RIGHT = "ppo_clip_loss", "torch.maximum", "torch.minimum"
SEED = 0  # of the check's cases
LINE = 25  # from one line of text to the next

STYLE = """
text { font: 16px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  fill: #1c2230; white-space: pre }
.sans, .tick, .label {
  font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
.tick, .soft { fill: #5d6778 } .bold { font-weight: 700 }
.tick { font-size: 14px; text-anchor: end } .tick.x { text-anchor: middle }
.wrong { fill: #b3324a } .right { fill: #0b7a55 }
.paper { fill: #fff } .frame { fill: #fff; stroke: #d8dde5 } .grid { stroke: #e2e6ec }
.edge { fill: #d1553b } .edge.good { fill: #2a9d5c }
.line { fill: none; stroke: #0a6cab; stroke-width: 3 } .band { fill: #0a6cab; opacity: .16 }
.dot { fill: #0a6cab } .label { font-size: 18px; font-weight: 700; fill: #0a6cab }
svg svg { overflow: visible }
"""
DARK = """
@media (prefers-color-scheme: dark) {
text { fill: #e6eaf1 } .tick, .soft { fill: #9fabbd } .wrong { fill: #f2798c }
.right { fill: #4cc79a } .paper { fill: #10141b } .frame { fill: #181e28; stroke: #2b3442 }
.grid { stroke: #2b3442 } .line { stroke: #5cb6f2 } .band, .dot, .label { fill: #5cb6f2 }
}
"""


@dataclass(frozen=True)
class Shown:
    """One function, wrong and then right, and what its check says about each."""

    wrong_line: str
    right_line: str
    wrong: Result
    right: Result


@cache
def named_mistake() -> Shown:
    """The check, run on the function with one word changed and on the function itself."""
    exercise = exercises.get(EXERCISE)
    text = solution(exercise.reference, marks=False)
    if text.count(RIGHT) != 1:
        raise UserError(f"{EXERCISE} does not have the one {RIGHT} that front.py changes.")
    line = next(line.strip() for line in text.splitlines() if RIGHT in line)
    wrong = text.replace(RIGHT, WRONG)
    return Shown(line.replace(RIGHT, WRONG), line, _checked(wrong), _checked(text))


def _checked(text: str) -> Result:
    """What the exercise's check says about this text, without recording an attempt."""
    exercise = exercises.get(EXERCISE)
    file = f"<{EXERCISE}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names = dict(exercise.reference.__globals__)
    exec(compile(text, file, "exec"), names)
    exam = Exam(exercise, SEED)
    result = exam.judge(describe(names[EXERCISE]), call_all(names[EXERCISE], exam.cases))
    return with_smaller_example(result, exercise, names[EXERCISE])


def plain(sentence: str) -> str:
    """A sentence of a check without the marks of emphasis."""
    return re.sub(r"[*`]", "", sentence)


def share(value: float) -> str:
    """.145"""
    return f"{value:.3f}".removeprefix("0")


# the drawing


def check_box(x: float, y: float, width: float, letters: int) -> tuple[str, float]:
    """The code and what its check says, wrong and right; and where the box ends."""
    shown = named_mistake()
    first, *others = shown.wrong.sentences
    lines = [("soft", "# you write"), ("", shown.wrong_line), ("", "")]
    lines += [("wrong bold", shown.wrong.headline)]
    lines += [("bold", part) for part in textwrap.wrap(plain(first), letters)]
    lines += [("", part) for other in others for part in textwrap.wrap(plain(other), letters)]
    said = len(lines)
    lines += [("", ""), ("soft", "# you change one word"), ("", shown.right_line), ("", "")]
    lines += [("right bold", shown.right.headline)]
    height = 25 * len(lines) + 34
    box = f'<rect class="frame" x="{x}" y="{y}" width="{width}" height="{height}" rx="12"/>'
    for kind, top, bottom in (("", 3, said), ("good", len(lines) - 1, len(lines))):
        place = f'x="{x + 20}" y="{y + 17 + 25 * top + 2}" height="{25 * (bottom - top)}"'
        box += f'<rect class="edge {kind}" {place} width="4" rx="2"/>'
    return box + texts(lines, x + 36, y + 38, LINE), y + height


def curve(size: tuple[int, int], **attributes) -> str:
    """Accuracy on held-out problems against step, with its interval; the ends in numbers."""
    measured = run.recorded().held_out()
    points = [(step, value) for step, value, *_ in measured]
    band = [(step, low, high) for step, _, low, high in measured]
    first, last = (share(value) for _, value in (points[0], points[-1]))
    lines = [
        Line(points, label=last, band=band, look="plain"),
        Line(points[:1], label=first, look="plain"),
    ]
    label = f"Accuracy rises from {first} to {last}."
    return str(plot(lines, share=True, size=size, label=label, **attributes))


def file(width: float, height: float, parts: str, label: str, style: str) -> str:
    """A picture as a file of its own."""
    alone = {"xmlns": "http://www.w3.org/2000/svg", "width": f"{width:g}", "height": f"{height:g}"}
    return svg((width, height), parts, label, style, **alone) + "\n"


def described() -> str:
    """The picture in words."""
    shown, measured = named_mistake(), run.recorded().held_out()
    headline = " ".join(shown.wrong.headline.split())
    said = " ".join([f"{headline}.", *map(plain, shown.wrong.sentences)])
    return (
        f"A check names the mistake: {said} Beside it, accuracy on held-out "
        f"problems rises from {share(measured[0][1])} to {share(measured[-1][1])} "
        f"in {measured[-1][0]} training steps."
    )


def picture() -> str:
    """The README's picture."""
    box, end = check_box(0.5, 0.5, 580, 54)
    said = [("sans bold", "Then your functions train the model")]
    said += [("sans soft", "GRPO: held-out problems answered right")]
    width, height = 390, int(end) - 80
    chart = texts(said, 624, 38, LINE)
    chart += curve((width, height), x=600, y=76, width=width, height=height)
    ground = f'<rect class="paper" width="1000" height="{end + 0.5}" rx="12"/>'  # of any page
    return file(1000, end + 0.5, ground + box + chart, described(), STYLE + DARK)


def with_description(readme: str) -> str:
    """The README with the words for readers who do not see its picture."""
    return re.sub(r"!\[[^\]]*\]\((\S+front\.svg)\)", rf"![{described()}](\1)", readme)


if __name__ == "__main__":
    README.write_text(with_description(README.read_text("utf-8")), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")
