"""How reading the answer out of a text goes wrong."""

import re

from rlcourse.checks.exercise import Mistake
from rlcourse.tasks.rewards import extract_answer

_NUMBER = r"-?\$?[0-9][0-9,]*(?:\.[0-9]+)?"


def _canonical(number: str) -> str:
    return extract_answer("####" + number)


def _first_mark(text):
    _, mark, tail = text.partition("####")
    return extract_answer(mark + tail.partition("####")[0])


def _first_number(text):
    found = re.search(_NUMBER, text)
    return _canonical(found.group()) if found and "####" in text else None


def _last_number(text):
    found = re.findall(_NUMBER, text)
    return _canonical(found[-1]) if found else None


def _last_number_after_mark(text):
    found = re.findall(_NUMBER, text.rpartition("####")[2]) if "####" in text else []
    return _canonical(found[-1]) if found else None


def _first_number_after_mark(text):
    found = re.search(_NUMBER, text.rpartition("####")[2]) if "####" in text else None
    return _canonical(found.group()) if found else None


def _falls_back(text):
    found = extract_answer(text)
    return _last_number(text) if found is None and "####" in text else found


def _reads_without_mark(text):
    return extract_answer(text) if "####" in text else _last_number(text)


def _raw(text):
    found = re.match(rf"\s*({_NUMBER})", text.rpartition("####")[2]) if "####" in text else None
    return found.group(1) if found else None


def _keeps_commas(text):
    found = _raw(text)
    return found.replace("$", "") if found and "," in found else extract_answer(text)


def _stops_at_comma(text):
    found = extract_answer(text)
    return found and (_canonical(_raw(text).partition(",")[0]) if "," in _raw(text) else found)


def _no_sign(text):
    found = extract_answer(text)
    return found and found.lstrip("-")


def _no_decimals(text):
    found = extract_answer(text)
    return found and found.partition(".")[0]


def _no_dollars(text):
    return None if "$" in (_raw(text) or "") else extract_answer(text)


def _keeps_zeros(text):
    found = _raw(text)
    return found and found.replace(",", "").replace("$", "")


def _as_float_text(text):
    found = extract_answer(text)
    return found and str(float(found))


def _as_general_format(text):
    found = extract_answer(text)
    return found and f"{float(found):g}"


def _strips_every_zero(text):
    found = _keeps_zeros(text)
    return found and found.rstrip("0").rstrip(".")


def _empty_for_none(text):
    return extract_answer(text) or ""


def _whole_numbers_only(text):
    found = re.findall(r"#### ?(-?[0-9]+)", text)
    return found[-1] if found else None


def _nothing_around_it(text):
    tail = text.rpartition("####")[2].strip().replace(",", "").replace("$", "")
    try:
        return extract_answer(text) and str(float(tail)) and extract_answer(text)
    except ValueError:
        return None


def _empty_for_bare_mark(text):
    return extract_answer(text) or ("" if "####" in text else None)


def _last_mark_with_number(text):
    found = re.findall(rf"####\s*({_NUMBER})", text)
    return _canonical(found[-1]) if found else None


def _sign_only_before_digits(text):
    found = re.match(r"\s*\$?(-?[0-9][0-9,.]*)", text.rpartition("####")[2].replace("-$", "$"))
    return _canonical(found.group(1)) if found and "####" in text else None


def _point_kept(text):
    found = re.match(r"\s*([-0-9,.$]+)", text.rpartition("####")[2]) if "####" in text else None
    if not found:
        return None
    number = found.group(1).replace(",", "").replace("$", "")
    return number.rstrip("0").rstrip(".") if "." in number else number


def _whole_tail(text):
    return text.rpartition("####")[2].strip() if "####" in text else None


def _raw_after_mark(text):
    found = re.search("[0-9]+", text.rpartition("####")[2]) if "####" in text else None
    return found and found.group()


def _cleaned_tail(text):
    tail = text.rpartition("####")[2].strip() if "####" in text else ""
    return tail.replace(",", "").replace("$", "") or None


def _digits_that_follow(text):
    found = re.match(r"\s*([0-9]+)", text.rpartition("####")[2]) if "####" in text else None
    return found and found.group(1)


