"""What the model hub may answer, asked through the real client of a hub on this machine."""

import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from small_models import small_model, small_tokenizer

from rlcourse.errors import UserError
from rlcourse.policy import Policy

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


def test_a_tokenizer_without_pad_token_pads_with_the_end_of_text():
    tokenizer = small_tokenizer()
    tokenizer.pad_token = None
    policy = Policy(small_model("llama"), tokenizer)
    assert policy.pad_id == tokenizer.eos_token_id
    tokens, mask = policy.encode_prompts(["a b c", "a"])
    assert (tokens[~mask] == tokenizer.eos_token_id).all() and not mask.all()


def test_a_tokenizer_with_neither_is_refused_with_a_sentence():
    tokenizer, model = small_tokenizer(), small_model("llama")
    tokenizer.pad_token = tokenizer.eos_token = None
    model.generation_config.eos_token_id = None
    with pytest.raises(UserError, match="neither a padding nor an end-of-text token"):
        Policy(model, tokenizer)


def test_a_tokenizer_without_chat_template_gets_plain_text():
    tokenizer = small_tokenizer()
    tokenizer.chat_template = None
    policy = Policy(small_model("llama"), tokenizer)
    assert policy.format_prompt("7?", system="Be brief.") == "Be brief.\n\nQuestion: 7?\nAnswer:"
