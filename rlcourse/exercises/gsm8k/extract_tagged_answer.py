"""Reading the answer from between its tags."""

import re
from collections.abc import Iterator

from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.tasks.rewards import extract_answer, extract_tagged_answer


def _cases(draw: CaseSampler) -> Iterator[Case]:
    a, b = draw.integer(11, 49), draw.integer(51, 99)
    texts = {
        "worked: two crates": "<think>2 * 24 = 48</think>\n<answer>48</answer>",
        "thoughts over several lines": f"<think>\n{a} + {b}\n= {a + b}\n</think>\n"
        f"<answer>{a + b}</answer>",
        "tags on lines of their own": f"<think>\n{a}\n</think>\n<answer>\n{a + b}\n</answer>\n",
        "no thoughts": f"<answer>{a}</answer>",
        "no tags": f"{a} + {b} = {a + b}",
        "a number at the start and no tags": f"{a + b} is the sum",
        "no tags but a `####`": f"{a} + {b}\n#### {a + b}",
        "tags, and another number after `####`": f"<answer>{a}</answer>\n#### {b}",
        "`####` inside the tags": f"<answer>#### {a}</answer>",
        "an empty text": "",
        "nothing between the tags": f"<think>{a}</think><answer></answer>",
        "a word between the tags": f"<think>{a}</think><answer>unknown</answer>",
        "cut off before the end": f"<think>{a} + {b}</think>\n<answer>{a}",
        "an opening tag without its bracket": f"answer>{a}</answer>",
        "an end without a beginning": f"{a}</answer>",
        "two answers": f"<answer>{a}</answer> No, wait. <answer>{b}</answer>",
        "two answers, marked": f"<answer>#### {b}</answer> or <answer>#### {a}</answer>",
        "an answer among the thoughts": f"<think>Is it <answer>{b}</answer>?\nNo.</think>"
        f"\n<answer>{a}</answer>",
        "thoughts that mention the tag": f"<think>It goes after <answer> then. {a}</think>"
        f"\n<answer>{b}</answer>",
        "begun again": f"<answer>{a} no, <answer>{b}</answer>",
        "a second answer that is cut off": f"<answer>{a}</answer>\n<answer>{b}",
        "thousands": "<answer>1,500</answer>",
        "dollars": f"<answer> ${a}.00 </answer>",
        "a negative number": f"<think>{a} - {b}</think><answer>-{b - a}</answer>",
        "a fraction": f"<answer>{a}.50</answer>",
        "a unit and another number": f"<answer>{a} eggs in 3 boxes</answer>",
        "words before the number": f"<answer>The total is {a}</answer>",
        "a word in the last of two answers": f"<answer>{a}</answer> No: <answer>none</answer>",
        "words after the tags": f"<answer>{a}</answer> That took {b} minutes.",
    }
    for label, text in texts.items():
        yield Case(label, {"text": text})


_PAIR = r"<answer>((?:(?!<answer>).)*?)</answer>"
_NUMBER = r"-?\$?[0-9][0-9,]*(?:\.[0-9]+)?"


def _inside(text: str) -> str | None:
    found = re.findall(_PAIR, text, flags=re.DOTALL)
    return found[-1] if found else None


def _canonical(number: str | None) -> str | None:
    return None if number is None else extract_answer("####" + number)


def _one_line_only(text):
    found = re.findall(_PAIR, text)
    return _canonical(found[-1]) if found else None


def _plain_first_pair(text):
    found = re.search(r"<answer>(.*?)</answer>", text, flags=re.DOTALL)
    return _canonical(found.group(1)) if found else None


def _plain_one_line(text):
    found = re.findall(r"<answer>(.*?)</answer>", text)
    return _canonical(found[-1]) if found else None


def _without_mark(text):
    inside = _inside(text)
    return None if inside is None else extract_answer(inside)


def _earlier_pair(text):
    pairs = re.findall(_PAIR, text, flags=re.DOTALL)
    numbers = [_canonical(pair) for pair in reversed(pairs)]
    return next((number for number in numbers if number is not None), None)


def _first_pair(text):
    found = re.findall(_PAIR, text, flags=re.DOTALL)
    return _canonical(found[0]) if found else None


