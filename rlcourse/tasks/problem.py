"""What every task is made of: a question, and an answer in GSM8K's format."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rlcourse.errors import UserError
from rlcourse.tasks.environment import Environment
from rlcourse.tasks.rewards import extract_answer


@dataclass(frozen=True)
class Problem:
    """One question with its worked answer, which ends in a line ``#### N`` as in GSM8K."""

    question: str
    answer: str

    @property
    def target(self) -> str | None:
        """The canonical final number, or None where the answer has none."""
        return extract_answer(self.answer)


@dataclass(frozen=True)
class Task:
    """Problems to train on and problems, never seen in training, to evaluate on.

    ``extract`` reads the final answer out of a completion; rewards and evaluation both use it.
    ``demonstrations`` are what supervised fine-tuning imitates; None stands for ``train``.
    ``environment`` makes an environment of one problem, where a problem is one that answers back:
    the policy then plays episodes of several turns, and the environment pays the rewards.
    """

    name: str
    train: Sequence[Problem]
    evaluation: Sequence[Problem]
    extract: Callable[[str], str | None] = extract_answer
    demonstrations: Sequence[Any] | None = None  # with `question` and `answer`, as a Problem
    environment: Callable[[Any], Environment] | None = None


P = TypeVar("P", bound=Problem)
MOST_REPEATS = 20_000  # in a row, after which a source has nothing new


def distinct(n: int, source: Iterator[P]) -> list[P]:
    """The first `n` problems of an endless source whose questions differ.

    Raises:
        UserError: the source has fewer.
    """
    found: dict[str, P] = {}
    repeats = 0
    while len(found) < n:
        problem = next(source)
        repeats = repeats + 1 if problem.question in found else 0
        if repeats > MOST_REPEATS:
            raise UserError(
                f"there are only {len(found):,} different problems of this kind, not {n:,}: "
                "ask for fewer"
            )
        found[problem.question] = problem
    return list(found.values())
