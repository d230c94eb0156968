"""What a check prints stays short, whatever a function returned."""

import pytest
import torch

from rlcourse.checks.asking.specs import Spec
from rlcourse.checks.telling.show import LONGEST, show, show_pair


@pytest.mark.parametrize(
    "value",
    [
        torch.empty(10**7, 0),
        torch.empty(10**6, 3, 0),
        [0.5] * 10**6,
        ([[1.0] * 1000] * 1000, "x" * 10**6),
        10**5000,
        {"a" * 10**6: 1},
        Spec("sgd", {"lr": [1] * 10**6}),
    ],
    ids=range(7),
)
def test_a_large_value_is_shown_in_few_characters(value):
    assert len(show(value)) <= LONGEST
    assert all(len(text) <= LONGEST for text in show_pair(1.0, value))


def test_small_values_are_shown_in_full():
    assert show(torch.tensor([2.8e-17, -0.0, 1e-9], dtype=torch.float64)) == "[0, 0, 1e-09]"
    assert show(torch.tensor([0.5, 0.50001], dtype=torch.float64)) == "[0.5, 0.50001]"
    assert show([1, (2.5, "a"), None, True]) == "[1, (2.5, 'a'), None, True]"
    assert show(torch.eye(2)) == "[[1, 0], [0, 1]]"
    assert show(torch.zeros(0)) == "[]"
    assert show(torch.zeros(3, 0)) == "<float32 tensor of shape (3, 0)>"
    assert show(list(range(40))).endswith("29, … 40 in all]")
