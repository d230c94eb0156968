"""Reading the answer out of a text."""

import re
from collections.abc import Iterator

from rlcourse.checks.declaring import Case, CaseSampler
from rlcourse.tasks.rewards import extract_answer


def cases(draw: CaseSampler) -> Iterator[Case]:
    a, b = draw.integer(11, 49), draw.integer(51, 99)
    texts = {
        "worked: James": "3 * 6 = 18\n18 - 4 = 14\n#### 14",
        "no mark": f"{a} + {b} = {a + b}",
        "a mark and nothing after it": f"{a} + {b} = {a + b}\n####",
        "a mark and words after it": f"{a} + {b} = {a + b}\n#### I do not know",
        "an empty text": "",
        "thousands": "50 * 30 = 1,500\n#### 1,500",
        "millions": f"#### {draw.integer(1, 9)},234,567",
        "dollars": f"{a} + {b}\n#### ${a}.00",
        "a negative number": f"{a} - {b}\n#### -{b - a}",
        "a fraction": "7 / 2 = 3.5\n#### 3.50",
        "a fraction below 1": "#### 0.25",
        "zero": f"{a} - {a} = 0\n#### 0",
        "a number that ends in zeros": f"#### {draw.integer(1, 9)}00",
        "a whole number after a fraction": "2.5 * 40 = 100.0\n#### 100",
        "a whole number before a fraction": "#### 100 bags of 2.5 kg",
        "two marks": f"#### {a}\nNo, wait.\n#### {b}",
        "a number after the first of two marks": f"#### {a}\nNo, wait.\n####",
        "a minus before the dollar sign": f"{a} - {b}\n#### -${b - a}",
        "a point after the zeros": f"#### ${draw.integer(3, 9)}.50.",
        "points after the mark": f"{a} + {b}\n#### ...",
        "words after the number": f"{a} + {b}\n#### {a + b} apples in 3 bags",
        "a point after the number": f"The total is\n#### {a + b}.",
        "a fraction without a whole part": f"#### .{a}",
        "words before the number": f"{a} + {b}\n#### maybe {a}, so {a + b}",
        "no space after the mark": f"####{a}",
        "three signs are no mark": f"### {a}",
        "a range": f"{a} + {b}\n#### {a}-{b}",
        "a line more": f"{b} - {a}\n#### {b - a}\n",
    }
    for label, text in texts.items():
        yield Case(label, {"text": text})
    yield Case("a minus before zero", {"text": f"{a} - {a}\n#### -0"}, edge=True)


def _extract_by_float(text):
    """Through Python's own number types."""
    found = re.search(
        r"####\s*(-?)\$?([0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)",
        "####".join(["", text.split("####")[-1]]),
    )
    if "####" not in text or not found:
        return None
    value = float(found.group(1) + found.group(2).replace(",", ""))
    return str(int(value)) if value == int(value) else repr(value)


def _extract_by_characters(text):
    if "####" not in text:
        return None
    tail = text.split("####")[-1].strip().replace("$", "").replace(",", "")
    number = ""
    for character in tail:
        if not (character.isdigit() or character == "." or (character == "-" and not number)):
            break
        number += character
    if not any(c.isdigit() for c in number):
        return None
    number = ("0" if number.startswith(".") else "") + number.rstrip(".")
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return "0" if number == "-0" else number


_NUMBER = r"-?\$?[0-9][0-9,]*(?:\.[0-9]+)?"
_ANY_NUMBER = rf"{_NUMBER}|-?\$?\.[0-9]+"


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


def _first_of_any_after_mark(text):
    found = re.search(_ANY_NUMBER, text.rpartition("####")[2]) if "####" in text else None
    return _canonical(found.group()) if found else None


def _last_mark_with_any_number(text):
    found = re.findall(rf"####\s*({_ANY_NUMBER})", text)
    return _canonical(found[-1]) if found else None


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


def _minus_zero(text):
    zero = re.search(r"####\s*-\$?0[0.]*$", text.strip())
    return "-0" if zero else extract_answer(text)


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


alternatives = (_extract_by_float, _extract_by_characters)
