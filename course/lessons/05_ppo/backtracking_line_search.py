"""A step that is shortened until it is safe."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from rlcourse.checks.asking.specs import Spec, build
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor

flatten = torch.nn.utils.parameters_to_vector


assign = torch.nn.utils.vector_to_parameters


def _case(label, tensors, states, rewards, step, once=False, **options) -> Case:
    arguments = {
        "parameters": Spec("softmax_parameters", tensors | ({"once": True} if once else {})),
        "objective_fn": Spec("mean_reward", {"states": states, "rewards": rewards}),
        "kl_fn": Spec("mean_kl", {"states": states}),
        "step": step,
    }
    return Case(label, {**arguments, **options})


def _at_the_bound(case: Case, length: float) -> Case:
    """The case with the KL of `length` times the step as its bound, to the last bit."""
    given: dict = {}
    for name in ("parameters", "kl_fn"):
        given[name] = build(case.arguments[name], given)
    with torch.no_grad():
        assign(flatten(given["parameters"]) + length * case.arguments["step"], given["parameters"])
        return replace(case, arguments=case.arguments | {"max_kl": given["kl_fn"]().item()})


def _uphill(weight, states, rewards, bias=None):
    """The gradient of E[R] for a linear softmax policy, laid end to end."""
    probs = (states @ weight + (0 if bias is None else bias)).softmax(-1)
    by_logits = probs * (rewards - (probs * rewards).sum(-1, keepdim=True)) / len(states)
    by_weight = (states.T @ by_logits).flatten()
    return by_weight if bias is None else torch.cat([by_weight, by_logits.sum(0)])


def cases(draw: CaseSampler) -> Iterator[Case]:
    one, flat_policy = torch.ones(1, 1).double(), torch.zeros(1, 3).double()
    worked = {"weight": flat_policy}, one, tensor([[1, 0, 0]])
    yield _case("worked: the first step is too long", *worked, tensor([4, -2, -2]), max_kl=0.02)
    yield _case("worked: the first step is safe", *worked, tensor([0.2, -0.1, -0.1]), max_kl=0.02)
    yield _case("worked: half of it is safe", *worked, tensor([1, -0.5, -0.5]), max_kl=0.1)
    for label, length in (("whole step", 1.0), ("half step", 0.5)):
        case = _case(f"a KL of just max_kl, {label}", *worked, tensor([1, -0.5, -0.5]), max_kl=0)
        yield replace(_at_the_bound(case, length), edge=True)
    nowhere = tensor([torch.inf, 0.0, 0.0])
    yield _case("a step that leads to NaN, whatever its length", *worked, nowhere, max_kl=0.02)
    yield _case(
        "worked: one attempt", *worked, tensor([1, -0.5, -0.5]), max_kl=0.1, max_backtracks=1
    )
    yield _case("worked: downhill", *worked, tensor([-1.0, 0.5, 0.5]), max_kl=5.0)

    def drawn(label, length, max_kl, with_bias=True, turned=1.0, paid=1.0, **options):
        states = draw.normal(draw.size(3, 4), 2)
        weight, bias = draw.normal(2, 3), draw.normal(3)
        rewards = draw.normal(len(states), 3) * paid
        tensors = {"weight": weight, "bias": bias} if with_bias else {"weight": weight}
        uphill = _uphill(weight, states, rewards, bias if with_bias else None)
        uphill = uphill if paid else draw.normal(len(uphill))
        step = turned * length * uphill / uphill.norm()
        return _case(label, tensors, states, rewards, step, max_kl=max_kl, **options)

    yield drawn("one parameter tensor", 8.0, 0.01, with_bias=False)
    yield drawn("two parameter tensors", 8.0, 0.01)
    once = drawn("parameters as `policy.parameters()` gives them, once", 8.0, 0.01, once=True)
    yield replace(once, edge=True)
    yield drawn("a large budget", 0.1, 10.0)
    yield drawn("shrunk by 0.8", 6.0, 0.01, shrink=0.8, max_backtracks=40)
    yield drawn("shrunk by 0.3", 6.0, 0.01, shrink=0.3)
    yield drawn("two attempts are too few", 20.0, 1e-4, max_backtracks=2)
    yield drawn("sixteen attempts", 50.0, 1e-7, max_backtracks=30)
    yield drawn("downhill, within the budget", 0.1, 10.0, turned=-1.0)
    yield drawn("nothing to gain", 0.1, 10.0, paid=0.0)
    # One state's gain soon reaches its limit while the other state's loss goes on growing.
    tensors, states = {"weight": torch.zeros(2, 2).double()}, torch.eye(2).double()
    step = tensor([[6.0, -6.0], [1.0, -1.0]]).flatten()
    gains, loses = tensor([[1.0, 0.0], [0.0, 0.3]]), tensor([[0.3, 0.0], [0.0, 1.0]])
    yield _case("a step of which half gains more", tensors, states, gains, step, max_kl=100.0)
    yield _case("a step of which a quarter gains", tensors, states, loses, step, max_kl=100.0)


def line_by_line(objective_fn, kl_fn, parameters, step, max_kl, shrink=0.5, max_backtracks=10):
    parameters = list(parameters)
    start = flatten(parameters).detach()
    before = objective_fn()
    for k in range(max_backtracks):
        fraction = shrink**k
        assign(start + fraction * step, parameters)
        now = objective_fn()
        if now > before and kl_fn() <= max_kl:
            return fraction
    assign(start, parameters)
    return 0.0


def _by_copies(objective_fn, kl_fn, parameters, step, max_kl, shrink=0.5, max_backtracks=10):
    """Tensor by tensor, with `data.copy_`."""
    parameters = list(parameters)
    with torch.no_grad():
        saved, before = [p.clone() for p in parameters], float(objective_fn())
        parts = step.split([p.numel() for p in parameters])
        fraction = 1.0
        for _ in range(max_backtracks):
            for p, start, part in zip(parameters, saved, parts, strict=True):
                p.copy_(start + fraction * part.view_as(p))
            if float(objective_fn()) > before and float(kl_fn()) <= max_kl:
                return fraction
            fraction *= shrink
        for p, start in zip(parameters, saved, strict=True):
            p.copy_(start)
    return 0.0


sketch = Sketch(line_by_line)
alternatives = (_by_copies,)
