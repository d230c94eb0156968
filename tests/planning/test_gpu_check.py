"""``rlcourse gpu-check`` in its small form, on the CPU."""

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
    assert check.run(), said
    return check.facts


def test_the_cpu_agrees_with_itself(found):
    assert found["float32: log-probs differ by at most"] == 0
    assert found["float32: the gradient differs by"] == 0
    assert found["bfloat16: the gradient differs by"] > 0
    for way in ("few kernels", "fixed cache"):
        assert found[f"{way}: share of equal greedy tokens in float32"] == 1


@pytest.mark.parametrize("has_bfloat16, timed", [(True, "bfloat16"), (False, "float16")])
def test_a_gpu_is_timed_in_16_bits_that_it_has(has_bfloat16, timed, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **how: has_bfloat16)
    check, tried = Check(torch.device("cuda"), tiny=True, say=lambda line: None), []
    monkeypatch.setattr(gpu_check, "_some_steps", lambda check, label, how: tried.append(how))
    gpu_check.steps(check)
    assert check.precision == timed
    assert ("bfloat16" in check.precisions) == has_bfloat16
    assert {how["dtype"] for how in tried} == {timed, "float16"}


def test_what_fails_is_said_and_the_rest_goes_on(monkeypatch):
    def parity(check):
        """One that fails"""
        raise RuntimeError("no kernel image is available\nmore")

    def rest(check):
        check.note("was run", 1)

    for name in ("decoding", "steps"):
        monkeypatch.setattr(gpu_check, name, rest)
    monkeypatch.setattr(gpu_check, "parity", parity)
    said = []
    check = Check(torch.device("cpu"), tiny=True, say=said.append)
    assert not check.run()
    assert "  parity: FAILED: RuntimeError: no kernel image is available" in said
    assert check.failed == ["parity"] and check.facts == {"was run": 1}


def test_without_a_gpu_the_command_says_what_to_do():
    done = CliRunner().invoke(cli.app, ["gpu-check", "--device", "cpu"])
    assert isinstance(done.exception, UserError) and "add --tiny" in str(done.exception)
