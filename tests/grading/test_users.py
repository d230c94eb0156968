"""Grading without root: isolated as promised, or refused with one sentence."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import classroom as room
import pytest
from shared import one_in
from test_isolation import TRY_EVERYTHING, WALLED_IN

from rlcourse.grading.confinement import isolation

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's"),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else"),
]

# A user namespace in which nobody may make another one, and then nobody in it
NO_NAMESPACES = """
import os, sys
sys.path.insert(0, {repository!r})
from rlcourse.grading.confinement import syscalls
ready, mapped = os.pipe(), os.pipe()
child = os.fork()
if child:
    os.read(ready[0], 1)
    for name in ("uid_map", "gid_map"):
        open(f"/proc/{{child}}/{{name}}", "w").write("0 0 65536")
    os.write(mapped[1], b"x")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
syscalls.unshare(syscalls.NEWUSER)
os.write(ready[1], b"x")
os.read(mapped[0], 1)
try: open("/proc/sys/user/max_user_namespaces", "w").write("0")
except OSError as error: sys.exit(f"cannot forbid user namespaces here: {{error}}")
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
GRADE = """
import json, pathlib, sys
sys.path[:0] = [{repository!r}, {tests!r}]
from rlcourse.errors import UserError
from rlcourse.grading.engine import Options, grade
from rlcourse.grading.confinement import probing
said = {{"standing": sorted(probing.probe().standing)}}
for name, options in (("strict", Options(strict=True)), ("usual", Options())):
    warnings = []
    try: said[name] = grade("02", course=pathlib.Path({course!r}), options=options,
                            on_warning=warnings.append).as_json()["submissions"]
    except UserError as error: said[name] = str(error)
    said[name + " warnings"] = warnings
json.dump(said, sys.stdout)
"""
NEVER = {
    "read the repository",
    "list the repository",
    "write to /var/tmp",
    "start a process",
    "make a socket",
    "signal others",
    "be root over files",
}


def _as_nobody() -> list[str]:
    """A command prefix that becomes nobody, with this Python in reach.

    Python may stand in a directory that only root enters; then it is shown at the same place in a
    mount namespace where others enter, too.
    """
    base = str(Path(sys.base_prefix).resolve())
    script = f"""
drop() {{ exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }}
if ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x {base}/bin/python3; then
  top=/$(echo {base} | cut -d/ -f2); kept=$(mktemp -d)
  mount --bind {base} $kept && mount -t tmpfs -o mode=755 tmpfs $top && mkdir -p {base} &&
    mount --bind $kept {base} || {{ echo "cannot become nobody here" >&2; exit 1; }}
fi
drop "$@"
"""
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


def commands(program: str) -> dict[str, list[str]]:
    script = NO_NAMESPACES.format(repository=str(room.REPOSITORY))
    as_nobody = _as_nobody()
    alone = [*as_nobody, sys.executable, "-c", program]
    as_root_in_reach = [*as_nobody[:-2], as_nobody[-2].replace('drop "$@"', 'exec "$@"'), "sh"]
    return {
        "an ordinary user": alone,
        "an ordinary user without user namespaces": [
            *as_root_in_reach, sys.executable, "-c", script, program,
        ],
        "root of a container without capabilities": [
            "setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", program,
        ],
    }  # fmt: skip


@pytest.mark.parametrize("who", one_in(3, commands("")))
def test_less_than_root_is_isolated_or_refused(who, template, reachable):
    home = reachable / who.replace(" ", "-")
    shutil.copytree(template.parent, home / "repository")
    course = home / "repository" / "course"
    room.submit(course, "honest", room.solved(course, ["score_function"]))
    room.submit(course, "spy", room.with_code(room.released(course), TRY_EVERYTHING))
    for path in (home, *home.rglob("*")):
        if "ordinary" in who:
            os.chown(path, 65534, 65534)
    names = {"repository": str(room.REPOSITORY), "tests": str(Path(__file__).parent)}
    program = GRADE.format(**names, course=str(course))
    done = subprocess.run(
        commands(program)[who], capture_output=True, text=True, cwd="/", timeout=1800,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    if "cannot" in done.stderr or "setpriv:" in done.stderr:
        pytest.skip(f"this machine cannot be {who}: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    missing = {*isolation.LAYERS} - {*said["standing"]}
    if who == "an ordinary user" and missing:
        pytest.skip(f"an ordinary user has only {said['standing']} here")
    if missing:
        assert "--strict refuses" in said["strict"] or "nothing was graded" in said["strict"]
    else:
        assert who == "an ordinary user" and said["strict warnings"] == []
    if not all({*said["standing"]} & {*pair} for pair in isolation.ESSENTIAL):
        assert "nothing was graded" in said["usual"] and "--allow-weak-isolation" in said["usual"]
        return
    assert {row["student"]: row["score"] for row in said["usual"]} == {"honest": 2.0, "spy": 0.0}
    assert not missing or all(name in said["usual warnings"][0] for name in missing)
    text = (course / "autograded" / "spy" / room.LESSON / f"{room.LESSON}.ipynb").read_text()
    managed = {part.split("\\n")[0] for part in text.split("did ")[1:]}
    assert "write to the scratch directory" in managed and not managed & NEVER
    assert missing or managed >= WALLED_IN
