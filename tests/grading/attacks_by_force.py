"""Submissions that forge replies, use up the machine, or reach for other processes."""
# Each attack stands as compactly as it can.
# fmt: off

import textwrap

from attacks import TOTAL, code

# Forging on the channel: descriptor 3 is the only way out of the process. What is malformed in
# itself is tried without a process, in test_channel.py.

CHANNEL = """
import json, os, socket, struct, sys
channel = socket.socket(fileno=os.dup(3))
def message(header, body=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<II", len(header), len(body)) + header + body
"""


def forged(name: str, source: str, status: str | None = "died") -> None:
    code(name, "forging", CHANNEL + textwrap.dedent(source), status=status)


forged("a reply that says passed", """
    answer = {"dict": [["passed", True], ["score", 1.0], ["points", 99.0], ["printed", ""],
                       ["error", None], ["late", False], ["memory", False]]}
    for _ in range(30): channel.sendall(message(answer))
""")
forged("outcomes without calls", """
    def outcome():
        return {"record": "Outcome", "fields": [["value", 0.5], ["gradients", {"dict": []}]]}
    facts = {"record": "Facts", "fields": [["name", "score_function"]]}
    for n in (22, 20, 24, 33, 16):
        fields = [["facts", facts], ["outcomes", {"list": [outcome() for _ in range(n)]}]]
        channel.sendall(message({"dict": fields}))
""")
forged("noise", "channel.sendall(b'\\xff' * 8 + os.urandom(100000))")
forged("a message of four gigabytes", """
    channel.sendall(struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF))
    for _ in range(200): channel.sendall(b"x" * 65536)
""")
forged("a message that never ends, a byte at a time", """
    import time
    channel.sendall(struct.pack("<II", 1000000, 0))
    while True:
        try: channel.sendall(b" "); time.sleep(0.05)
        except BaseException: pass
""", status="timed out")
forged("a pickle that runs a command", """
    channel.sendall(message(b"cos\\nsystem\\n(S'touch OUTSIDE/pickled'\\ntR."))
""")
forged("wrong types in every field", """
    bad = [["value", 1], ["gradients", 5], ["changed", "x"], ["error", 3], ["printed", None]]
    fields = [["facts", {"record": "Facts", "fields": [["name", 7]]}],
              ["outcomes", {"list": [{"record": "Outcome", "fields": bad}] * 22}]]
    channel.sendall(message({"dict": fields}))
""")
forged("the pipe closed", "os.close(3); channel.close()")
forged("the pipe closed after the orders are read", """
    import threading, time
    def eat():
        while True:
            try: os.read(3, 1 << 20)
            except OSError: return
    for _ in range(4): threading.Thread(target=eat, daemon=True).start()
    time.sleep(0.2)
""", status=None)

# Using up the machine

code("fork bomb", "exhausting", """
import os
try:
    while True: os.fork()
except OSError as error: print(type(error).__name__)
import subprocess, multiprocessing
for start in (lambda: subprocess.Popen(["sleep", "1000"]), lambda: os.system("sleep 1000 &"),
              lambda: os.posix_spawn("/bin/sleep", ["sleep", "1000"], {}),
              lambda: multiprocessing.Process(target=print).start()):
    try: start()
    except BaseException as error: print(type(error).__name__)
""")
code("memory bomb", "exhausting", """
import torch
hoard = []
while True: hoard.append(torch.ones(2**24))
""", status="over memory")
code("output bomb", "exhausting", """
import os, sys
text = "x" * 10**6
try:
    while True:
        os.write(1, text.encode()); os.write(2, b"y" * 10**6)
        sys.__stdout__.write(text); print(text)
except BaseException: raise
""", status="timed out")
code("disk bomb", "exhausting", """
try:
    for i in range(100000):
        with open(f"file{i}", "wb") as file:
            while file.write(b"x" * 2**20): pass
except OSError as error: print(type(error).__name__)
""", status=None)
code("thread bomb", "exhausting", """
import threading, time
try:
    while True: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
except RuntimeError as error: print(type(error).__name__)
""")
code("a loop that swallows every exception", "exhausting", """
import signal
signal.setitimer(signal.ITIMER_REAL, 0); signal.signal(signal.SIGALRM, signal.SIG_IGN)
while True:
    try:
        while True: pass
    except BaseException: pass
""", status="timed out")
code("a loop in C", "exhausting", "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
    status="timed out")
code("sleep", "exhausting", "import time\ntime.sleep(10**6)", status="timed out")
code("recursion", "exhausting", """
import sys
sys.setrecursionlimit(10**9)
def down(n): return down(n + 1) + 1
down(0)
""", status=None)
code("a loop in the last function, the others solved", "exhausting", "", deserved=TOTAL - 3,
    status="timed out", perfect=True,
    reinforce_step="def reinforce_step(policy, optimizer, batch, max_grad_norm=1.0):\n"
    "    while True: pass")
code("death in the first function, the others solved", "exhausting", "", deserved=TOTAL - 2,
    status="died", perfect=True,
    score_function="def score_function(logits, action):\n    import os; os._exit(1)")

# Other processes

code("signals to the parent and to everybody", "signaling", """
import ctypes, os, signal
libc = ctypes.CDLL(None)
for pid in (os.getppid(), 1, 2, 0, -1, -os.getpgrp()):
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        try:
            if pid not in (0, os.getpid()): os.kill(pid, number)
        except OSError: pass
        if pid > 0 and pid != os.getpid(): libc.syscall(234, pid, pid, int(number))
""", status=None)
code("a crash in C", "signaling", "import ctypes\nctypes.string_at(0)", status="died")
code("exit", "signaling", "import os\nos._exit(0)", status="died")
code("daemons that outlive", "signaling", """
import os, threading, time
def daemon():
    while True:
        try: open("OUTSIDE/alive", "a").write("x")
        except OSError: pass
        time.sleep(0.1)
threading.Thread(target=daemon, daemon=False).start()
try:
    os.setsid()
except OSError: pass
try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(1)
except OSError as error: print(type(error).__name__)
""", status=None)
code("out of the namespaces", "signaling", """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x10000000, 0x00020000, 0x20000000, 0x40000000):
    if libc.unshare(flags) == 0: print("LEAK unshare", hex(flags))
if libc.mount(b"none", b"/", b"tmpfs", 0, None) == 0: print("LEAK mount")
try: os.chroot("."); print("LEAK chroot")
except OSError: pass
try: os.setuid(0); open("/etc/shadow")
except OSError: pass
""")
code("the network", "signaling", """
import socket, urllib.request
for attempt in (lambda: socket.create_connection(("127.0.0.1", PORT), 2),
                lambda: socket.create_connection(("1.1.1.1", 53), 2),
                lambda: urllib.request.urlopen("http://127.0.0.1:PORT", timeout=2),
                lambda: socket.socket(socket.AF_UNIX).connect("\\0anything"),
                lambda: socket.getaddrinfo("example.org", 80)):
    try: attempt(); print("LEAK connected")
    except OSError as error: print(type(error).__name__)
""")

# Honest ones that look strange

code("magics and shell lines", "honest", """
%matplotlib inline
%load_ext autoreload
%timeit 1 + 1
!touch OUTSIDE/shell
files = !ls /
%env HOME=/
!rm -rf COURSE
""", deserved=TOTAL, status="graded", perfect=True)
code("training in a cell of one's own", "honest", """
run = train(load_recipe("reinforce", seed=0))
""", deserved=TOTAL, status="graded", perfect=True)
