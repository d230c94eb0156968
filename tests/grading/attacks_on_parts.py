"""Submissions that lie in the middle of an answer, and that strain the program that shows them.

An exam is answered case by case, and what was answered before a process is lost counts. So a lie
may come as a part of an answer; and what is lost may be lost on purpose, where it would be wrong.
"""
# Each attack stands as compactly as it can.
# fmt: off


import classroom as room
from attacks import SECRET, TOTAL, code, every
from attacks_by_file import bytes_of, handed_in
from attacks_by_force import CHANNEL

from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.partial_credit import PARTIAL_CREDIT
from rlcourse.exercises import get
from rlcourse.grading.judging.judge import _seed
from rlcourse.grading.judging.questions import Questions

PARTS = CHANNEL + """
def outcome(value=0.5):
    return {"record": "Outcome", "fields": [["value", value], ["gradients", {"dict": []}]]}
def part(**fields):
    channel.sendall(message({"dict": [[name, value] for name, value in fields.items()]}))
facts = {"record": "Facts", "fields": [["name", "score_function"]]}
"""
ONCE = "global said\nif 'said' in globals(): return 0.5\nsaid = True\n"


def lying(name: str, body: str, status: str | None = "died", deserved=0.0) -> None:
    """An attack by what the first function sends, when it is called first."""
    source = ONCE + body + "\nreturn 0.5"
    code(name, "parts", PARTS, deserved, status, score_function=every(source)["score_function"])


lying("every case answered in the first call", "for _ in range(22): part(outcome=outcome())")
lying("one case answered twice", "part(outcome=outcome())")
lying("other facts, in the middle", "part(facts=facts)")
lying("over in the first call", "part(over=True)")
lying("over, with points", "part(over=True, points=99.0, passed=True, score=1.0)")
lying("an outcome that is none", "part(outcome=5)")
lying("an outcome of a case, and its end", "part(outcome=outcome()); os._exit(0)")
lying("a call that nobody answers", "part(call=1, arguments={'dict': []})")
code("a thread that answers for every function", "parts", PARTS + """
import threading, time
def answer():
    for _ in range(100000): part(outcome=outcome()); time.sleep(0.001)
threading.Thread(target=answer, daemon=True).start()
time.sleep(0.1)
""")  # where both speak at once, a message may be cut, and its end is waited for


def until(name: str, calls: int, end: str) -> dict[str, str]:
    """The solution, which ends its process in the call after so many."""
    inner = room.solution(name).replace(f"def {name}(", "def right(")
    return {name: f"calls = 0\n{inner}\ndef {name}(*args, **kwargs):\n    global calls\n"
                  f"    calls += 1\n    if calls > {calls}: {end}\n"
                  f"    return right(*args, **kwargs)"}


def answered(name: str, calls: int) -> float:
    """Its points when so many questions are answered, and rightly: the share of what counts."""
    visible, hidden = (
        Exam(get(name), _seed(SECRET, name, which), which == "hidden").cases
        for which in ("visible", "hidden")
    )
    order = Questions.draw((visible, hidden), _seed(SECRET, f"check_{name}", "order")).order
    known = {i - len(visible) for i in order[:calls] if i >= len(visible)}
    assert not all(hidden[i].edge for i in range(len(hidden)) if i not in known)
    return PARTIAL_CREDIT * len(known) / len(hidden) * room.POINTS[name]


for how, end, status in (
    ("an exit", "import os; os._exit(0)", "died"),
    ("a crash", "import ctypes; ctypes.string_at(0)", "died"),
    ("a loop", "\n        while True: pass", "timed out"),
    ("a sleep", "import time; time.sleep(10**6)", "timed out"),
):
    code(f"ten right answers, then {how}", "parts", "", answered("exact_policy_gradient", 10),
         status, **until("exact_policy_gradient", 10, end))

# What whoever shows a notebook would choke on

for name, text in {
    "environments that begin": "\\begin{a}" * 2000,
    "dollars without end": "$a$$" * 5000,
    "lists in lists": "\n".join("  " * i + "- a" for i in range(140)),
    "brackets that never close": "[" * 10_000 + "](",
}.items():
    @handed_in(name, "pages", "graded", deserved=TOTAL)
    def _page(field, path, text=text):
        return room.with_markdown(field.perfect, text)


@handed_in("outputs nested in lists", "pages", "graded", deserved=TOTAL)
def _deep_outputs(field, path):
    text = bytes_of(field.perfect).decode()
    return text.replace('"outputs": []', '"outputs": ' + "[" * 300 + "]" * 300).encode()