MISTAKES = (
    Mistake(
        "a number after the first `####`",
        _first_mark,
        "A writer who starts again means the last one: `rpartition` splits there.",
        telling=2,
    ),
    Mistake(
        "the last mark that has a number after it",
        _last_mark_with_number,
        "The last mark counts, also where nothing follows it: cut the text there first, then "
        "look for a number.",
        telling=1,
    ),
    Mistake(
        "a number without a sign that stands before the dollar",
        _sign_only_before_digits,
        "“-$5” is −5: an optional minus comes first, then the optional dollar sign.",
        telling=1,
    ),
    Mistake(
        "a run of digits, commas, points and dollar signs, whatever its order",
        _point_kept,
        "Such a run takes the point that ends a sentence along, and may hold no digit at all: "
        "a number is digits and commas, then perhaps a point *and digits*.",
        telling=2,
    ),
    Mistake(
        "the first number of the text",
        _first_number,
        "The first number comes from the question; the answer stands after the mark.",
    ),
    Mistake(
        "the last number, wherever it stands",
        _last_number,
        "Without a mark nothing was declared to be the answer, and a model is soon paid for "
        "whatever number it happened to write last.",
    ),
    Mistake(
        "the first number after the mark, wherever it stands",
        _first_number_after_mark,
        "“#### maybe 3, so 14” declares nothing, and “.5” is no 5: match where the rest "
        "begins, with `re.match`.",
        telling=1,
    ),
    Mistake(
        "the last number after the mark",
        _last_number_after_mark,
        "The answer is the number that follows the mark; “#### 14 apples in 3 bags” says 14.",
        telling=1,
    ),
    Mistake(
        "a bare `####`, for which an earlier number is taken",
        _falls_back,
        "A mark with no number after it answers nothing: None.",
    ),
    Mistake(
        "the last number of a text that has no mark",
        _reads_without_mark,
        "No mark, no answer: None. The format is part of the task.",
        telling=1,
    ),
    Mistake(
        "a number that keeps its commas",
        _keeps_commas,
        "“1,234” and “1234” are one number and must become one string.",
        telling=2,
    ),
    Mistake(
        "a number that ends at the first comma",
        _stops_at_comma,
        "Commas stand inside numbers: 1,500 is not 1.",
        telling=2,
    ),
    Mistake(
        "a number without its sign",
        _no_sign,
        "−3 and 3 are different answers.",
        telling=2,
    ),
    Mistake(
        "a number without its decimals",
        _no_decimals,
        "3.5 and 3 are different answers.",
    ),
    Mistake(
        "an answer that is None when there is a dollar sign",
        _no_dollars,
        "“$14” is the number 14: skip the sign.",
    ),
    Mistake(
        "a number that keeps the zeros after its point",
        _keeps_zeros,
        "“3.50” and “3.5”, “14.00” and “14” are one number and must become one string.",
    ),
    Mistake(
        "a float printed as it is, 14.0 for 14",
        _as_float_text,
        "A whole number is spelled without a point.",
    ),
    Mistake(
        "a float in short format, which rounds from seven digits on",
        _as_general_format,
        "`:g` keeps six digits and turns 1234567 into 1.23457e+06.",
        telling=1,
    ),
    Mistake(
        "a number that loses zeros in front of the point, too",
        _strips_every_zero,
        "`rstrip('0')` makes 3 of 300: only zeros behind a decimal point mean nothing.",
    ),
    Mistake(
        "an empty string where there is no answer",
        _empty_for_none,
        "Two texts without an answer would then be equal: return None.",
    ),
    Mistake(
        "an empty string for a mark without a number",
        _empty_for_bare_mark,
        "A pattern in which every digit is optional also matches nothing at all: return None.",
    ),
    Mistake(
        "whole numbers only, up to the first other character",
        _whole_numbers_only,
        "Commas, a point and a dollar sign belong to numbers as people write them.",
    ),
    Mistake(
        "an answer that is None when anything follows the number",
        _nothing_around_it,
        "“#### 14 apples in 3 bags” says 14: read the number with which the rest begins.",
        telling=2,
    ),
    Mistake(
        "everything after the mark, as it stands",
        _whole_tail,
        "“$1,500 in all” and “1500” would be different answers: take the number out and "
        "spell it one way.",
    ),
    Mistake(
        "the first digits after the mark, wherever they stand",
        _raw_after_mark,
        "A minus, a comma and a point belong to numbers, and what stands first after the mark "
        "must *be* the number: “maybe 3, so 14” declares nothing.",
    ),
    Mistake(
        "digits only, right after the mark",
        _digits_that_follow,
        "A sign, `$`, commas and a point belong to numbers as people write them.",
    ),
    Mistake(
        "everything after the mark, without commas and dollar signs",
        _cleaned_tail,
        "“14 apples”, “14.00” and “14” would be three answers: take the number out, and spell "
        "it one way.",
    ),
)
