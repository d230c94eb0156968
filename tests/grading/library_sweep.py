"""Run by a test with the students' library on its path: every public function of it, on cases.

    python -I library_sweep.py LIBRARY PACKAGES QUESTIONS ANSWERS

QUESTIONS is a message {exercise: {"parameters": [...], "cases": [...]}}. Each function found is
called by parameter name where its names allow it, by position where their number does, and what
else it requires is 1. A call that takes long is ended: what computes for seconds on a case, such
as drawing as many problems as a tensor says, is no answer. ANSWERS is a directory that gets a file
{function: [outcome, ...]} for each exercise.
"""

import inspect
import json
import pkgutil
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

SECONDS = 2.0  # of a processor, for a call; then every half


class TakesLong(Exception):
    pass


def end(number, frame):
    raise TakesLong


def functions(package):
    """Public functions and methods' functions of all modules, by their full name."""
    for info in pkgutil.walk_packages(package.__path__, "rlcourse."):
        if info.name.split(".")[1] in ("grading", "checks"):
            continue  # the caller's own, which compute nothing
        try:
            module = import_module(info.name)
        except Exception as error:
            print(info.name, error, file=sys.stderr)
            continue
        for name, thing in vars(module).items():
            if inspect.isfunction(thing) and thing.__module__ == module.__name__:
                yield f"{info.name}.{name}", thing


def adapters(function, wanted):
    """Ways to call `function` with the arguments of an exercise."""
    parameters = [
        p for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]  # fmt: skip
    known = [p.name for p in parameters if p.name in wanted]
    required = [p.name for p in parameters if p.default is p.empty]
    rest = {name: 1 for name in required if name not in known}
    if known and len(known) >= len(required) - 1 and len(rest) <= 1:
        yield lambda **a: function(**{n: a[n] for n in known if n in a}, **rest)
    if known != wanted and len(required) <= len(wanted) <= len(parameters):
        yield lambda **a: function(*a.values())


def main(library, packages, questions, answers):
    sys.path[:0] = [library]
    sys.path += json.loads(packages)
    import torch

    import rlcourse
    from rlcourse.checks.asking import wire
    from rlcourse.checks.asking.calling import call

    torch.set_num_threads(1)
    subprocess.run = None  # starts nothing: one function would call pip for each case
    asked = wire.loads(Path(questions).read_bytes())
    found = {}
    signal.signal(signal.SIGPROF, end)
    everything = list(functions(rlcourse))
    for exercise, question in asked.items():
        for name, function in everything:
            for number, adapter in enumerate(adapters(function, question["parameters"])):
                outcomes = []
                for case in question["cases"]:
                    signal.setitimer(signal.ITIMER_PROF, SECONDS, 0.5)
                    try:
                        outcomes.append(call(adapter, case))
                    except TakesLong:
                        break
                    finally:
                        signal.setitimer(signal.ITIMER_PROF, 0)
                    if outcomes[0].error:
                        break
                else:
                    try:
                        wire.dumps(outcomes)
                    except Exception:
                        continue  # an answer that no grader would accept
                    found.setdefault(exercise, {})[f"{name} {number}"] = outcomes
    print(len(everything), "functions")
    Path(answers).mkdir()
    for exercise, outcomes in found.items():
        Path(answers, exercise).write_bytes(wire.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
