"""``rlcourse gpu-check`` in its small form, on the CPU; it has not run on a GPU yet."""

import pytest
import torch
from typer.testing import CliRunner

from rlcourse import cli
from rlcourse.errors import UserError
from rlcourse.planning import gpu_check
from rlcourse.planning.gpu_check import Check


@pytest.fixture(scope="module")
def found():
    """Everything that the small form says of the CPU."""
    said = []
    check = Check(torch.device("cpu"), tiny=True, say=said.append)
    assert check.run(minutes=20), said
    return check.facts


def test_the_cpu_agrees_with_itself(found):
    assert found["float32: log-probs differ by at most"] == 0
    assert found["float32: the gradient differs by"] == 0
    assert found["bfloat16: the gradient differs by"] > 0
    for way in ("few kernels", "fixed cache"):
        assert found[f"{way}: share of equal greedy tokens in float32"] == 1


def test_speeds_are_of_the_tokens_that_were_written(found):
    for way in ("few kernels", "fixed cache", "growing cache"):
        per_second = found[f"{way}: tokens a second"]
        assert per_second == pytest.approx(8 / found[f"{way}: milliseconds a token"] * 1e3)


def test_the_plan_is_of_this_batch(found):
    # Ten megabytes of weights, gradients and averages: 146 thousand weights, 16 bytes each.
    model = Check(torch.device("cpu"), tiny=True).policy().model
    least = 16 * sum(p.numel() for p in model.parameters())
    assert 1 < 1e9 * found["all rows at once: memory by the plan"] / least < 10


def test_what_fails_is_said_and_the_rest_goes_on(monkeypatch):
    def parity(check):
        """One that fails"""
        raise RuntimeError("no kernel image is available\nmore")

    def rest(check):
        check.note("was run", 1)

    for name in ("decoding", "steps", "recipes"):
        monkeypatch.setattr(gpu_check, name, rest)
    monkeypatch.setattr(gpu_check, "parity", parity)
    said = []
    check = Check(torch.device("cpu"), tiny=True, say=said.append)
    assert not check.run(minutes=20)
    assert "  parity: FAILED: RuntimeError: no kernel image is available" in said
    assert check.failed == ["parity"] and check.facts == {"was run": 1}


def test_no_part_begins_after_its_time():
    check = Check(torch.device("cpu"), tiny=True, say=lambda line: None)
    assert check.run(minutes=0) and not check.facts


def test_without_a_gpu_the_command_says_what_to_do():
    done = CliRunner().invoke(cli.app, ["gpu-check", "--device", "cpu"])
    assert isinstance(done.exception, UserError) and "add --tiny" in str(done.exception)
