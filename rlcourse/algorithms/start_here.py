"""Lesson 00: the smallest honest function of the course.

A question is put to the model several times, each attempt earns a reward, and the mean
says how good the model is at that question. Everything later is about raising it.
"""

from torch import Tensor


def mean_reward(rewards: Tensor) -> Tensor:
    """Mean reward of one group of completions: (G,) → scalar.

    With rewards of 0 and 1 it is the share of right answers.
    """
    return rewards.sum() / len(rewards)
