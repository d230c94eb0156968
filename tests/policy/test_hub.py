"""What the model hub may answer, asked through the real client of a hub on this machine."""

import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytestmark = pytest.mark.slow
SCRIPT = (
    "from rlcourse.policy import Policy; from rlcourse.errors import UserError\n"
    "try: Policy.load('somebody/some-model')\n"
    "except UserError as error: print(error)"
)


@pytest.fixture
def hub():
    """An address that answers every request with `hub.status` and the error code `hub.code`."""

    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(server.status)
            self.send_header("X-Error-Code", server.code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "status, code, said",
    [
        (403, "GatedRepo", "has terms: accept them on its page and run `hf auth login`."),
        (401, "RepoNotFound", "check the name, or run `hf auth login` if it is private."),
        (404, "RepoNotFound", "check the name, or run `hf auth login` if it is private."),
    ],
)
def test_what_the_hub_refuses_is_one_sentence_that_says_what_to_do(
    hub, status, code, said, tmp_path, monkeypatch
):
    hub.status, hub.code = status, code
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.server_port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout.count("\n") == 1, done.stderr
    assert "'somebody/some-model'" in done.stdout and done.stdout.strip().endswith(said)


def test_a_hub_that_is_away_is_one_sentence_and_no_minute_of_retries(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]  # nobody listens there any more
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert "the Hugging Face hub cannot be reached: check the network" in done.stdout
    assert done.stdout.count("\n") == 1 and "Retrying" not in done.stderr, done.stderr
