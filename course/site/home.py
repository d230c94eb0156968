"""The site's home page: what people who have never heard of the course see first."""

import re
from html import escape
from pathlib import Path

import front
import run
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rlcourse import exercises
from rlcourse.authoring.filling import about_lesson
from rlcourse.courses import current

HERE = Path(__file__).parent
# How long a lesson takes, by its text; what is optional comes later in that sentence.
TIME = re.compile(
    r"\*\*Time\*\* (?:about )?(\d+|an hour|two hours)(?: and (a quarter|a half|three quarters))?"
)
MINUTES = {"an hour": 60, "two hours": 120, "a quarter": 15, "a half": 30, "three quarters": 45}
TITLE = "Write the functions that train the model"
DESCRIPTION = (
    "rlcourse, a free course on reinforcement learning for language models: you write PPO, GRPO "
    "and DPO, your functions run the training, and a wrong one is named."
)


def page(pictures: dict[str, dict], colab: str, repository: str) -> str:
    """The page as Markdown.

    Args:
        pictures: {lesson: file, width and height of the first picture that it draws}.
        colab, repository: where the first lesson opens, and where the source is; "" if nowhere.
    """
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = made.get_template("home.html").render(
        **facts(), **mistake(), **trained(), **lessons(pictures), colab=colab, repository=repository
    )
    about = f"---\nhide-toc: true\ndescription: {DESCRIPTION!r}\n---\n"
    return f"{about}# {TITLE}\n\n```{{raw}} html\n{html}\n```\n"


def facts() -> dict:
    known = list(exercises.all(contests=True))
    mistakes = sum(len(exercise.mistakes) for exercise in known)
    return {
        "facts": [
            (len(current().lessons), "lessons"),
            (hours(), "hours"),
            (len(known), "exercises"),
            (f"{mistakes:,}", "named mistakes"),
        ],
        "bibtex": bibtex(front.ROOT / "CITATION.cff"),
    }


def hours() -> int:
    """Of all lessons together; the first one, of ten minutes, does not count."""
    texts = "".join(lesson.text.read_text("utf-8") for lesson in current().lessons)
    declared = [part for pair in TIME.findall(texts) for part in pair if part]
    return round(sum(MINUTES.get(part) or int(part) for part in declared) / 60)


def mistake() -> dict:
    """The check that goes wrong, is named, and goes right."""
    shown = front.named_mistake()
    sentences = map(escape, shown.wrong.sentences)
    return {
        "shown": shown,
        "wrong_line": escape(shown.wrong_line),
        "right_line": escape(shown.right_line),
        "sentences": [re.sub(r"\*(\w[^*]*)\*", r"<em>\1</em>", text) for text in sentences],
    }


def trained() -> dict:
    """The card of the recorded run: its curve, and a problem that it learned to solve."""
    record = run.recorded()
    measured = record.held_out()
    pairs = zip(record.before.transcripts, record.after.transcripts, strict=True)
    before, after = next(p for p in pairs if p[1].correct and not p[0].correct)
    return {
        "before": front.share(measured[0][1]),
        "after": front.share(measured[-1][1]),
        "problems": record.before.problems,
        "steps": record.steps,
        "command": run.COMMAND,
        "chart": front.curve((480, 250)),
        "question": before.question,
        "answers": [pair.completion.strip() for pair in (before, after)],
    }


def lessons(pictures: dict[str, dict]) -> dict:
    """The lessons as cards, each with the first picture that it draws."""

    def card(lesson) -> dict:
        own = {"lesson": lesson.name, "number": lesson.number}
        return {**about_lesson(lesson), **own, "picture": pictures.get(lesson.name)}

    return {"cards": list(map(card, current().lessons)), "first": current().lessons[0]}


def bibtex(file: Path) -> str:
    """How to cite the course, from its CITATION.cff."""
    about = yaml.safe_load(file.read_text("utf-8"))
    authors = " and ".join(f"{{{author['name']}}}" for author in about["authors"])
    lines = {
        "title": f"{{{about['title']}}}",
        "author": authors,
        "version": about["version"],
        "url": about.get("repository-code", ""),
    }
    fields = [f"  {key} = {{{value}}}" for key, value in lines.items() if value]
    return "@software{rlcourse,\n" + ",\n".join(fields) + "\n}"
