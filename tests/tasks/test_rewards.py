"""Reading the final number out of a completion, and paying for it."""

import json
import os
from pathlib import Path

import pytest
import torch

from rlcourse.tasks.rewards import (
    correctness_reward,
    extract_answer,
    extract_boxed_answer,
    extract_lenient_answer,
    extract_strict_tagged_answer,
    extract_tagged_answer,
    format_reward,
    length_reward,
    strict_format_reward,
)

# extract_answer


@pytest.mark.parametrize(
    "text, number",
    [
        ("so 14 are left.\n#### 14", "14"),
        ("####14", "14"),
        ("#### 14.", "14"),
        ("#### 1,234", "1234"),
        ("#### 1,234,567.50", "1234567.5"),
        ("#### -3", "-3"),
        ("#### -$3", "-3"),
        ("#### $-3", "-3"),
        ("#### 3.50", "3.5"),
        ("#### 0.5", "0.5"),
        ("#### -0", "0"),
        ("#### 1200.00", "1200"),
        ("#### 007", "7"),
        ("#### 25%", "25"),
        ("#### 12 apples", "12"),
        ("#### 123456789012345678901", "123456789012345678901"),
    ],
)
def test_number_after_the_mark_is_canonical(text, number):
    assert extract_answer(text) == number


@pytest.mark.parametrize(
    "text",
    ["", "14", "The answer is 14.", "14 ####", "####", "#### ", "#### none", "### 14", "####\n"],
)
def test_no_number_after_a_mark_is_no_answer(text):
    assert extract_answer(text) is None


def test_last_mark_counts():
    assert extract_answer("#### 5\nNo, wait.\n#### 7") == "7"


def test_numbers_elsewhere_do_not_count():
    assert extract_answer("1 and 2\n#### 3 and then 4") == "3"
    assert extract_answer("Step 1: 18 − 4 = 14") is None


# extract_tagged_answer


@pytest.mark.parametrize(
    "text, number",
    [
        ("<answer>14</answer>", "14"),
        ("<think>3</think>\n<answer>\n $1,234.50 \n</answer>", "1234.5"),
        ("<answer>1</answer> no: <answer>-2</answer>", "-2"),
        ("<answer>14", None),
        ("14</answer>", None),
        ("<answer></answer>", None),
        ("<answer>none</answer> 14", None),
        ("#### 14", None),
        ("", None),
    ],
)
def test_number_in_the_last_answer_tags(text, number):
    assert extract_tagged_answer(text) == number


# correctness_reward


def test_equal_numbers_are_right_however_they_are_written():
    completions = ["#### 14.0", "#### $1,234", "#### 15", "no idea", "#### -3", "14"]
    answers = ["x\n#### 14", "#### 1234", "#### 14", "#### 14", "#### 3", "#### 14"]
    rewards = correctness_reward(completions, answers)
    assert rewards.tolist() == [1, 1, 0, 0, 0, 0]
    assert rewards.shape == (6,) and rewards.is_floating_point()


def test_two_missing_numbers_are_not_equal():
    assert correctness_reward(["no idea"], ["no idea"]).tolist() == [0]


def test_every_completion_has_its_answer():
    with pytest.raises(ValueError):
        correctness_reward(["#### 1", "#### 2"], ["#### 1"])


def test_another_extractor_reads_the_completions_only():
    completions = ["<answer>14</answer>", "#### 14", "<answer>15</answer>"]
    rewards = correctness_reward(completions, ["#### 14"] * 3, extract=extract_tagged_answer)
    assert rewards.tolist() == [1, 0, 0]


# format_reward

FULL = "<think>3×6=18, 18−4=14</think><answer>14</answer>"


@pytest.mark.parametrize(
    "completion, reward",
    [
        (FULL, 0.5),
        ("<think>\nline\n\nline\n</think>\n<answer>\n14\n</answer>\n", 0.5),
        ("<think></think><answer>14</answer>", 0.5),
        ("<think>a</think> <answer>$1,234.50</answer>", 0.5),
        ("<think>a</think><answer>fourteen</answer>", 0.4),
        ("<think>a</think><answer></answer>", 0.4),
        ("<think>14</think><answer>none</answer>", 0.4),
        ("<think>a</think><answer>14", 0.3),
        ("<think>a</think>14", 0.2),
        ("<think>14", 0.1),
        ("14", 0.0),
        ("", 0.0),
        ("#### 14", 0.0),
    ],
)
def test_each_tag_and_the_number_pay_a_tenth(completion, reward):
    rewards = format_reward([completion])
    assert rewards.tolist() == pytest.approx([reward])
    assert rewards.shape == (1,) and rewards.is_floating_point()


@pytest.mark.parametrize(
    "completion",
    [
        FULL + FULL,
        "<think>" * 10 + "</think>" * 10 + "<answer>" * 10 + "14" + "</answer>" * 10,
    ],
)
def test_repeated_tags_pay_nothing(completion):
    assert format_reward([completion]).item() < 0.15


@pytest.mark.parametrize(
    "completion",
    [
        "<answer>14</answer><think>a</think>",
        "</think><think></answer><answer>14",
        "</answer>14<answer></think><think>",
        "<think><answer>14</answer></think>",
        "<think><answer></think>14</answer>",
    ],
)
def test_tags_out_of_order_pay_less_than_tags_in_order(completion):
    assert format_reward([completion]).item() < 0.45


