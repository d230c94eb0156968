"""``rlcourse gpu-check`` in its small form, on the CPU."""

import pytest
import torch
from typer.testing import CliRunner

from rlcourse import cli
from rlcourse.errors import UserError
from rlcourse.planning import gpu_check


def run(*arguments):
    return CliRunner().invoke(cli.app, ["gpu-check", "--device", "cpu", *arguments])


@pytest.mark.slow
def test_the_cpu_agrees_with_itself_and_is_timed():
    done = run("--tiny")
    assert done.exit_code == 0, done.output
    facts = [line.strip() for line in done.output.splitlines() if line.startswith("  ")]
    found = dict(fact.rsplit("  ", 1) for fact in facts)
    found = {name.strip(): amount.split()[0] for name, amount in found.items()}
    assert found["float32: log-probs differ by at most"] == "0"
    assert float(found["bfloat16: the gradient differs by"]) > 0
    assert float(found["all rows at once: tokens_per_second"]) > 0
    assert float(found["all rows at once: seconds"]) > 0


@pytest.mark.parametrize("has_bfloat16, used", [(True, "bfloat16"), (False, "float16")])
def test_a_gpu_is_asked_for_16_bits_that_it_has(has_bfloat16, used, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **how: has_bfloat16)
    assert gpu_check.half(torch.device("cuda")) == used


def test_what_fails_is_said_and_the_rest_goes_on(monkeypatch):
    def parity(device, tiny):
        raise RuntimeError("no kernel image is available\nmore")

    monkeypatch.setattr(gpu_check, "steps", lambda device, tiny: [("was run", 1, "")])
    monkeypatch.setattr(gpu_check, "parity", parity)
    done = run("--tiny")
    assert "parity FAILED: RuntimeError: no kernel image is available\n" in done.output
    assert "was run" in done.output
    assert isinstance(done.exception, UserError) and "parity failed" in str(done.exception)


def test_without_a_gpu_the_command_says_what_to_do():
    assert "add --tiny" in str(run().exception)
