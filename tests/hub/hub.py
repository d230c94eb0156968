"""A real JupyterHub with its proxy, on a machine that it leaves as it was.

The hub runs in a mount namespace of its own, with its own list of users: their numbers are used by
nobody, and are gone with it. Needs root, Linux, npm and the network.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "course" / "hub"
USERS = {"ada": 64101, "bob": 64102, "grace": 64103, "grader-rlcourse": 64104}
INSTRUCTOR, GRADER = "grace", "grader-rlcourse"
COURSE, LESSON = "rlcourse", "00_start_here"
TOKEN = "admin-of-the-test"
PATIENCE = 300  # seconds on a busy machine

# What is around the settings that are tested: how people log in, addresses, and a token.
CONFIG = """
c = get_config()
load_subconfig({settings!r})
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.JupyterHub.db_url = "sqlite:///{state}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{state}/cookie_secret"
c.ConfigurableHTTPProxy.pid_file = "{state}/proxy.pid"
c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
c.Spawner.http_timeout = c.Spawner.start_timeout = {patience}
c.JupyterHub.services.append({{"name": "test", "api_token": {token!r}}})
c.JupyterHub.load_roles.append(
    {{"name": "test", "services": ["test"], "scopes": ["admin:users", "admin:servers",
      "access:servers", "tokens", "list:services"]}}
)
"""


def unreachable(path: Path) -> Path | None:
    """The first directory above a path that other users may not enter."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & 0o001:
            return folder
    return None