# extract_boxed_answer


@pytest.mark.parametrize(
    "text, number",
    [
        (r"\boxed{1} or \boxed{\text{-1,250.50 m}}", "-1250.5"),
        (r"\boxed{\$3.00} in 2 days", "3"),
        (r"\boxed{\frac{\frac{1}{2}}{3}}", None),
        (r"\boxed{-2\dfrac{1}{4}}", "-2.25"),
        (r"\boxed{\frac{1}{3}}", None),  # its decimals never end
        (r"\boxed{9000 \text{ cm}^3}", None),
        (r"\boxed{\textbf{72}}", None),
        (r"\boxed{10:30}", None),
        ("{5}", None),
    ],
)
def test_a_box_holds_one_number_that_is_read_exactly_or_not_at_all(text, number):
    assert extract_boxed_answer(text) == number
    assert number is None or extract_lenient_answer(text) == number


# extract_lenient_answer


@pytest.mark.parametrize(
    "text, number",
    [
        ("2 + 3 = 5, so 5.\n#### 1,234", "1234"),
        ("<answer> 7 </answer> is what I found in 9 lines", "7"),
        (r"so \boxed{12} or rather \boxed{\$14.00}, in 3 steps", "14"),
        (r"\boxed{x}, which is 6", "6"),
        ("The answer is 42.", "42"),
        ("16-3 = 13, thus 3.50 dollars", "3.5"),
        ("10-3", "3"),
        ("$1,234.50 in total", "1234.5"),
        ("of the numbers 1, 2, 3", "3"),
        (r"\boxed{\$9{,}500} on page 3", "9500"),
        (r"\boxed{72 \text{ clips}} in 2 months", "72"),
        (r"\boxed{\textbf{x = 72}} for 3 days", "72"),
        (r"\boxed{-\frac{1}{2}}", "-0.5"),
        ("3 1/2 hours", "3.5"),
        ("about 1e5", "100000"),
        ("at 10:30", None),
        ("#### 10:30", None),
        ("#### 3,5", None),
        ("#### 1/2 cup", "0.5"),
        ("#### −$5 in 2 days", "-5"),
        ("<answer>1e5</answer>", "100000"),
        ("it has 1'000", None),
        ("I get 1 234", None),
        ("2 bags, 1 2345", "2345"),
        (r"\boxed{1 234}", None),
        (r"\boxed{10^{10^{10}}}", None),
        ("half a cup is .5 cup", "0.5"),
        ("#### none, so 5", "5"),
    ],
)
def test_lenient_reading_takes_the_final_number_in_any_form(text, number):
    assert extract_lenient_answer(text) == number


@pytest.mark.parametrize("text", ["", "none", "#### ", r"\boxed{x}", "-", "$"])
def test_lenient_reading_finds_nothing_where_there_is_no_number(text):
    assert extract_lenient_answer(text) is None


def test_lenient_reading_agrees_on_every_reference_solution():
    data = Path(os.environ.get("RLCOURSE_GSM8K", Path(__file__).parents[3] / "shared" / "gsm8k"))
    if not data.is_dir():
        pytest.skip("needs GSM8K: set RLCOURSE_GSM8K to its directory")
    answers = [json.loads(line)["answer"] for line in (data / "test.jsonl").open(encoding="utf-8")]
    assert all(extract_lenient_answer(a) == extract_answer(a) for a in answers)
    # Without the mark, the last number of these solutions is the answer..
    unmarked = [a.replace("####", "") for a in answers]
    right = sum(
        extract_lenient_answer(u) == extract_answer(a)
        for u, a in zip(unmarked, answers, strict=True)
    )
    assert right == len(answers)


WELL_FORMED = "<think>\n24 - 12 = 12\n</think>\n<answer>\n12\n</answer>"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (WELL_FORMED, "12"),
        (WELL_FORMED + " and more", "12"),  # only the beginning is anchored
        ("<think></think>so<answer>12 cookies</answer>", "12"),
        ("<think></think><answer>012</answer>", "12"),
        ("<think></think><answer>-14</answer>", "14"),  # the sign is not read
        ("<think></think><answer>5</answer><answer>6</answer>", "5"),
        (" " + WELL_FORMED, None),
        ("Sure! " + WELL_FORMED, None),
        ("<answer>12</answer>", None),
        ("<think></think><answer>1,500</answer>", None),
        ("<think></think><answer>14.50</answer>", None),
        ("<think></think><answer>5 or 6</answer>", None),
        ("<think></think><answer>twelve</answer>", None),
        ("<think></think><answer>12", None),
    ],
)
def test_the_strict_rule_reads_one_run_of_digits_or_nothing(text, number):
    assert extract_strict_tagged_answer(text) == number
    assert strict_format_reward([text]).tolist() == [0.0 if number is None else 0.5]


def test_lengths_from_20_to_250_tokens_earn_a_half():
    lengths = torch.tensor([0, 19, 20, 137, 250, 251, 300])
    assert length_reward(lengths).tolist() == [0.0, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0]
    assert length_reward(torch.tensor([2, 3, 4]), 3, 3).tolist() == [0.0, 0.5, 0.0]
