"""One rule for names, from collecting to exporting; and nothing printed or written that acts."""

import csv
import io

import pytest

from rlcourse.grading.names import (
    LONGEST_ID,
    alike,
    cell,
    one_line,
    shown,
    twins,
    why_no_id,
)


@pytest.mark.parametrize(
    "name",
    ["ada", "4321", "jane.doe@example.org", "Anna Maria", "zoë", "zoe\u0308", "张三",
     "a-b_c.d", "Łukasz", "ﬁ", "o'brien@uni.edu", "ada+cs@uni.edu"],
)  # fmt: skip
def test_names_as_people_and_platforms_give_them_are_taken(name):
    assert why_no_id(name) is None and shown(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "=1", "-1", "@x", "+x", ".x", "a/b", "a\\b", "a\nb", "a\x1b[2J", "<b>", "'a", 'a"b',
     "o\u2019brien", "a;b", "a ", "a  b", "a..b", "a.", "\u202eab", "a\u200bb",
     "\udcff", "😀", "a,b", "x" * 101, "a\ufe0f", "\u3164a", "a\u115f", "a\u0335"],
)  # fmt: skip
def test_others_are_shown_quoted_and_in_ascii(name):
    assert why_no_id(name)
    assert shown(name).isascii() and shown(name).isprintable()
    assert len(shown(name)) <= LONGEST_ID and shown(name)[0] in "'\""


def test_names_that_may_be_taken_for_one_are_twins():
    pairs = [("Ada", "ada"), ("straße", "STRASSE"), ("zoë", "zoe\u0308"), ("ﬁ", "fi"),
             ("ＡＤＡ", "ada"), ("ſam", "sam"), ("x²", "x2")]  # fmt: skip
    for one, other in pairs:
        assert alike(one) == alike(other)
        assert twins([one, other]).keys() >= {name for name in (one, other) if name != alike(name)}


def test_of_twins_the_one_that_is_known_stands():
    assert twins(["Ada", "ada", "bob"], ["ada"]) == {"Ada": ["ada"]}
    assert twins(["Ada"], ["ada"]) == {"Ada": ["ada"]}
    assert twins(["ada"], ["ada", "cyd"]) == {}
    assert set(twins(["Ada"], ["ada", "Ada"])) == {"Ada"}


def test_nobody_pushes_a_plain_name_aside_and_of_two_others_neither_stands():
    assert twins(["1001", "１００１"]) == {"１００１": ["1001"]}
    assert set(twins(["Straße", "STRASSE"])) == {"Straße", "STRASSE"}


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "  =1", "\u00a0=1", "＝1", "＠x", "=cmd|' '!A"],
)
def test_a_spreadsheet_finds_no_formula(text):
    out = io.StringIO()
    csv.writer(out).writerow([cell(text)])
    (row,) = csv.reader(io.StringIO(out.getvalue()))
    assert row[0].startswith("'") and row[0][1:] == text


@pytest.mark.parametrize("text", ["", "-", "-1.5", "+2", "1,5", "a=b", "Doe, Jane", "a@b.c", "50%"])
def test_numbers_and_words_are_written_as_they_are(text):
    assert cell(text) == text


def test_a_line_is_one_line_and_moves_no_cursor():
    text = one_line("a\nb\x1b[2J\u202e\udcff\u2028" + "x" * 1000)
    assert text.isprintable() and "\\n" in text and "\\x1b" in text and len(text) < 600
