"""Functions of the lessons with tensors on the device."""

import dataclasses

import pretended_gpu
import pytest
import torch
from echo import echo_policy, echo_recipe, echo_task

from rlcourse import exercises
from rlcourse.checks.asking import calling, specs
from rlcourse.checks.asking.specs import Spec
from rlcourse.checks.judging.exam import Exam
from rlcourse.errors import UserError
from rlcourse.training import train

# Tests that students write see implementations and no tensors.
EXERCISES = {exercise.name: exercise for exercise in exercises.all() if not exercise.suspects}


@pytest.fixture(autouse=True)
def policies_on_the_device(monkeypatch):
    kind = specs.KINDS["toy_policy"]

    def build(built, **options):
        policy = kind.build(built, **options).cuda()
        for parameter in policy.parameters():
            if parameter.grad is not None:
                parameter.grad = parameter.grad.cuda()
        return policy

    monkeypatch.setitem(specs.KINDS, "toy_policy", dataclasses.replace(kind, build=build))


def moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, Spec):
        return Spec(value.kind, {k: moved(option, device) for k, option in value.options.items()})
    if isinstance(value, list | tuple):
        return type(value)(moved(item, device) for item in value)
    return {k: moved(v, device) for k, v in value.items()} if isinstance(value, dict) else value


def cases_of(exercise):
    """Its cases that return something; torch's own generator of the CPU is no matter here."""
    exam = Exam(exercise, seed=0)
    for case, expected in zip(exam.cases, exam.expected, strict=True):
        given = case.arguments.values()
        from_torch = any(isinstance(x, Spec) and x.kind == "no_generator" for x in given)
        if expected.error is None and not from_torch:
            yield case, expected


def built(case):
    """Its arguments as a check makes them."""
    return calling._build(case, calling._floats(case) if case.tracked else ())[1]


def arguments_on_the_device(case):
    arguments = {name: moved(given, "cuda") for name, given in case.arguments.items()}
    return built(dataclasses.replace(case, arguments=arguments))


def assert_same(found, expected):
    found = calling.as_data(moved(found, "cpu"))
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, torch.Tensor):
        torch.testing.assert_close(
            found, expected, rtol=1e-5, atol=pretended_gpu.ROUNDING, equal_nan=True
        )
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=pretended_gpu.ROUNDING, nan_ok=True)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            assert_same(found[name], expected[name])
    else:
        assert found == expected


@pytest.mark.parametrize("name", EXERCISES)
def test_the_reference_computes_where_its_arguments_are(name):
    exercise = EXERCISES[name]
    for case, expected in cases_of(exercise):
        arguments = arguments_on_the_device(case)
        given = next((x.device for x in arguments.values() if isinstance(x, torch.Tensor)), None)
        value = exercise.reference(**arguments)
        drawn = any(isinstance(given, torch.Generator) for given in arguments.values())
        if pretended_gpu.SAME_DRAWS or not drawn:
            assert_same(value, expected.value)
        for part in value if isinstance(value, tuple | list) else [value]:
            if isinstance(part, torch.Tensor):
                assert given is None or part.device == given


def test_a_function_that_forgets_its_device_ends_with_a_sentence():
    def group_mean_advantages(rewards, group_size):
        return rewards - torch.zeros(len(rewards))  # on the CPU

    recipe = echo_recipe("dr_grpo", steps=2, eval_problems=0)
    options = {"task": echo_task(), "progress": False, "advantages": group_mean_advantages}
    with pytest.raises(UserError, match="group_mean_advantages makes a tensor on the CPU"):
        train(recipe, policy=echo_policy().cuda(), **options)


def test_a_sampling_function_that_mixes_devices_ends_with_a_sentence():
    def sample_tokens(logits, **unused):
        return (logits + torch.zeros(logits.shape[-1])).argmax(-1)

    policy = echo_policy().cuda()
    with pytest.raises(UserError, match=r"make it there, with device=logits.device"):
        policy.sample(["1?"], max_tokens=4, sample_tokens=sample_tokens)


def test_a_step_that_mixes_devices_ends_with_a_sentence():
    def reinforce_step(policy, optimizer, batch):
        return (policy.logprobs(batch) * torch.ones(batch.mask.shape)).sum().item()

    recipe = echo_recipe("reinforce", steps=1, eval_problems=0)
    options = {"task": echo_task(), "progress": False, "step": reinforce_step}
    with pytest.raises(UserError, match="the step reinforce_step makes a tensor on the CPU"):
        train(recipe, policy=echo_policy().cuda(), **options)