def _greedy(text):
    found = re.search(r"<answer>(.*)</answer>", text, flags=re.DOTALL)
    return _canonical(found.group(1)) if found else None


def _from_the_first_opening(text):
    found = re.findall(r"<answer>(.*?)</answer>", text, flags=re.DOTALL)
    return _canonical(found[-1]) if found else None


def _as_it_stands(text):
    return _inside(text)


def _stripped(text):
    found = _inside(text)
    return None if found is None else found.strip()


def _split_needs_no_tags(text):
    return _canonical(text.split("<answer>")[-1].split("</answer>")[0])


def _needs_no_end(text):
    _, opening, tail = text.rpartition("<answer>")
    return _canonical(tail) if opening else None


def _marked(text):
    return extract_answer(text)


def _marked_where_untagged(text):
    return extract_answer(text) if _inside(text) is None else extract_tagged_answer(text)


def _last_number_where_untagged(text):
    found = re.findall(_NUMBER, text)
    if _inside(text) is None and found:
        return _canonical(found[-1])
    return extract_tagged_answer(text)


def _last_number_inside(text):
    found = re.findall(_NUMBER, _inside(text) or "")
    return _canonical(found[-1]) if found else None


def _first_number_inside(text):
    found = re.search(_NUMBER, _inside(text) or "")
    return _canonical(found.group()) if found else None


def _digits_only(text):
    found = re.findall(r"<answer>\s*([0-9]+)\s*</answer>", text)
    return found[-1] if found else None


def _needs_thoughts(text):
    whole = re.search(r"<think>.*?</think>\s*<answer>", text, flags=re.DOTALL)
    return extract_tagged_answer(text) if whole else None


def _needs_the_end_of_the_text(text):
    return extract_tagged_answer(text) if text.rstrip().endswith("</answer>") else None


def _empty_for_none(text):
    return extract_tagged_answer(text) or ""


def _as_number(text):
    found = extract_tagged_answer(text)
    return None if found is None else float(found)


def _as_float_text(text):
    found = extract_tagged_answer(text)
    return None if found is None else str(float(found))


def _by_partition(text):
    before, end, _ = text.rpartition("</answer>")
    _, opening, inside = before.rpartition("<answer>")
    return extract_answer("#### " + inside) if end and opening else None


def _by_walking(text):
    """Piece by piece, remembering whether a tag is open."""
    answer, inside = None, None
    for piece in re.split(r"(</?answer>)", text):
        if piece == "<answer>":
            inside = ""
        elif piece == "</answer>" and inside is not None:
            answer, inside = inside, None
        elif inside is not None:
            inside += piece
    return None if answer is None else extract_answer("####" + answer)


def _by_positions(text):
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, max(end, 0))
    if end < 0 or start < 0:
        return None
    return extract_answer(f"####{text[start + len('<answer>') : end]}")


def _plain_first_line(text):
    found = re.search(r"<answer>(.*?)</answer>", text)
    return _canonical(found.group(1)) if found else None


