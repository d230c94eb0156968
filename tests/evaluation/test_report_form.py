"""The form of lesson 13's report: it says in a sentence each what is missing or cannot be."""

from dataclasses import replace

import pytest

from rlcourse.evaluation import ExperimentReport

WHOLE = ExperimentReport(
    question="Does a larger group find the rare skill sooner?",
    change="Groups of 16 instead of 8, half as many prompts.",
    prediction="pass@1 rises by 0.05 or more on each seed.",
    measure="pass@1 on 32 held-out problems, 64 samples each.",
    before=[0.31, 0.28, 0.35],
    after=[0.36, 0.30, 0.33],
    interval=(-0.01, 0.05),
    conclusion="No difference can be seen with three seeds.",
    limits="One start, one learning rate, and forty steps only.",
)


def test_a_whole_report_has_no_gaps_and_its_page_holds_every_field():
    assert WHOLE.gaps() == []
    page = WHOLE.page()
    assert WHOLE.question in page and WHOLE.limits in page
    assert "| before | 0.310 | 0.280 | 0.350 |" in page and "-0.010 to +0.050" in page


def test_an_empty_report_is_told_every_field_once_and_still_has_a_page():
    empty = ExperimentReport()
    fields = [gap.partition(":")[0] for gap in empty.gaps()]
    texts = ["question", "change", "prediction", "measure", "conclusion", "limits"]
    assert sorted(fields) == sorted([*texts, "before", "after", "interval"])
    assert "no interval" in empty.page()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"question": "I wanted to see larger groups."}, "question"),
        ({"prediction": "It will become much better, I think."}, "prediction"),
        ({"conclusion": WHOLE.prediction}, "conclusion"),
        ({"limits": "None."}, "limits"),
        ({"before": [0.1, 0.2], "after": [0.1, 0.3], "interval": (-1.0, 1.0)}, "before"),
        ({"after": [0.3, 0.3, 0.3, 0.31]}, "before and after"),
        ({"after": [0.3, float("nan"), 0.3]}, "before and after"),
        ({"before": [0.3, 0.3, 0.3]}, "before"),
        ({"interval": None}, "interval"),
        ({"interval": (0.05, -0.01)}, "interval"),
        ({"interval": (0.05, 0.09)}, "interval"),  # the mean difference is +0.017
        ({"interval": (-5.0, -1.0)}, "interval"),
    ],
)
def test_each_gap_is_named(changes, field):
    assert field in [gap.partition(":")[0] for gap in replace(WHOLE, **changes).gaps()]
