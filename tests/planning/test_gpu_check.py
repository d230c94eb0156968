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
def test_steps_are_timed_beside_what_the_plan_says():
    done = run("--tiny")
    assert done.exit_code == 0, done.output
    facts = [line.strip() for line in done.output.splitlines() if line.startswith("  ")]
    found = dict(fact.rsplit("  ", 1) for fact in facts)
    found = {name.strip(): amount.split()[0] for name, amount in found.items()}
    assert float(found["all rows at once: memory by the plan"]) > 0
    assert float(found["all rows at once: tokens_per_second"]) > 0
    assert float(found["all rows at once: seconds"]) > 0


@pytest.mark.parametrize("has_bfloat16, used", [(True, "bfloat16"), (False, "float16")])
def test_a_gpu_is_asked_for_16_bits_that_it_has(has_bfloat16, used, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **how: has_bfloat16)
    assert gpu_check.half(torch.device("cuda")) == used


def test_what_a_driver_says_is_one_sentence(monkeypatch):
    def steps(device, tiny):
        yield "first", 1.0, "s"
        raise RuntimeError("CUDA error: no kernel image is available\nmore")

    monkeypatch.setattr(gpu_check, "steps", steps)
    done = run("--tiny")
    assert "first" in done.output and isinstance(done.exception, UserError)
    assert str(done.exception) == "the GPU fails: CUDA error: no kernel image is available"


def test_without_a_gpu_the_command_says_what_to_do():
    assert "add --tiny" in str(run().exception)