EXERCISE = Exercise(
    reference=extract_tagged_answer,
    lesson="11_gsm8k",
    section="The number between the tags",
    points=2,
    difficulty=2,
    minutes=8,
    cases=_cases,
    mistakes=(
        Mistake(
            "the first pair of tags, found by a plain `.*?`",
            _plain_first_pair,
            "A model that corrects itself means the last one; and `.*?` runs across an opening tag "
            "that was never closed.",
        ),
        Mistake(
            "a plain `.*?`, which stops at the end of a line and runs across an opening tag",
            _plain_one_line,
            "`re.DOTALL` lets `.` match a line break; and between the tags no other `<answer>` may "
            "stand.",
            telling=2,
        ),
        Mistake(
            "the text between the tags, read by `extract_answer` as it is",
            _without_mark,
            "`extract_answer` looks for `####`, which does not stand there: put it in front.",
        ),
        Mistake(
            "an earlier answer where the last pair holds no number",
            _earlier_pair,
            "The last pair is what was declared: without a number in it there is no answer.",
            telling=1,
        ),
        Mistake(
            "a pattern whose `.` stops at the end of a line",
            _one_line_only,
            "An answer on a line of its own between its tags is then no answer: `re.DOTALL`.",
            telling=1,
        ),
        Mistake(
            "the first pair of tags",
            _first_pair,
            "A model that corrects itself means the last answer; the first is what it took back.",
        ),
        Mistake(
            "everything from the first opening tag to the last closing one",
            _greedy,
            "`.*` takes as much as it can, over all answers in between; `.*?` takes as little as "
            "it can.",
        ),
        Mistake(
            "a pair that begins at an earlier opening tag",
            _from_the_first_opening,
            "`<answer>(.*?)</answer>` begins at the *first* `<answer>` that is still unmatched, "
            "and a model that talks about the tag has opened one: begin at the last one before "
            "the end.",
            telling=2,
        ),
        Mistake(
            "the text between the tags, as it stands",
            _as_it_stands,
            "“1,500” and “1500” would be different answers: spell the number one way, as "
            "`extract_answer` does.",
        ),
        Mistake(
            "the text between the tags without the blanks around it",
            _stripped,
            "“$14.00” and “14” would be different answers: spell the number one way, as "
            "`extract_answer` does.",
        ),
        Mistake(
            "a split at the tags, which gives something even where there are none",
            _split_needs_no_tags,
            "Where the separator is missing, `split` returns the whole text: check that both tags "
            "are there.",
        ),
        Mistake(
            "an answer whose tag was never closed",
            _needs_no_end,
            "A completion that was cut off may stop in the middle of a number: no end, no answer.",
        ),
        Mistake(
            "the number after `####`, tags or no tags",
            _marked,
            "The prompt asked for tags; this rule reads those and nothing else.",
        ),
        Mistake(
            "the number after `####` where there are no tags",
            _marked_where_untagged,
            "A rule that takes either form cannot say how often the form asked for was kept.",
            telling=1,
        ),
        Mistake(
            "the last number of a text without tags",
            _last_number_where_untagged,
            "That is the lenient rule. Trained with it, a model is paid for whatever number it "
            "wrote last.",
        ),
        Mistake(
            "the last number between the tags",
            _last_number_inside,
            "“14 eggs in 3 boxes” says 14: read the number with which the answer begins.",
            telling=2,
        ),
        Mistake(
            "the first number between the tags, whatever stands before it",
            _first_number_inside,
            "The number must come first, as it must after `####`: “The 3 boxes hold 14” would "
            "say 3.",
            telling=1,
        ),
        Mistake(
            "digits only",
            _digits_only,
            "A minus, a comma, a point, a dollar sign and a unit belong to numbers as people write "
            "them.",
        ),
        Mistake(
            "None wherever `<think>` does not come right before",
            _needs_thoughts,
            "Whether thoughts came first is for `format_reward` to ask; this rule reads answers.",
        ),
        Mistake(
            "None wherever anything follows the closing tag",
            _needs_the_end_of_the_text,
            "An answer stays one when a word of farewell follows it.",
        ),
        Mistake(
            "an empty string where there is no answer",
            _empty_for_none,
            "Two texts without an answer would then agree, and would vote: return None.",
        ),
        Mistake(
            "a Python float",
            _as_number,
            "Answers are compared and counted as strings, in one spelling: return what "
            "`extract_answer` returns.",
        ),
        Mistake(
            "a float printed as it is, 14.0 for 14",
            _as_float_text,
            "A whole number is spelled without a point, as `extract_answer` does.",
        ),
        Mistake(
            "the first pair of tags on one line, found by a plain `.*?`",
            _plain_first_line,
            "The last pair counts, it may span several lines (`re.DOTALL`), and no other "
            "`<answer>` may stand between the tags.",
        ),
    ),
    alternatives=(_by_partition, _by_walking, _by_positions),
    hints=(
        "Two steps: cut out the text between the tags of the last pair; then let `extract_answer` "
        "spell the number. It wants a `####` in front.",
        "The last `</answer>`, and the last `<answer>` before it: `str.rpartition` finds both. "
        "With a regular expression, mind three things: `re.DOTALL`, as little as possible "
        "(`*?`), and no second `<answer>` inside.",
        "Both tags must be there:\n\n"
        "    before, end, _ = text.rpartition('</answer>')\n"
        "    _, begin, inside = before.rpartition('<answer>')\n"
        "    if not (begin and end):\n"
        "        return None\n"
        "    return extract_answer('####' + ...)",
    ),
)
