"""What a model is trained on from scratch: GSM8K's training problems among generated ones.

GSM8K's solutions are few, so they repeat; each generated problem is new. Both are a function of the
seed and of the position in the sequence alone, so a run that was stopped continues where it was.
"""

from collections.abc import Sequence
from random import Random
from typing import overload

from rlcourse.tasks import Problem, stories, word_problems

ONE_IN = 4  # documents is one of GSM8K's, which are several times as long


class InOrder(Sequence[Problem]):
    """`n` problems with their solutions, in the order in which they are read."""

    def __init__(self, n: int, seed: int):
        self.n, self.seed = n, seed

    def at(self, place: int) -> Problem:
        """The problem at this place, a function of the seed and the place."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, place: int) -> Problem: ...
    @overload
    def __getitem__(self, place: slice) -> list[Problem]: ...
    def __getitem__(self, place):
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(self.n))]
        if not 0 <= place < self.n:
            raise IndexError(place)
        return self.at(place)


class Documents(InOrder):
    """GSM8K's training problems among generated ones."""

    def __init__(self, gsm8k: Sequence[Problem], n: int, seed: int):
        super().__init__(n, seed)
        self.gsm8k = gsm8k
        self._epoch, self._order = -1, list(range(len(gsm8k)))

    def at(self, place: int) -> Problem:
        """One of GSM8K's, or a generated one."""
        return self._gsm8k(place // ONE_IN) if place % ONE_IN == 0 else self._generated(place)

    def _gsm8k(self, place: int) -> Problem:
        """All of them, then all in another order, and so on."""
        epoch, place = divmod(place, len(self.gsm8k))
        if epoch != self._epoch:
            self._epoch, self._order = epoch, list(range(len(self.gsm8k)))
            Random(f"build:{self.seed}:epoch:{epoch}").shuffle(self._order)
        return self.gsm8k[self._order[place]]

    def _generated(self, place: int) -> Problem:
        """A new problem of any level, with its exact solution; never one of those held out."""
        rng = Random(f"build:{self.seed}:{place}")
        level = rng.choice(list(word_problems.LEVELS))
        return next(word_problems.stream(rng, level, "train"))


class Stories(InOrder):
    """Stories with the solutions of a careless teacher, among drills whose sums are right."""

    def at(self, place: int) -> Problem:
        """A drill, or a story that is not held out."""
        rng = Random(f"stories:{self.seed}:{place}")
        if place % ONE_IN == 0:
            return stories.drill(rng)
        story = next(stories.stream(rng))
        return Problem(story.question, stories.answer(story, stories.SLOP, rng))
