"""Functions of odd forms, and what student code leaves switched: each is told in a sentence."""

import functools

import pytest
import torch

from rlcourse import check
from rlcourse.checks.asking.calling import call
from rlcourse.checks.asking.case import Case
from rlcourse.errors import UserError


def plain(rewards):
    return rewards.mean()


def wrapped(function):
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


@pytest.mark.parametrize(
    "fn",
    [lambda rewards: rewards.mean(), functools.partial(plain), wrapped(plain), plain],
    ids=["lambda", "partial", "wrapper", "another name"],
)
def test_a_function_of_another_name_is_told_how_to_say_which_exercise_it_is(fn):
    with pytest.raises(UserError, match=r'exercise="mean_reward"'):
        check(fn)
    assert check(fn, exercise="mean_reward", seed=0).passed


def test_what_the_form_of_the_definition_forbids_is_said(recwarn):
    def by_place(rewards, /):
        return rewards.mean()

    async def later(rewards):
        return rewards.mean()

    for fn, said in ((by_place, "a `/` among its parameters"), (later, "in place of `async def`")):
        assert said in check(fn, exercise="mean_reward", seed=0).message
    assert not [w for w in recwarn if "never awaited" in str(w.message)]


SWITCHES = {
    "gradients": (torch.set_grad_enabled, False, torch.is_grad_enabled),
    "dtype": (torch.set_default_dtype, torch.float64, torch.get_default_dtype),
    "determinism": (
        torch.use_deterministic_algorithms,
        True,
        torch.are_deterministic_algorithms_enabled,
    ),
    "printing": (
        lambda digits: torch.set_printoptions(precision=digits),
        2,
        lambda: torch._tensor_str.PRINT_OPTS.precision,
    ),
}


@pytest.mark.parametrize(("switch", "off", "state"), SWITCHES.values(), ids=SWITCHES)
def test_what_student_code_leaves_switched_changes_no_verdict(switch, off, state):
    """In a notebook, and between two questions of one run."""
    usual = state()

    def switching(x):
        result = x * 2, str((state(), torch.ones(1).dtype, torch.ones(1) / 3))
        switch(off)
        return result

    case = Case("", {"x": torch.ones(2)}, tracked=True)
    right = call(switching, case)
    assert state() == usual and right.gradients["x"] is not None
    try:
        switch(off)
        again = call(switching, case, repeat=True)
        assert state() == off
    finally:
        switch(usual)
    assert again.value[1] == right.value[1] and again.repeatable
    assert torch.equal(again.gradients["x"], right.gradients["x"])
