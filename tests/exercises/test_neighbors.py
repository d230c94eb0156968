"""The proof of names: what it makes up, and that it fails where a name is false."""

from dataclasses import replace

import pytest

from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.proving.proof_of_neighbors import source_of, try_neighbors
from rlcourse.courses.exercise_page import read_page
from rlcourse.errors import UserError
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


def with_other(name, words, **others):
    """The exercise, in which one mistake declares more."""
    exercise = get(name)
    changed = tuple(replace(m, **others) if words in m.name else m for m in exercise.mistakes)
    return replace(exercise, mistakes=changed)


def false_ones(exercise):
    return [tried for tried in try_neighbors(Exam(exercise, 0), 0) if not tried.ok]


def test_a_neighbor_that_gets_the_name_fails_the_proof():
    median = get("mean_reward").mistakes[5]
    assert median.name == "the median"
    again = lambda rewards: rewards.sort().values[(len(rewards) - 1) // 2]  # noqa: E731
    (found,) = false_ones(with_other("mean_reward", "the median", neighbors=(again,)))
    assert found.kind == "neighbor" and "it is called “the median”" in found.verdict
    assert not false_ones(with_other("mean_reward", "the median", paraphrases=(again,)))


def test_a_paraphrase_that_does_not_get_the_name_fails_the_proof():
    other = lambda rewards: rewards.max()  # noqa: E731
    (found,) = false_ones(with_other("mean_reward", "the median", paraphrases=(other,)))
    assert found.kind == "paraphrase" and "best reward" in found.verdict


@pytest.mark.parametrize("name", ["masked_mean", "mean_reward", "extract_answer", "robust_reward"])
def test_the_source_of_nearly_every_mistake_is_known(name):
    """Edits of a sketch, lambdas of a page, functions of the module, and functions in functions."""
    mistakes = get(name).mistakes
    known = [m for m in mistakes if source_of(m.implementation)]
    assert len(known) > 0.9 * len(mistakes)
    kinds = {tried.kind for tried in try_neighbors(Exam(get(name), 0), 0)}
    assert kinds == {"paraphrase", "neighbor"}


def test_a_page_declares_paraphrases_and_neighbors(tmp_path):
    path = tmp_path / "mean.md"
    others = "paraphrase: `by_loop`\nneighbor: `x.mean()` → `x.sum() / 2`\nneighbor: `f(2)`"
    path.write_text(PAGE.format(others=others), encoding="utf-8")
    (entry,) = read_page(path).mistakes
    assert entry.paraphrases == (((), "by_loop"),)
    assert entry.neighbors == (((("x.mean()", "x.sum() / 2"),), ""), ((), "f(2)"))
    assert entry.diagnosis == "It grows."


def test_a_neighbor_that_is_no_code_is_refused_with_its_line(tmp_path):
    path = tmp_path / "mean.md"
    path.write_text(PAGE.format(others="neighbor: `x.sum()` or so"), encoding="utf-8")
    with pytest.raises(UserError, match=r"mean\.md:16: a paraphrase or neighbor is"):
        read_page(path)
