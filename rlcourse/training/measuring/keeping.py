"""Some groups of completions on the way through a run, for the report that scrubs through it.

They are groups that the run sampled for its own updates, with the advantages that it used, so that
keeping them costs no more than writing them down: a line of ``groups.jsonl`` a kept step.
"""

import json
from pathlib import Path

from rlcourse.files import write_errors_explained, write_text
from rlcourse.policy.rollouts import Rollouts
from rlcourse.reports.run_record import read_metrics
from rlcourse.training.measuring.inspecting import by_question, per_token

STEPS, GROUPS = 24, 3  # of a run, and of a step; the first ones, for choosing would flatter


def kept_steps(total: int, most: int = STEPS) -> set[int]:
    """At most that many of the steps 1 … total, evenly spread, with the first and the last."""
    if total <= most:
        return set(range(1, total + 1))
    return {1 + round(i * (total - 1) / (most - 1)) for i in range(most)}


class KeptGroups:
    """Writes to ``groups.jsonl`` in the directory of a run of that many steps."""

    def __init__(self, directory: Path, steps: int, tokenizer):
        self.path = directory / "groups.jsonl"
        self.steps = kept_steps(steps)
        self.tokenizer = tokenizer
        self._begun = False

    def __call__(self, step: int, rollouts: Rollouts) -> None:
        """Keep what is to be kept of this step's completions.

        Lines of this step and later ones, left by a run that was killed, are cut away first.
        Raises ``UserError`` on a full disk.
        """
        if step not in self.steps or rollouts.rewards is None:
            return
        if not self._begun and self.path.exists():
            earlier = [line for line in read_metrics(self.path) if line["step"] < step]
            write_text(self.path, "".join(map(_line, earlier)))
        self._begun = True
        with write_errors_explained(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(_line({"step": step, "groups": self._groups(rollouts)}))

    def _groups(self, rollouts: Rollouts) -> list[dict]:
        some = rollouts.rows(slice(0, GROUPS * rollouts.group_size))
        values = {}
        if some.advantages is not None:
            values["advantage"] = per_token(some.advantages, some.mask)
        return [
            {
                "question": question,
                "completions": [
                    {
                        "tokens": one.texts,
                        "reward": one.reward,
                        "advantage": _short(one.values.get("advantage", [])),
                    }
                    for one in completions
                ],
            }
            for question, completions in by_question(self.tokenizer, some, values).items()
        ]


def _short(values: list[float]) -> list[float]:
    """One number where all tokens have the same."""
    return values[:1] if len(set(values)) == 1 else values


def _line(value: dict) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
