"""JupyterHub for a class: a server for each student, and Formgrader as a service for instructors.

Each user of the hub is a user of the system, which nbgrader's exchange rests on. The Littlest
JupyterHub makes them; it reads this file from its directory of settings, see ../jupyterhub.md.
"""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821  (JupyterHub defines it)

COURSE = "rlcourse"
INSTRUCTORS = os.environ.get("RLCOURSE_INSTRUCTORS", "").split()  # nobody, if it is not set
GRADER = os.environ.get("RLCOURSE_GRADER", "grader-rlcourse")  # owns the course's directory
DIRECTORY = os.environ.get("RLCOURSE_GRADER_COURSE", f"/home/{GRADER}/rlcourse/course")
PORT = int(os.environ.get("RLCOURSE_GRADER_PORT", "9999"))
EXCHANGE = os.environ.get("RLCOURSE_EXCHANGE", "/srv/nbgrader/exchange")
# Where the users' programs are: The Littlest JupyterHub has an environment for them, and says where
# its environments are; on another hub they are beside the hub's own, unless named.
TLJH = os.environ.get("TLJH_INSTALL_PREFIX")
USERS = Path(TLJH, "user", "bin") if TLJH else Path(sys.executable).parent
BIN = Path(os.environ.get("RLCOURSE_USERS_BIN", USERS))
# Where the grader's are, who has an environment of their own
GRADERS = Path(f"/home/{GRADER}/environment/bin")
GRADER_BIN = Path(os.environ.get("RLCOURSE_GRADER_BIN", GRADERS if os.path.isdir(GRADERS) else BIN))
# One thread for a student: torch would take all processors of the machine for every kernel.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "RLCOURSE_EXCHANGE": EXCHANGE}

# Kept by the spawners of The Littlest JupyterHub and of Kubernetes; others ignore them. The former
# reads this file last: both limits win over `tljh-config set limits.memory` or `.cpu`.
c.Spawner.mem_limit = "2G"
c.Spawner.cpu_limit = 1.0
c.Spawner.environment = dict(ENVIRONMENT)
c.Spawner.default_url = "/lab"
c.Spawner.notebook_dir = "~/rlcourse-lessons"
c.Spawner.cmd = [
    *("bash", "-c", 'umask 0077; mkdir -p ~/rlcourse-lessons; exec "$0" "$@"'),
    str(BIN / "jupyterhub-singleuser"),
]

# A hub ends itself if a service that it starts does not answer within ten seconds, and Formgrader
# takes longer on a busy machine. So this answers the hub's first request, then becomes Formgrader.
BECOMES = """
import http.server, os, sys

class Starting(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Formgrader is starting: reload this page in a minute.")

server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Starting)
server.timeout = 15  # seconds; when the hub restarts a service that has ended, it does not ask
server.handle_request()
server.server_close()
os.execv(sys.argv[2], sys.argv[2:])
"""

# Formgrader runs once, as the user who owns the gradebook, and only instructors get in. Services
# that the hub has already must stay: one of them ends the servers that nobody uses.
c.JupyterHub.load_groups.update({f"formgrade-{COURSE}": {"users": INSTRUCTORS}})
c.JupyterHub.load_roles.append(
    {
        "name": f"formgrade-{COURSE}",
        "groups": [f"formgrade-{COURSE}"],
        "scopes": [f"access:services!service={COURSE}"],
    }
)
c.JupyterHub.services.append(
    {
        "name": COURSE,
        "url": f"http://127.0.0.1:{PORT}",
        "user": GRADER,
        "cwd": DIRECTORY,
        "command": [
            *(str(GRADER_BIN / "python"), "-c", BECOMES, str(PORT)),
            str(GRADER_BIN / "jupyterhub-singleuser"),
            "--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}",
            f"--ServerApp.root_dir={DIRECTORY}",
        ],
        "environment": {**ENVIRONMENT, "JUPYTERHUB_DEFAULT_URL": "/formgrader"},
        "oauth_no_confirm": True,
    }
)
