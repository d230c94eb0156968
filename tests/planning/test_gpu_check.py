"""``rlcourse gpu-check`` in its small form, on the CPU."""

from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

from rlcourse import cli
from rlcourse.errors import UserError
from rlcourse.planning import gpu_check
from rlcourse.planning.gpu_check import Check
from rlcourse.planning.plan import plan
from rlcourse.planning.timing import GPUS, gpu_named
from rlcourse.planning.work import work_of
from rlcourse.signals import Interrupted
from rlcourse.training import load_recipe

PARTS = {"sampling", "forward", "backward", "optimizer"}  # of a step, in which `plan` counts


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
    planned = found["all rows at once: memory by the plan"]
    assert 1 < 1e9 * planned / least < 10
    assert found["optimizer=adamw_8bit: memory by the plan"] < planned


def planned(name, total_memory, monkeypatch):
    """What is said of a step's seconds on a GPU of that name and memory."""
    gpu = SimpleNamespace(name=name, total_memory=total_memory)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    said = []
    check = Check(torch.device("cpu"), say=said.append)
    recipe = load_recipe("grpo", warm_start=None, dtype="bfloat16")
    gpu_check.note_planned_seconds(check, "a step", work_of(recipe))
    return check.facts, said


@pytest.mark.parametrize(
    "name, size, sheet",
    [
        ("NVIDIA H100 80GB HBM3", 85e9, "H100"),
        ("NVIDIA A100-SXM4-40GB", 42.3e9, "A100-40GB"),
        ("NVIDIA A100 80GB PCIe", 84.9e9, "A100-80GB"),
        ("Tesla T4", 15.6e9, "T4"),
        ("NVIDIA GeForce RTX 4090", 25.3e9, "RTX-4090"),
    ],
)
def test_a_step_takes_what_the_plan_says_of_this_gpu(name, size, sheet, monkeypatch):
    assert gpu_named(name, size) is GPUS[sheet]
    if sheet == "T4":
        return  # which has no bfloat16
    facts, _ = planned(name, size, monkeypatch)
    whole = facts.pop("a step: seconds a step by the plan")
    assert set(facts) == {f"a step: {part} by the plan" for part in PARTS}
    assert sum(facts.values()) == pytest.approx(whole)
    step = plan("grpo", gpu=sheet).fits[0].duration.step
    assert whole > 0 and {line.name for line in step} == PARTS


@pytest.mark.parametrize("has_bfloat16, timed", [(True, "bfloat16"), (False, "float16")])
def test_a_gpu_is_timed_in_16_bits_that_it_has(has_bfloat16, timed, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **how: has_bfloat16)
    check, tried = Check(torch.device("cuda"), tiny=True, say=lambda line: None), []
    monkeypatch.setattr(gpu_check, "_some_steps", lambda check, label, how: tried.append(how))
    gpu_check.steps(check)
    assert check.precision == timed
    assert ("bfloat16" in check.precisions) == has_bfloat16
    assert {how["dtype"] for how in tried} == {timed, "float16"}


@pytest.mark.parametrize(
    "name, size",
    [("NVIDIA GeForce RTX 4090 Laptop GPU", 17.2e9), ("NVIDIA H100 NVL", 100e9), ("L40S", 48e9)],
)
def test_another_card_of_the_name_has_no_plan(name, size, monkeypatch):
    facts, said = planned(name, size, monkeypatch)
    assert not facts and name in said[0]


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


def test_who_stops_it_is_obeyed(monkeypatch):
    def parity(check):
        """Stopped while something trains"""
        raise Interrupted("grpo stopped after step 1 of 2")

    monkeypatch.setattr(gpu_check, "parity", parity)
    check = Check(torch.device("cpu"), tiny=True, say=lambda line: None)
    with pytest.raises(Interrupted):
        check.run(minutes=20)
    assert not check.failed and not check.facts


def test_no_part_begins_after_its_time():
    check = Check(torch.device("cpu"), tiny=True, say=lambda line: None)
    assert check.run(minutes=0) and not check.facts


def test_without_a_gpu_the_command_says_what_to_do():
    done = CliRunner().invoke(cli.app, ["gpu-check", "--device", "cpu"])
    assert isinstance(done.exception, UserError) and "add --tiny" in str(done.exception)
