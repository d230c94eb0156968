"""Submissions that look for a copy of the course in all the places where one may lie.

What they find of it they print after the word LEAK; after the word SEEN, that something is there
and what it is called, which only the layer *mount* keeps from them. The students' own library,
which they may read, holds stubs; so whatever else says ``completion_logprobs`` is a leak.
"""
# Each attack stands as compactly as it can.
# fmt: off

import classroom as room
from attacks import code

LOOK = """
import os, sys
own = os.path.dirname(os.path.dirname(__import__("rlcourse").__file__))
words = (b"completion_logprobs = ", b"EXERCISE = Exercise(", b"HIDDEN" + b"-TREASURE")
def look(path):
    if str(path).startswith(own): return
    try:
        with open(path, "rb") as file: text = file.read(3_000_000)
    except (OSError, ValueError): return
    if any(word in text for word in words): print("LEAK", path)
def walk(top, levels=12):
    for root, folders, files in os.walk(top):
        if root.count("/") - top.count("/") > levels: folders.clear()
        for name in files: yield root, name
"""


def looking(name: str, source: str) -> None:
    code(name, "copies", LOOK + source.replace("REPOSITORY", str(room.REPOSITORY)))


looking("whole repositories", """
for root, folders, files in os.walk("/"):
    if ".git" in folders or ".hg" in folders: print("LEAK", root)
for path in ("REPOSITORY", "REPOSITORY/.git", "REPOSITORY/tests", "COURSE", "COURSE/.."):
    try: print("LEAK", path, os.listdir(path)[:3])
    except OSError: pass
""")
looking("a second copy, imported from every directory of packages", """
import importlib.machinery as machinery, glob
roots = {os.path.dirname(p) for p in sys.path if p} | set(sys.path) | set(
    glob.glob("/usr/lib/python3*/*-packages") + glob.glob("/usr/local/lib/python3*/*-packages")
    + glob.glob("/home/*/.local/lib/python3*/site-packages") + glob.glob("/opt/*/lib/python3*/*"))
for root in roots:
    spec = machinery.PathFinder.find_spec("rlcourse", [root])
    if spec and spec.origin and not spec.origin.startswith(own): print("LEAK", spec.origin)
""")
looking("what the installer wrote down of the course", """
import importlib.metadata as metadata
for package in metadata.distributions():
    if "rlcourse" in str(package.metadata["Name"]):
        print("LEAK", package.read_text("direct_url.json"), package.read_text("RECORD"))
for home in sys.path:
    try: names = os.listdir(home or ".")
    except OSError: continue
    for name in names:
        if name.endswith(".pth") or "rlcourse" in name and home != own: print("SEEN", home, name)
""")
looking("the way out through /proc", """
for base in ("/proc/self/root", "/proc/1/root", "/proc/self/cwd/../..", "/proc/thread-self/root"):
    for path in ("REPOSITORY/README.md", "COURSE/gradebook.db", "SECRET"):
        try: print("LEAK", base, open(base + path, "rb").read(9))
        except OSError: pass
for name in ("mountinfo", "maps", "environ", "cmdline"):
    try:
        text = open("/proc/self/" + name).read()
        if "REPOSITORY" in text: print("LEAK", name)
    except OSError: pass
""")
looking("files by handle, by descriptor, by inode", """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for word, flags in (("LEAK", 0), ("SEEN", os.O_PATH), ("SEEN", os.O_PATH | os.O_DIRECTORY)):
    for path in ("REPOSITORY/tests", "SECRET", "COURSE", "COURSE/gradebook.db"):
        try: seen = os.open(path, flags); print(word, path)
        except OSError: continue
        for how in (lambda: os.read(seen, 1), lambda: os.listdir(seen), lambda: os.listdir(
                f"/proc/self/fd/{seen}"), lambda: open(f"/proc/self/fd/{seen}").read(1)):
            try: how(); print("LEAK", path)
            except OSError: pass
handle = ctypes.create_string_buffer(136)
if libc.open_by_handle_at(3, handle, 0) >= 0: print("LEAK a handle")
""")
looking("the sources behind the stubs", """
import inspect, rlcourse.algorithms as library
for name in ("reinforce_loss", "score_function", "reinforce_step", "grpo_loss", "gae"):
    thing = getattr(library, name)
    text = inspect.getsource(inspect.unwrap(thing))
    if "raise NotImplementedError" not in text: print("LEAK", text)
    for cell in thing.__closure__ or (): print("LEAK", cell)
""")