class Hub:
    """The directories of a machine with a hub, and what its people do."""

    def __init__(self, wheel: Path):
        self.root = Path(tempfile.mkdtemp(prefix="rlcourse-hub-"))
        self.root.chmod(0o755)
        self.environment = self.root / "environment"
        self.exchange, self.course = self.root / "exchange", self.root / "grader" / "course"
        self.process: subprocess.Popen | None = None
        self.log = self.root / "hub.log"
        self._install(wheel)

    def home(self, name: str) -> Path:
        return self.root / "home" / name

    # set-up

    def _install(self, wheel: Path) -> None:
        """The steps of the Dockerfile, in an environment that sees this one's packages."""
        ours = Path(sys.prefix)
        self._run([sys.executable, "-m", "venv", str(self.environment)])
        self.python = self.environment / "bin" / "python"
        (site,) = self.environment.glob("lib/python*/site-packages")
        others = [p for p in map(Path, sys.path) if p.name == "site-packages"]
        (site / "others.pth").write_text("\n".join(map(str, others)) + "\n")
        # of packages that are taken from there, what they put beside themselves
        shutil.copytree(ours / "etc", self.environment / "etc", dirs_exist_ok=True)
        (self.environment / "share").mkdir(exist_ok=True)
        (self.environment / "share" / "jupyter").symlink_to(ours / "share" / "jupyter")
        constraints = self.root / "constraints.txt"
        constraints.write_text("")
        script = SETTINGS / "install.sh"
        self._run(["sh", str(script), str(self.python), str(wheel), str(constraints)])
        node = self.root / "node"
        self._run(["npm", "install", "--silent", "--prefix", str(node), "configurable-http-proxy"])
        self.proxy = node / "node_modules" / ".bin" / "configurable-http-proxy"

    def _run(self, words: list[str]) -> None:
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"

    def prepare(self, course: Path) -> None:
        """Users with homes, the exchange, and the course's directory as the grader's own."""
        passwd, group = "root:x:0:0::/root:/bin/bash\n", "root:x:0:\n"
        for name, number in USERS.items():
            home = self.home(name)
            home.mkdir(parents=True)
            os.chown(home, number, number)
            home.chmod(0o700)
            passwd += f"{name}:x:{number}:{number}::{home}:/bin/bash\n"
            group += f"{name}:x:{number}:\n"
        (self.root / "passwd").write_text(passwd)
        (self.root / "group").write_text(group)
        self.exchange.mkdir()
        self.exchange.chmod(0o1777)
        (self.exchange / COURSE).mkdir()
        os.chown(self.exchange / COURSE, USERS[GRADER], USERS[GRADER])
        shutil.copytree(course.parent, self.course.parent)
        owner = USERS[GRADER]
        for path in (self.course.parent, *self.course.parent.rglob("*")):
            os.chown(path, owner, owner)
        self.course.parent.chmod(0o700)

    def start(self) -> None:
        ports = [free_port() for _ in range(4)]
        self.port = ports[0]
        state = self.root / "state"
        state.mkdir()
        state.chmod(0o700)
        config = self.root / "jupyterhub_config.py"
        config.write_text(
            CONFIG.format(
                settings=str(SETTINGS / "jupyterhub_config.py"),
                port=ports[0],
                hub_port=ports[1],
                proxy_port=ports[2],
                proxy=str(self.proxy),
                state=state,
                token=TOKEN,
                patience=PATIENCE,
            )
        )
        environment = {
            "PATH": f"{self.environment}/bin:{os.environ['PATH']}",
            "RLCOURSE_INSTRUCTORS": INSTRUCTOR,
            "RLCOURSE_GRADER_COURSE": str(self.course),
            "RLCOURSE_GRADER_PORT": str(ports[3]),
            "RLCOURSE_EXCHANGE": str(self.exchange),
            "CONFIGPROXY_AUTH_TOKEN": "proxy-of-the-test",
            "HOME": "/root",
        }
        script = self.root / "start.sh"
        script.write_text(self._namespace() + f"exec jupyterhub -f {config}\n")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "sh", "-eu", str(script)],
                cwd=state,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.wait(lambda: self.ask("GET", "/hub/api/", token=None), "the hub")

    def _namespace(self) -> str:
        """Its own users; and where Python is in a directory that only root may enter, a way in."""
        lines = [f"mount --bind {self.root}/{name} /etc/{name}\n" for name in ("passwd", "group")]
        interpreter = Path(sys.base_prefix).resolve()
        if closed := unreachable(interpreter):
            lines += [
                f"mkdir {self.root}/python\n",
                f"mount --bind {interpreter} {self.root}/python\n",
                f"mount -t tmpfs -o mode=755 tmpfs {closed}\n",
                f"mkdir -p {interpreter}\n",
                f"mount --move {self.root}/python {interpreter}\n",
            ]
        return "".join(lines)

    def stop(self) -> None:
        """End everything that was started here, and remove every file."""
        if self.process:
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(self.process.pid, number)
                    self.process.wait(30)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue
            for pid in self._left_over():
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)

    def _left_over(self) -> list[int]:
        """Processes of the users that exist only here."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if folder.stat().st_uid in USERS.values():
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    # what people do

    def ask(self, method: str, path: str, data=None, token: str | None = TOKEN, form=False):
        """The answer to a request as JSON, or as text; ``urllib.error.HTTPError`` of a refusal."""
        headers = {"Authorization": f"token {token}"} if token else {}
        body = None
        if form:
            body = urllib.parse.urlencode(data).encode()
        elif data is not None:
            body, headers["Content-Type"] = json.dumps(data).encode(), "application/json"
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data=body, headers=headers, method=method
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            text = answer.read().decode()
        try:
            return json.loads(text)
        except ValueError:
            return text

    def wait(self, attempt, what: str):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return attempt()
            except (OSError, AssertionError) as error:
                ended = self.process is None or self.process.poll() is not None
                if ended or time.monotonic() > deadline:
                    raise AssertionError(
                        f"{what}: {error}\n{self.log.read_text()[-6000:]}"
                    ) from error
            time.sleep(0.5)

    def token_of(self, name: str) -> str:
        return self.ask("POST", f"/hub/api/users/{name}/tokens", {"note": "test"})["token"]

    def add(self, name: str) -> None:
        """Let the hub know a person; those whom its settings name are known already."""
        try:
            self.ask("POST", f"/hub/api/users/{name}")
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise

    def log_in(self, name: str) -> str:
        """Start a person's server; returns their own token."""
        self.add(name)
        token = self.token_of(name)
        try:
            self.ask("POST", f"/hub/api/users/{name}/server", {}, token=token)
        except urllib.error.HTTPError as error:
            raise AssertionError(
                f"{error.read().decode()}\n{self.log.read_text()[-6000:]}"
            ) from error
        self.wait(lambda: self.ask("GET", f"/user/{name}/api", token=token), f"{name}'s server")
        return token

    def as_user(self, name: str, command: str, cwd: Path) -> str:
        """What a command in a terminal of that user prints."""
        assert self.process
        number = str(USERS[name])
        words = ["nsenter", "-t", str(self.process.pid), "-m", "setpriv", "--reuid", number]
        words += ["--regid", number, "--clear-groups", "--no-new-privs", "bash", "-euc"]
        done = subprocess.run(
            [*words, f"cd {cwd}; {command}"],
            env={
                "PATH": f"{self.environment}/bin:/usr/bin:/bin",
                "HOME": str(self.home(name)),
                "USER": name,
                "OMP_NUM_THREADS": "1",
                "RLCOURSE_EXCHANGE": str(self.exchange),
            },
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]
