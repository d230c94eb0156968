"""Submissions that use what a second run puts within their reach: right functions, which answer.

A function that fails and uses wrong ones is asked again, with stand-ins for right ones in their
place. These submissions ask the stand-ins for what is not theirs to ask: questions that lie ahead,
answers to keep for later, numbers to be read off the feedback and handed in the next time. What
reaches the feedback is the word LEAK.
"""
# Each attack stands as compactly as it can.
# fmt: off

import platform
from base64 import b64encode

import classroom as room
from attacks import SECRET, by_notebook, code

from rlcourse.checks.asking import wire
from rlcourse.checks.judging.exam import Exam
from rlcourse.exercises import get
from rlcourse.grading.confinement import syscalls
from rlcourse.grading.judging.judge import _seed

FIRST, EXACT, ESTIMATE, LOSS, STEP = room.NAMES
MIDDLE = (EXACT, ESTIMATE, LOSS)

# What every one of them has at hand: whoever is a stand-in, and the grader's messages
TOOLS = """
import os, socket, struct, sys
wire = next(m for name, m in list(sys.modules.items()) if name.endswith(".wire"))
KEPT = {}
def right_ones():
    return {n: f for n, f in globals().items() if type(f).__name__ == "StandIn"}
def messages(data):
    while len(data) >= 8:
        size = 8 + sum(struct.unpack("<II", data[:8]))
        try: yield wire.loads(data[:size])
        except Exception: return
        data = data[size:]
def keep(message, default=None):
    "Have the stand-ins answer what a message asks."
    name = message.get("function", default)
    for case in message.get("cases") or [message.get("case")]:
        if name in right_ones() and case is not None:
            KEPT.setdefault(name, []).append(right_ones()[name](**case.arguments))
def asked_ahead():
    channel = socket.socket(fileno=os.dup(3))
    try: return list(messages(channel.recv(1 << 24, socket.MSG_PEEK | socket.MSG_DONTWAIT)))
    except OSError: return []
"""
NONE = "raise RuntimeError"  # a function that is wrong on every case


def function(name: str, *lines: str) -> str:
    return f"def {name}(*args, **kwargs):\n    " + "\n    ".join(lines)


def stealing(name: str, look: str, play: str = "return KEPT[NAME].pop(0)") -> None:
    """The last function looks, with all others in reach; these, judged at the end, play it back."""
    names = "; ".join((FIRST, *MIDDLE))
    later = [function(n, FIRST, play.replace("NAME", repr(n))) for n in MIDDLE]
    answers = {FIRST: function(FIRST, NONE), **dict.fromkeys(MIDDLE, "x = 1")}
    answers[STEP] = function(STEP, names, "if right_ones() and not KEPT:",
                             *("    " + line for line in look.strip().splitlines()), "return 0.0")

    def source(field):
        notebook = room.with_answers(field.blank, **answers)
        notebook = room.with_code(notebook, TOOLS)
        return room.with_code(notebook, "\n\n".join(later), "applause")

    by_notebook(name, "second runs", source)


stealing("questions that lie ahead in the socket, asked of right functions", """
for message in asked_ahead(): keep(message)
""")
stealing("questions in the frames of the process", """
frame = sys._getframe()
while frame:
    for value in list(frame.f_locals.values()):
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(part, dict) and {"case", "cases"} & set(part): keep(part, LOSS)
    frame = frame.f_back
""")
stealing("questions that the garbage collector still holds", """
import gc
for thing in gc.get_objects():
    if type(thing) is dict and "do" in thing: keep(thing, EXACT)
""".replace("EXACT", repr(EXACT)))
stealing("an early answer, to be asked the next question sooner", """
said = wire.dumps({"outcome": None})
os.write(3, said * 30)
for message in asked_ahead(): keep(message)
""")
stealing("the end of the exam, said too early, to be asked the next one", """
os.write(3, wire.dumps({"over": True}))
import time; time.sleep(.05)
for message in asked_ahead(): keep(message)
""")
stealing("right functions kept for later", "KEPT.update(right_ones())",
         "return KEPT[NAME](*args, **kwargs)")
stealing("right functions written to a file, as numbers", """
import torch, pickle
with open("kept", "ab") as file: pickle.dump([f._number for f in right_ones().values()], file)
""", """
import pickle
from rlcourse.checks.asking import stand_in
for number in pickle.load(open('kept', 'rb')):
        return stand_in._ask[0](number, kwargs, (), None)['value']
""".strip().replace("\n        return", "\n            return").replace("\n", "\n    "))
stealing("numbers next to those of right functions", """
from rlcourse.checks.asking import stand_in
for f in right_ones().values():
    for number in (*range(f._number - 20, f._number + 20), 0, 1, 2**31 - 1):
        try: KEPT.setdefault(LOSS, []).append(stand_in._ask[0](number, kwargs, (), None)["value"])
        except Exception: pass
""".replace("LOSS", repr(LOSS)))
stealing("shared memory between the runs", """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if libc.shmget(77, 4096, 0o1666) >= 0 or libc.msgget(77, 0o1666) >= 0: print("LEAK")
""")
stealing("names left in the builtins", "import builtins; builtins.kept = right_ones()",
         "import builtins; return builtins.kept[NAME](*args, **kwargs)")


