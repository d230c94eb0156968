"""Problems that answer back: what an environment is, and errors about one that is not.

A problem with a single answer has a reward function. One in which the policy writes, reads the
result, and writes again is an *environment*. To make one, derive from `Environment` and write
two methods::

    class Guess(Environment):
        def __init__(self, number):
            self.number = number

        def begin(self):
            return "I think of a number. Which?"

        def respond(self, text):
            if text.strip() == str(self.number):
                return Reply("Right.", reward=1.0, done=True)
            return Reply("No.")

An environment is one problem and plays one episode at a time; N episodes that run side by side are
N environments. `rollout_env` of lesson 14 plays them, `rlcourse.training.episodes` trains in them.
"""

from math import isfinite
from typing import NamedTuple

from rlcourse.errors import UserError


class Reply(NamedTuple):
    """What an environment answers to a turn of the policy."""

    observation: str  # what the policy reads next; the last one is not read
    reward: float = 0.0  # for this turn: an episode's reward is the sum
    done: bool = False  # whether the episode is over


class Environment:
    """One problem that can be played. Derive from it, and write `begin` and `respond`.

    The player calls `reset` and `step`, which call these two and check what they return, so that a
    mistake is reported where it was made.
    """

    _running = False

    def begin(self) -> str:
        """The first words, usually a question. Called for each episode: start anew here."""
        raise UserError(f"{_name(self)} needs a method begin(self) that returns a text.")

    def respond(self, text: str) -> Reply:
        """The reply to one turn of the policy, whose words are `text`.

        They may be any words at all, or none: also answer those that make no sense.
        """
        raise UserError(f"{_name(self)} needs a method respond(self, text) that returns a Reply.")

    def reset(self) -> str:
        """Begin an episode: its first words.

        Raises:
            UserError: `begin` is missing or returned no text.
        """
        words = self.begin()
        if not isinstance(words, str):
            raise UserError(f"{_name(self)}.begin() returned {_shown(words)}: return a text.")
        self._running = True
        return words

    def step(self, text: str) -> Reply:
        """Hand over one turn of the policy: observation, reward, and whether it was the last.

        Raises:
            UserError: no episode is running, or `respond` is missing or returned something else.
        """
        if not self._running:
            raise UserError(f"No episode of {_name(self)} is running: call reset() first.")
        reply = _checked(self, self.respond(text))
        self._running = not reply.done
        return reply


def _checked(environment: Environment, reply) -> Reply:
    try:
        observation, reward, done = reply
        checked = Reply(observation, float(reward), bool(done))
    except (TypeError, ValueError, RuntimeError):
        checked = None
    if checked is None or not isinstance(observation, str) or not isfinite(checked.reward):
        raise UserError(
            f"{_name(environment)}.respond(text) returned {_shown(reply)}: return "
            "Reply(observation, reward, done), a text, a finite number, and True or False."
        )
    return checked


def _name(environment: Environment) -> str:
    return type(environment).__name__


def _shown(value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
