"""Reading the answer from between its tags."""

import re
from collections.abc import Iterator
from functools import partial

from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
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


PAIR = "<answer>((?:(?!<answer>).)*?)</answer>"
PLAIN = "<answer>(.*?)</answer>"
DIGITS = r"<answer>\s*([0-9]+)\s*</answer>"
NUMBER = r"-?\$?[0-9][0-9,]*(?:\.[0-9]+)?"
THOUGHTS = r"<think>.*?</think>\s*<answer>"


def in_two_steps(text):
    pairs = re.findall(PAIR, text, re.DOTALL)
    number = extract_answer("####" + pairs[-1]) if pairs else None
    return number


def numbers(texts: list[str]) -> list[str]:
    """Those with which the texts begin, where they do, in one spelling."""
    return [number for text in texts if (number := extract_answer("####" + text)) is not None]


def last(found: list[str]) -> str | None:
    return found[-1] if found else None


_edit = Sketch(in_two_steps, numbers, last).alone
_find = partial(_edit, "PAIR, text, re.DOTALL")
_read = partial(_edit, 'extract_answer("####" + pairs[-1])')
_if = partial(_edit, "if pairs else None")
_returned = partial(_edit, "return number")


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
            _find("PLAIN, text, re.DOTALL", "[-1]", "[0]"),
            "A model that corrects itself means the last one; and `.*?` runs across an opening tag "
            "that was never closed.",
        ),
        Mistake(
            "a plain `.*?`, which stops at the end of a line and runs across an opening tag",
            _find("PLAIN, text"),
            "`re.DOTALL` lets `.` match a line break; and between the tags no other `<answer>` may "
            "stand.",
            telling=2,
        ),
        Mistake(
            "the text between the tags, read by `extract_answer` as it is",
            _read("extract_answer(pairs[-1])"),
            "`extract_answer` looks for `####`, which does not stand there: put it in front.",
        ),
        Mistake(
            "an earlier answer where the last pair holds no number",
            _read("last(numbers(pairs))"),
            "The last pair is what was declared: without a number in it there is no answer.",
            telling=1,
        ),
        Mistake(
            "a pattern whose `.` stops at the end of a line",
            _find("PAIR, text"),
            "An answer on a line of its own between its tags is then no answer: `re.DOTALL`.",
            telling=1,
        ),
        Mistake(
            "the first pair of tags",
            _edit("[-1]", "[0]"),
            "A model that corrects itself means the last answer; the first is what it took back.",
        ),
        Mistake(
            "everything from the first opening tag to the last closing one",
            _find("PLAIN.replace('?', ''), text, re.DOTALL"),
            "`.*` takes as much as it can, over all answers in between; `.*?` takes as little as "
            "it can.",
        ),
        Mistake(
            "a pair that begins at an earlier opening tag",
            _find("PLAIN, text, re.DOTALL"),
            "`<answer>(.*?)</answer>` begins at the *first* `<answer>` that is still unmatched, "
            "and a model that talks about the tag has opened one: begin at the last one before "
            "the end.",
            telling=2,
        ),
        Mistake(
            "the text between the tags, as it stands",
            _read("pairs[-1]"),
            "“1,500” and “1500” would be different answers: spell the number one way, as "
            "`extract_answer` does.",
        ),
        Mistake(
            "the text between the tags without the blanks around it",
            _read("pairs[-1].strip()"),
            "“$14.00” and “14” would be different answers: spell the number one way, as "
            "`extract_answer` does.",
        ),
        Mistake(
            "a split at the tags, which gives something even where there are none",
            _returned('return last(numbers([text.split("<answer>")[-1].split("</answer>")[0]]))'),
            "Where the separator is missing, `split` returns the whole text: check that both tags "
            "are there.",
        ),
        Mistake(
            "an answer whose tag was never closed",
            _returned('return last(numbers(text.split("<answer>")[1:][-1:]))'),
            "A completion that was cut off may stop in the middle of a number: no end, no answer.",
        ),
        Mistake(
            "the number after `####`, tags or no tags",
            _returned("return extract_answer(text)"),
            "The prompt asked for tags; this rule reads those and nothing else.",
        ),
        Mistake(
            "the number after `####` where there are no tags",
            _if("if pairs else extract_answer(text)"),
            "A rule that takes either form cannot say how often the form asked for was kept.",
            telling=1,
        ),
        Mistake(
            "the last number of a text without tags",
            _if("if pairs else last(numbers(re.findall(NUMBER, text)))"),
            "That is the lenient rule. Trained with it, a model is paid for whatever number it "
            "wrote last.",
        ),
        Mistake(
            "the last number between the tags",
            _read("last(numbers(re.findall(NUMBER, pairs[-1])))"),
            "“14 eggs in 3 boxes” says 14: read the number with which the answer begins.",
            telling=2,
        ),
        Mistake(
            "the first number between the tags, whatever stands before it",
            _read("last(numbers(re.findall(NUMBER, pairs[-1])[:1]))"),
            "The number must come first, as it must after `####`: “The 3 boxes hold 14” would "
            "say 3.",
            telling=1,
        ),
        Mistake(
            "digits only",
            _find("DIGITS, text"),
            "A minus, a comma, a point, a dollar sign and a unit belong to numbers as people write "
            "them.",
        ),
        Mistake(
            "None wherever `<think>` does not come right before",
            _if("if pairs and re.search(THOUGHTS, text, re.DOTALL) else None"),
            "Whether thoughts came first is for `format_reward` to ask; this rule reads answers.",
        ),
        Mistake(
            "None wherever anything follows the closing tag",
            _if('if pairs and text.rstrip().endswith("</answer>") else None'),
            "An answer stays one when a word of farewell follows it.",
        ),
        Mistake(
            "an empty string where there is no answer",
            _returned('return number or ""'),
            "Two texts without an answer would then agree, and would vote: return None.",
        ),
        Mistake(
            "a Python float",
            _returned("return float(number) if number else None"),
            "Answers are compared and counted as strings, in one spelling: return what "
            "`extract_answer` returns.",
        ),
        Mistake(
            "a float printed as it is, 14.0 for 14",
            _returned("return str(float(number)) if number else None"),
            "A whole number is spelled without a point, as `extract_answer` does.",
        ),
        Mistake(
            "the first pair of tags on one line, found by a plain `.*?`",
            _find("PLAIN, text", "[-1]", "[0]"),
            "The last pair counts, it may span several lines (`re.DOTALL`), and no other "
            "`<answer>` may stand between the tags.",
        ),
    ),
    alternatives=(_by_partition, _by_walking, _by_positions, in_two_steps),
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
