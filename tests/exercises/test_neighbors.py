"""The proof fails where code that is like a mistake is named falsely."""

from dataclasses import replace

from rlcourse.checks.proving.proof import prove
from rlcourse.courses.exercise_page import read_page
from rlcourse.exercises import get

PAGE = """---
section: Means
points: 1
difficulty: 1
minutes: 5
---

# Hints

1. a
2. b
3. c

# Mistakes

**a sum**
`x.mean()` → `x.sum()`
{others}
It grows.
"""


def false_ones(**others):
    """What the proof refuses if the mistake “the median” declares more."""
    exercise = get("mean_reward")
    mistakes = tuple(
        replace(m, **others) if m.name == "the median" else m for m in exercise.mistakes
    )
    return [row for row in prove([replace(exercise, mistakes=mistakes)], [0]) if not row.ok]


def test_a_neighbor_that_gets_the_name_fails_the_proof():
    again = lambda rewards: rewards.sort().values[(len(rewards) - 1) // 2]  # noqa: E731
    (found,) = false_ones(neighbors=(again,))
    assert found.kind == "neighbor" and "it is called “the median”" in found.verdict
    assert not false_ones(paraphrases=(again,))


def test_a_paraphrase_that_does_not_get_the_name_fails_the_proof():
    other = lambda rewards: rewards.max()  # noqa: E731
    (found,) = false_ones(paraphrases=(other,))
    assert found.kind == "paraphrase" and "best reward" in found.verdict


def test_a_page_declares_paraphrases_and_neighbors(tmp_path):
    path = tmp_path / "mean.md"
    others = "paraphrase: `by_loop`\nneighbor: `x.mean()` → `x.sum() / 2`\nneighbor: `f(2)`"
    path.write_text(PAGE.format(others=others), encoding="utf-8")
    (entry,) = read_page(path).mistakes
    assert entry.paraphrases == (((), "by_loop"),)
    assert entry.neighbors == (((("x.mean()", "x.sum() / 2"),), ""), ((), "f(2)"))
    assert entry.diagnosis == "It grows."
