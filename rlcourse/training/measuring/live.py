"""A run while it trains: its curves, held-out accuracy against the start, and what it writes to one
question by now. A notebook shows all of it, a terminal the words.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import shorten
from typing import Any

import torch

from rlcourse.evaluation import Evaluation, Interval
from rlcourse.evaluation.solving import is_right
from rlcourse.evaluation.transcripts import answer_card, problem_card
from rlcourse.reports.charts import HEIGHT, WIDE, Line, plot
from rlcourse.tasks.problem import Problem, Task
from rlcourse.training.networks.optimizer import autocast
from rlcourse.training.recipes.settings import Recipe

SHARE = 0.03  # of the time, at most, goes into asking the question
LETTERS = 300  # of a text in a terminal
PAUSE = 1.0  # seconds between two answers, at least
SHOWN = (0.0, 0.1)  # of shares, at least; where more is right, the picture's axis grows
TRAINING = {"reward/mean": "reward", "rewards/accuracies": "pairs right"}  # as they are called
HELD_OUT = ("eval/accuracy", "eval/pair_accuracy")
STYLE = """
.rl-live svg{display:block;width:100%;max-width:32em;height:auto;margin:.3em 0}
.rl-live .grid{stroke:currentColor;stroke-opacity:.18}
.rl-live text{fill:currentColor;font-size:12px}
.rl-live .tick{fill-opacity:.8;text-anchor:end}.rl-live .tick.x{text-anchor:middle}
.rl-live text.label{font-weight:600;fill:color-mix(in srgb,var(--c) 65%,currentColor)}
.rl-live .line{fill:none;stroke:var(--c);stroke-width:2.2;stroke-linejoin:round}
.rl-live .raw{stroke-opacity:.35;stroke-width:1.2}
.rl-live .dot{fill:var(--c)}.rl-live .band{fill:var(--c);fill-opacity:.16}
.rl-live .training{--c:#3a8fd0}.rl-live .held{--c:#d9622b}
""".strip().replace("\n", "")


@dataclass
class Live:
    """What there is to see of a run so far. Ask it for ``_repr_html_`` at any time."""

    recipe: Recipe
    policy: Any  # as `train` takes it; None where nothing is asked of it
    task: Task
    problem: Problem | None = None
    answers: list[tuple[str, str, str | None]] = field(default_factory=list)  # when, text, number
    training: dict[str, list[tuple[int, float]]] = field(default_factory=dict)  # by metric
    held_out: list[tuple[int, Interval]] = field(default_factory=list)
    next_answer: float = 0.0  # not before this time

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        policy,
        task: Task,
        before: Evaluation | None,
        history: Sequence[dict] = (),
    ) -> "Live":
        """At the start of a run, or after the steps of its `history` where it is resumed.

        Its question is one that the policy can answer, but does not.
        """
        live = cls(recipe, policy, task)
        if before and before.transcripts:
            live.held_out.append((0, before.accuracy))
            shown = max(before.transcripts, key=lambda t: (not t.correct, t.samples_correct))
            live.problem = Problem(shown.question, shown.answer)
            live.answers.append(("before training", shown.completion, shown.given))
        elif recipe.method.trains_policy and len(task.evaluation):
            live.problem = task.evaluation[0]
        for metrics in history:
            live.follow(metrics, ask=False)
        return live

    def follow(self, metrics: dict, ask: bool = True) -> None:
        """Add a step, and ask the question again where it is time to, unless not to `ask`.

        It is time to after each evaluation, so that the answer is the one of the policy that was
        measured.
        """
        step, known = metrics["step"], len(self.held_out)
        for key in (*TRAINING, "loss"):
            if key in metrics:
                self.training.setdefault(key, []).append((step, metrics[key]))
        for key in HELD_OUT:
            if key in metrics:
                interval = Interval(*(metrics[key + end] for end in ("", "_low", "_high")))
                self.held_out.append((step, interval))
        due = len(self.held_out) > known or time.monotonic() >= self.next_answer
        if self.problem and ask and due:
            self._ask(self.problem, f"after step {step}")

    def end(self, after: Evaluation | None) -> None:
        """The run is through: what was measured after it takes the place of the last answer."""
        if after is None or self.problem is None:
            return
        steps = self.recipe.steps
        if not self.held_out or self.held_out[-1][0] < steps:
            self.held_out.append((steps, after.accuracy))
        for transcript in after.transcripts:
            if transcript.question == self.problem.question:
                self._show("after training", transcript.completion, transcript.given)

    def lines(self) -> str:
        """How it does and what it writes by now, in words; the question is asked for this."""
        step = self.held_out[-1][0]
        said = [f"after step {step} of {self.recipe.steps}: {self._standing()}"]
        if self.problem and self.answers:
            self._ask(self.problem, f"after step {step}")
            said += [f"  {_short(self.problem.question)}"]
            for when, text, given in self.answers:
                mark = "right" if is_right(given, self.problem) else "wrong"
                said += [f"  {when}, {mark}: {_short(text)}"]
        return "\n".join(said)

    def _standing(self) -> str:
        """Held-out accuracy by now against the start, with 95 % intervals."""
        if not self.held_out:
            return ""
        (_, first), (_, last) = self.held_out[0], self.held_out[-1]
        since = f", before training {first}" if len(self.held_out) > 1 else ""
        return f"held-out accuracy {last}{since}"

    @torch.no_grad()
    def _ask(self, problem: Problem, when: str) -> None:
        started = time.monotonic()
        prompt = self.policy.format_prompt(problem.question, system=self.recipe.system)
        with autocast(self.policy.device, self.recipe.dtype):
            written = self.policy.sample(
                [prompt], max_tokens=self.recipe.max_tokens, temperature=0.0
            )
        (text,) = self.policy.decode(written)
        self._show(when, text, self.task.extract(text))
        now = time.monotonic()
        self.next_answer = now + max(PAUSE, (now - started) / SHARE)

    def _show(self, when: str, text: str, given: str | None) -> None:
        self.answers = [*self.answers[:1], (when, text, given)]

    def _repr_html_(self) -> str:
        shown = f"<style>{STYLE}</style>{self._curves()}{self._held()}{self._answers()}"
        return f'<div class="rl-live">{shown}</div>'

    def _held(self) -> str:
        return f"<div>{escape(self._standing())}</div>" if self.held_out else ""

    def _curves(self) -> str:
        """Shares of what is right in one picture; the loss, which has no scale, in its own."""
        lines = [
            Line(self.training[key], "training", name)
            for key, name in TRAINING.items()
            if key in self.training
        ]
        loss = [] if lines else [Line(self.training.get("loss", []), "training", "loss")]
        points = [(step, interval.value) for step, interval in self.held_out]
        band = [(step, interval.low, interval.high) for step, interval in self.held_out]
        lines.append(Line(points, "held", "held-out", band, look="dots"))
        until, size = self.recipe.steps, (WIDE, HEIGHT)
        return plot(lines, reach=SHOWN, until=until, size=size) + plot(loss, until=until, size=size)

    def _answers(self) -> str:
        if not self.problem or not self.answers:
            return ""
        cards = [
            answer_card(when, text, given, is_right(given, self.problem))
            for when, text, given in self.answers
        ]
        return problem_card(self.problem.question, cards)


def _short(text: str) -> str:
    """A text on one line, cut where it is long."""
    return shorten(" / ".join(text.strip().splitlines()), LETTERS, placeholder=" …")
