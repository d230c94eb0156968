"""An exercise's files are complete, and its cases at the edge are what all exercises agree on."""

from dataclasses import replace

import pytest
import torch

from rlcourse import exercises
from rlcourse.checks.asking.calling import call
from rlcourse.checks.asking.case import tensors_in
from rlcourse.checks.judging.exam import judge
from rlcourse.courses import current
from rlcourse.courses.demands import lacking


@pytest.mark.parametrize("name", exercises.names())
def test_an_exercise_lacks_nothing(name):
    assert list(lacking(current(), exercises.get(name))) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mistakes": ()}, "it has 0 mistakes"),
        ({"alternatives": ()}, "it has 0 right answers"),
        ({"section": "Nowhere"}, "is not a heading of"),
    ],
)
def test_what_is_lacking_is_said_with_its_file(changes, sentence):
    exercise = replace(exercises.get("leave_one_out_advantages"), **changes)
    found = list(lacking(current(), exercise))
    assert any(sentence in said for said in found), found
    assert all("leave_one_out_advantages." in said.partition(": ")[0] for said in found)


def test_a_label_or_a_name_that_stands_twice_is_said():
    exercise = exercises.get("masked_mean")
    first, *others = exercise.mistakes
    twice = replace(exercise, mistakes=(first, first, *others))
    assert any("appears twice" in said for said in lacking(current(), twice))
    twice = replace(exercise, cases=lambda draw: 2 * list(exercise.cases(draw)))
    assert any("two cases have the label" in said for said in lacking(current(), twice))


def edges(kind):
    """(exercise, case) of every case at the edge whose label begins so, but those that raise."""
    return [
        pytest.param(exercise, case, id=f"{exercise.name}: {case.label}")
        for exercise in exercises.all()
        for case in (*exercise.draw_cases(0), *exercise.draw_cases(0, hidden=True))
        if case.label.startswith(kind) and case.edge and not case.raises
    ]


@pytest.mark.parametrize(("exercise", "case"), edges(("a float mask", "a mask of integers")))
def test_a_mask_means_the_same_whatever_its_dtype(exercise, case):
    """“may be bool, integer or float”"""
    as_bool = replace(case, arguments=case.arguments | {"mask": case.arguments["mask"].bool()})
    one, other = (call(exercise.reference, c) for c in (case, as_bool))
    assert not judge(exercise, case, one, other)


@pytest.mark.parametrize(("exercise", "case"), edges("float32"))
def test_a_result_has_the_dtype_that_came_in(exercise, case):
    """“the dtype of the floating-point tensors that came in”"""
    for result in tensors_in(call(exercise.reference, case).value):
        assert result.dtype == torch.float32 or not result.is_floating_point()


@pytest.mark.parametrize(("exercise", "case"), edges("every row empty"))
def test_a_mean_over_nothing_is_0_and_so_is_its_gradient(exercise, case):
    """“a mean over nothing is 0, with a gradient of 0 and not NaN”"""
    outcome = call(exercise.reference, case)
    tensors = [*tensors_in(outcome.value), *tensors_in(outcome.gradients)]
    assert tensors and not any(tensor.any() for tensor in tensors)


@pytest.mark.parametrize(
    ("exercise", "case"),
    [
        pytest.param(exercise, case, id=exercise.name)
        for exercise in exercises.all()
        for case in exercise.draw_cases(0)
        if case.constants
    ],
)
def test_a_constant_gets_no_gradient(exercise, case):
    gradients = call(exercise.reference, case).gradients
    assert all(gradients[name] is None or not gradients[name].any() for name in case.constants)
