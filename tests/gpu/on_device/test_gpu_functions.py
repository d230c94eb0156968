"""Functions of the lessons with tensors on the device: references, and what a check accepts."""

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
from rlcourse.training.functions import devices
from rlcourse.training.recipes.methods import METHODS, name_of

# Tests that students write see implementations and no tensors.
EXERCISES = {exercise.name: exercise for exercise in exercises.all() if not exercise.suspects}
CALLED_BY_THE_TRAINER = sorted(
    {
        name_of(function)
        for method in METHODS.values()
        for function in (method.loss, method.advantages, *method.functions)
        if function is not None
    }
    & EXERCISES.keys()
)


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
    monkeypatch.setattr(devices, "told", set())


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
        given = devices.device_of(arguments)
        value = exercise.reference(**arguments)
        drawn = any(isinstance(given, torch.Generator) for given in arguments.values())
        if pretended_gpu.SAME_DRAWS or not drawn:
            assert_same(value, expected.value)
        for tensor in devices._tensors(value):
            assert given is None or tensor.device == given


@pytest.mark.parametrize("name", CALLED_BY_THE_TRAINER)
def test_whatever_a_check_accepts_computes_the_same_on_a_gpu(name, capsys):
    exercise = EXERCISES[name]
    for alternative in exercise.alternatives:
        function = getattr(alternative, "implementation", alternative)
        for case, _ in cases_of(exercise):
            here = function(**built(case))
            arguments = arguments_on_the_device(case)
            there = devices.call_on_its_device(function, name, arguments)
            assert_same(there, calling.as_data(here))
            for tensor in devices._tensors(there):
                assert tensor.is_cuda
    assert capsys.readouterr().err.count("device=x.device") <= 1  # once a function


def test_a_function_that_forgets_its_device_is_named_and_trains(capsys):
    def group_mean_advantages(rewards, group_size):
        means = torch.zeros(len(rewards))  # on the CPU
        for start in range(0, len(rewards), group_size):
            means[start : start + group_size] = rewards[start : start + group_size].mean()
        return rewards - means

    def short_ones(completions):
        return torch.tensor([float(len(text) <= 6) for text in completions])

    recipe = echo_recipe("dr_grpo", steps=2, eval_problems=0)
    options = {"task": echo_task(), "reward": short_ones, "progress": False}
    start = echo_policy().cuda()
    run = train(recipe, policy=start, advantages=group_mean_advantages, **options)
    said = capsys.readouterr().err
    assert said.count("group_mean_advantages makes a tensor on the CPU") == 1
    right = train(recipe, policy=start, **options)
    assert run.metrics[-1]["grad_norm"] == pytest.approx(right.metrics[-1]["grad_norm"], rel=1e-4)


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