def questions_of(name: str) -> str:
    """All questions about a function, as somebody has them who was graded before."""
    seeds = {which: _seed(SECRET, name, which) for which in ("visible", "hidden")}
    exams = [Exam(get(name), seed, which == "hidden") for which, seed in seeds.items()]
    asked = [case.question() for exam in exams for case in exam.cases]
    return b64encode(wire.dumps([{"function": name, "case": case} for case in asked])).decode()


stealing("questions known from an earlier grading, asked of right functions", f"""
import base64
for message in wire.loads(base64.b64decode({questions_of(LOSS)!r})): keep(message)
""")
stealing("answers to known questions, left in files for the next process", f"""
import base64, pickle
for message in wire.loads(base64.b64decode({questions_of(LOSS)!r})): keep(message)
for place in (".", "/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~"), os.environ["TMPDIR"]):
    try: pickle.dump(KEPT, open(place + "/kept", "wb"))
    except OSError: pass
""", """
import glob, pickle
for path in ("kept", *glob.glob("/*/kept"), *glob.glob("/*/*/kept"), *glob.glob("/*/*/*/kept")):
        KEPT.update(pickle.load(open(path, 'rb')))
return KEPT[NAME].pop(0)
""".strip().replace("\n", "\n    "))
stealing("right functions behind a cache that outlives them", """
import functools
for name, right in right_ones().items():
    KEPT[name] = functools.lru_cache(right)
sys.modules["kept"] = KEPT
""", "import sys; return sys.modules['kept'][NAME](*args, **kwargs)")
stealing("the connection to the grader, kept open", """
import fcntl
KEPT["fd"] = fcntl.fcntl(3, fcntl.F_DUPFD, 500)
os.set_inheritable(KEPT["fd"], True)
""", """
import os
from rlcourse.checks.asking import wire
os.write(500, wire.dumps({"call": 1, "arguments": kwargs, "tracked": (), "weights": None}))
return wire.loads(os.read(500, 1 << 20))["value"]
""".strip().replace("\n", "\n    "))


def alone(name: str, step: str, loss: str = function(LOSS, NONE), before: str = TOOLS, **more):
    """One function that is right in nothing, beside a right one that it does not deserve."""
    code(name, more.pop("kind", "second runs"), before, more.pop("deserved", 0.0),
         more.pop("status", None), **{LOSS: loss, STEP: step}, **more)


alone("a call of a right function where nobody answers", function(STEP, f"return {LOSS}"),
      before=TOOLS + """
from rlcourse.checks.asking import stand_in
for number in range(40): print("LEAK", stand_in._ask[0](number, {}, (), None)["value"])
""", status="died")
alone("a right function put in its own place", function(
    STEP, f"globals()['{STEP}'] = {LOSS}", f"return {LOSS}(*args, **kwargs)"))
alone("another function by the name of a right one", function(
    STEP, f"stand_in = {LOSS}", "from rlcourse.checks.asking.stand_in import StandIn",
    f"return StandIn(getattr(stand_in, '_number', 1), '{STEP}', [])(**kwargs)"))
alone("a circle, in which each would be right by the other", function(STEP, f"return {LOSS}(1)"),
      function(LOSS, f"return {STEP}(*args, **kwargs)"))
alone("right answers asked for by a thread, all the time", function(STEP, LOSS, """
    import threading
    def ask():
        while True:
            try: right_ones()[LOSS](*args)
            except Exception: pass
    threading.Thread(target=ask, daemon=True).start()
    return 0.0""".replace("LOSS", repr(LOSS)).strip()))

# What a function that stands beside a right one says: none of it is to be read anywhere

FINDING = "\n    ".join((
    f"right = {LOSS}",
    "import torch",
    f"if type(right).__name__ != 'StandIn': {NONE}",
    "one = torch.ones(1, 1)",
    "found = 'LE' + 'AK' + str(right(one, one[0], one).item())",
))


def telling(name: str, *lines: str) -> None:
    alone(f"a right answer told by {name}", function(STEP, FINDING, *lines), kind="messages")


telling("an exception", "raise ValueError(found)")
telling("the name of an exception", "raise type(found, (Exception,), {})('x')")
telling("the cause of an exception", "try: 1 / 0",
        "except ZeroDivisionError as error: raise TypeError(found) from error")
