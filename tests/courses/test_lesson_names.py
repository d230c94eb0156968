"""A lesson is meant by its number, its topic, its name or a beginning, everywhere alike."""

import pytest

from rlcourse.courses import shipped
from rlcourse.courses.course import chosen
from rlcourse.errors import UserError

NAMES = ("01_policies", "02_policy_gradient", "10_debugging", "12_three_policies")


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("1", "01_policies"),
        ("01", "01_policies"),
        ("2", "02_policy_gradient"),
        ("10", "10_debugging"),
        ("policy_gradient", "02_policy_gradient"),
        ("12_three_policies", "12_three_policies"),
        ("deb", "10_debugging"),
        ("12_th", "12_three_policies"),
        ("polic", None),  # two begin so
        ("3", None),
        ("", None),
    ],
)
def test_a_lesson_is_chosen_by_number_topic_name_or_the_only_beginning(wanted, name):
    assert chosen(NAMES, wanted) == name


def test_a_lesson_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(UserError, match="no lesson '99'; the lessons are 00_start_here, 01_"):
        shipped().lesson("99")
