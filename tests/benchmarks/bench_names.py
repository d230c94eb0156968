"""How many wrong answers are told what is wrong with them, from readers new to the checks.

    python tests/benchmarks/bench_names.py                    # all answers, some minutes
    python tests/benchmarks/bench_names.py gae grpo_loss      # those to these exercises
    python tests/benchmarks/bench_names.py --untold           # and list those that are told nothing

The answers in answers/ were written from the students' notebooks alone, by readers who had not seen
the declared mistakes. What A and B showed has been declared since, of C, D and F a part, and of E
nothing: the table says what holds today, and measured.md what each set found when it was new. Told
means a declared mistake's name, for all failing cases or for some ("half"), the line of a repair
that was tried, or at least a fact that points to the place, such as the line of an error.
Exits with 1 if a wrong answer passes or a right one does not.
"""

import json
import linecache
import os
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["RLCOURSE_HOME"] = tempfile.mkdtemp()  # no record of the reader's own

import torch

from rlcourse import check
from rlcourse.checks.telling.diagnose import DIFFER

TOLD = ("named", "half", "repaired", "fact")
ANSWERS = sorted(Path(__file__).with_name("answers").glob("*.jsonl"))


def function(answer: dict):
    """The answer as a function whose source Python can find."""
    name, code = f"<{answer['id']}>", answer["code"]
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    namespace = {"__name__": "__main__"}
    exec(compile(code, name, "exec"), namespace)
    return namespace[answer["exercise"]]


def verdict(answer: dict) -> str:
    """passed, named, half, repaired, fact or untold."""
    found = check(function(answer), answer["exercise"], seed=0)
    if found.passed:
        return "passed"
    if found.mistake or found.half:
        return "named" if found.mistake else "half"
    if any(said.startswith("With one change") for said in found.sentences):
        return "repaired"
    empty = (DIFFER, "Your result differs in what is compared")
    return "untold" if all(said.startswith(empty) for said in found.sentences) else "fact"


def main() -> int:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    line, unfair, untold = "{:<10}" + "{:>10}" * 8, 0, []
    print(line.format("", "wrong", "rejected", *TOLD, "told", "right"))
    for path in ANSWERS:
        answers = [json.loads(text) for text in path.read_text("utf-8").splitlines()]
        chosen = [a for a in answers if not names or a["exercise"] in names]
        found = [(a, verdict(a)) for a in chosen]
        wrong = Counter(what for a, what in found if a["wrong"])
        right = Counter(what for a, what in found if not a["wrong"])
        total, told = sum(wrong.values()), sum(wrong[how] for how in TOLD)
        share = f"{told / total:.0%}" if total else "-"
        kept = f"{right['passed']}/{sum(right.values())}"
        row = (total, total - wrong["passed"], *(wrong[how] for how in TOLD), share, kept)
        print(line.format(path.stem.replace("_", " "), *row))
        unfair += wrong["passed"] + sum(right.values()) - right["passed"]
        untold += [a for a, what in found if what == "untold"]
    if "--untold" in sys.argv:
        for answer in untold:
            print(f"\n{answer['id']}: {answer['what']}")
    return int(unfair > 0)


if __name__ == "__main__":
    sys.exit(main())