telling("an exception of that attribute", "getattr(found, found)")
telling("a missing name", "raise NameError(found, name=found)")
telling("a syntax error", "raise SyntaxError(found, (found, 1, 1, found))")
telling("a key that is missing", "return {}[found]")
telling("a note to an exception", "error = ValueError()", "error.add_note(found)", "raise error")
telling("a group of exceptions", "raise ExceptionGroup(found, [ValueError(found)])")
telling("an exit", "raise SystemExit(found)")
telling("a thread's exception", """
    import threading
    def fail(): raise ValueError(found)
    thread = threading.Thread(target=fail, name=found)
    thread.start(); thread.join()
    return 0.0""".strip())
telling("an object that cannot be deleted", """
    class Last:
        def __del__(self): raise ValueError(found)
    Last()
    return 0.0""".strip())
telling("a log", "import logging; logging.basicConfig(force=True)", "logging.critical(found)",
        "return 0.0")
telling("the display of a notebook", "display(found)", "sys.displayhook(found)", "return 0.0")
telling("names of gradients", """
    from rlcourse.checks.asking import calling
    worker = sys.modules["rlcourse.grading.untrusted.worker"]
    worker.call = lambda fn, case: calling.Outcome(value=0.0, gradients={found: None})
    return 0.0""".strip())
telling("what it says it borrowed",
        "os.write(3, wire.dumps({'over': True, 'borrowed': found}))", "return 0.0")
telling("text of another kind", "return type(found, (str,), {})(found)")
telling("what is printed", "print(found)", "return 0.0")
telling("a warning", "import warnings; warnings.warn(found)", "return 0.0")
telling("the result", "return found")
telling("a result of a type of that name", "return type(found, (), {})()")
telling("the keys of a result", "return {found: 1.0}")
telling("a line of source that was never written", """
    import linecache
    for name in list(linecache.cache):
        if name.startswith("<cell"):
            lines = [found + chr(10)] * 99
            linecache.cache[name] = (len(lines), None, lines, name)
    raise ValueError""".strip())
telling("the function's own name", f"globals()['{STEP}'].__name__ = found", "raise ValueError")
telling("a function of that name, unwritten",
        "exec(f'def {found[:4]}(): raise NotImplementedError'); locals()[found[:4]]()")
telling("changed arguments", "kwargs['policy'].__class__.__name__ = found", "return 0.0")
telling("the output of a cell", "sys.__stdout__.write(found); os.write(1, found.encode())",
        "return 0.0")
telling("an outcome of its own making", """
    from rlcourse.checks.asking import calling
    error = calling.Failure(found, found, 1, found, found, found)
    worker = sys.modules["rlcourse.grading.untrusted.worker"]
    worker.call = lambda fn, case: calling.Outcome(
        error=error, changed=(found,), warnings=(found,), printed=found,
        refused={found: error}, after={found: found})
    return 0.0""".strip())
telling("facts of its own making", """
    from rlcourse.checks.asking import calling
    facts = calling.Facts(found, (found,), (found,), (found,))
    os.write(3, wire.dumps({"facts": facts}))
    return 0.0""".strip())


# Every call that the filter refuses, old ones and new ones with the same to offer

CALLS = """
import ctypes, mmap, platform
libc = ctypes.CDLL(None, use_errno=True)
column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
def call(number, *arguments):
    ctypes.set_errno(0)
    return libc.syscall(number, *arguments, *[0] * (6 - len(arguments))), ctypes.get_errno()
"""
code("refused calls", "calls", CALLS + f"""
for name, numbers in {syscalls._FORBIDDEN | syscalls._ABSENT!r}.items():
    if numbers[column] is None: continue
    found, error = call(numbers[column])
    if found >= 0 or error not in (1, 38): print("LEAK", name, found)
""")
code("calls of kernels to come", "calls", CALLS + f"""
for number in (*range({syscalls._UNKNOWN}, 700), 1023, 4095, 0x3FFFFFFF):
    if call(number) != (-1, 38): print("LEAK", number)
if call((157, 167)[column], 62, 1, 0, 1) != (-1, 1): print("LEAK a core of its own")
""")
code("calls by their x32 numbers", "calls", CALLS + """
for number in (39, 57, 101): print("LEAK", call(0x40000000 + number))
""", status="died")
if platform.machine() == "x86_64":
    code("calls of another architecture", "calls", CALLS + """
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\\xb8\\x02\\x00\\x00\\x00\\xcd\\x80\\xc3")  # mov eax, 2 (fork); int 0x80; ret
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print("LEAK", ctypes.CFUNCTYPE(ctypes.c_int)(address)())
""", status="died")
