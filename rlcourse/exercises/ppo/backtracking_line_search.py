"""A step that is shortened until it is safe."""

from collections.abc import Iterator
from functools import partial

import torch

from rlcourse.algorithms.ppo import backtracking_line_search
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.checks.specs import Spec

flatten = torch.nn.utils.parameters_to_vector
assign = torch.nn.utils.vector_to_parameters


def _case(label, tensors, states, rewards, step, **options) -> Case:
    arguments = {
        "parameters": Spec("softmax_parameters", tensors),
        "objective_fn": Spec("mean_reward", {"states": states, "rewards": rewards}),
        "kl_fn": Spec("mean_kl", {"states": states}),
        "step": step,
    }
    return Case(label, {**arguments, **options})


def _uphill(weight, states, rewards, bias=None):
    """The gradient of E[R] for a linear softmax policy, laid end to end."""
    probs = (states @ weight + (0 if bias is None else bias)).softmax(-1)
    by_logits = probs * (rewards - (probs * rewards).sum(-1, keepdim=True)) / len(states)
    by_weight = (states.T @ by_logits).flatten()
    return by_weight if bias is None else torch.cat([by_weight, by_logits.sum(0)])


def _cases(draw: CaseSampler) -> Iterator[Case]:
    one, flat_policy = torch.ones(1, 1).double(), torch.zeros(1, 3).double()
    worked = {"weight": flat_policy}, one, tensor([[1, 0, 0]])
    yield _case("worked: the first step is too long", *worked, tensor([4, -2, -2]), max_kl=0.02)
    yield _case("worked: the first step is safe", *worked, tensor([0.2, -0.1, -0.1]), max_kl=0.02)
    yield _case("worked: half of it is safe", *worked, tensor([1, -0.5, -0.5]), max_kl=0.1)
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


_edit = Sketch(line_by_line).alone
_safe = partial(_edit, "now > before and kl_fn() <= max_kl")
_fraction = partial(_edit, "shrink**k")
_moving_along = partial(_edit, "assign(start +", "assign(flatten(parameters) +")
_found = partial(_edit, "return fraction")
_nothing_found = partial(_edit, "assign(start, parameters)")


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


@torch.no_grad()
def _by_stepping_back(objective_fn, kl_fn, parameters, step, max_kl, shrink=0.5, max_backtracks=10):
    """Leaves the parameters where they are and takes back the difference to the next attempt."""
    start, before, k = flatten(parameters).clone(), objective_fn(), 0
    while k < max_backtracks:
        assign(start + shrink**k * step, parameters)
        if objective_fn() - before > 0 and not max_kl - kl_fn() < 0:
            break
        k += 1
    taken = shrink**k if k < max_backtracks else 0.0
    assign(start + taken * step if taken else start, parameters)
    return taken


EXERCISE = Exercise(
    reference=backtracking_line_search,
    lesson="05_ppo",
    section="The line search",
    points=3,
    difficulty=3,
    minutes=10,
    cases=_cases,
    mistakes=(
        Mistake(
            "a search that never looks at the KL",
            _safe("now > before"),
            "The budget is the point of it: a step is safe only while `kl_fn()` stays within "
            "`max_kl`.",
        ),
        Mistake(
            "a search that never looks at the objective",
            _safe("kl_fn() <= max_kl"),
            "The step came from a linear model of the objective, which may be wrong: accept it "
            "only if the objective really rises.",
        ),
        Mistake(
            "a search that is content with either condition",
            _safe("now > before or kl_fn() <= max_kl"),
            "Both must hold: the objective rises *and* the KL stays within the budget.",
        ),
        Mistake(
            "a search that accepts an objective that does not move",
            _safe("now >= before and kl_fn() <= max_kl"),
            "No gain is no reason to move: the objective has to rise.",
            telling=1,
        ),
        Mistake(
            "a search that wants the objective to fall",
            _safe("now < before and kl_fn() <= max_kl"),
            "`objective_fn` is to be maximized; it is not a loss.",
        ),
        Mistake(
            "a search that compares the objective with 0, not with where it started",
            _safe("now > 0 and kl_fn() <= max_kl"),
            "An objective may be positive and have fallen: remember it before you move.",
        ),
        Mistake(
            "a search that refuses what is worse, and so lets NaN pass",
            _safe("not (now <= before or kl_fn() > max_kl)"),
            "Every comparison with NaN is false: ask for what is safe, not for what is unsafe.",
            telling=1,
        ),
        Mistake(
            "a refused step that is taken back by subtracting it",
            _moving_along(
                "return fraction",
                "return fraction\n"
                "        assign(flatten(parameters) - fraction * step, parameters)",
                "assign(start, parameters)",
                "pass",
            ),
            "What was added does not come off without rounding, and infinity not at all: keep a "
            "copy of the start, and put it back.",
            telling=1,
        ),
        Mistake(
            "a search that leaves the last attempt in place when nothing was safe",
            _nothing_found("pass"),
            "A refused step must be undone: put the parameters back where they were.",
        ),
        Mistake(
            "attempts that start where the last one ended",
            _moving_along(),
            "Each attempt replaces the last: always start from the parameters at the beginning.",
        ),
        Mistake(
            "starting parameters that were not copied, so that they move along",
            _moving_along("assign(start, parameters)", "pass"),
            "`p.data` is the parameter's own memory, not a copy: take `p.detach().clone()`.",
        ),
        Mistake(
            "a first attempt that is shrunk already",
            _fraction("shrink ** (k + 1)"),
            "The whole step comes first: shrink⁰ = 1.",
        ),
        Mistake(
            "steps in the opposite direction",
            _edit("assign(start +", "assign(start -"),
            "`step` points uphill: add it.",
        ),
        Mistake(
            "a shrinkage of one half whatever the argument says",
            _fraction("0.5**k"),
            "Use the argument `shrink`, not its default.",
            telling=2,
        ),
        Mistake(
            "fractions that shrink once and for all",
            _fraction("1.0 if k == 0 else shrink"),
            "Each attempt shrinks the last one: step, shrink · step, shrink² · step, …",
        ),
        Mistake(
            "fractions 1, 1/2, 1/3, …",
            _fraction("1 / (k + 1)"),
            "The fractions are powers of `shrink`, so that a step that is far too long becomes "
            "short in a few attempts.",
        ),
        Mistake(
            "ten attempts whatever the argument says",
            _edit("range(max_backtracks)", "range(10)"),
            "Use the argument `max_backtracks`, not its default.",
        ),
        Mistake(
            "one attempt too many",
            _edit("range(max_backtracks)", "range(max_backtracks + 1)"),
            "`max_backtracks` counts the attempts, the whole step included.",
            telling=1,
        ),
        Mistake(
            "a search in which each attempt has to beat the one before",
            _found("return fraction\n        before = now"),
            "What must be beaten is the objective at the start: remember it before you move.",
        ),
        Mistake(
            "the safe step with the highest objective, not the largest",
            _found(
                "best, before = fraction, now",
                "for k in",
                "best = 0.0\n    for k in",
                "assign(start, parameters)",
                "assign(start + best * step, parameters)",
                "return 0.0",
                "return best",
            ),
            "Each attempt costs a pass over the batch: the first safe one is taken.",
        ),
        Mistake(
            "a longest step taken from a formula, untried",
            _edit(
                "before = objective_fn()",
                "assign(start + step, parameters)\n"
                "    fraction = min(1.0, (max_kl / max(kl_fn().item(), 1e-30)) ** 0.5)\n"
                "    assign(start + fraction * step, parameters)\n"
                "    return fraction",
            ),
            "The KL grows with the square of a step only nearby, and this is the test of whether "
            "nearby is near enough: try, look, shrink.",
        ),
        Mistake(
            "the number of the attempt, not the fraction of the step",
            _found("return float(k)"),
            "Return which fraction of the step was taken: shrink to the power of the attempt.",
        ),
        Mistake(
            "a fraction that was found but not taken",
            _found("assign(start, parameters)\n            return fraction"),
            "The accepted step has to remain in the parameters.",
        ),
        Mistake(
            "a search that shrinks the caller's step in place",
            _edit(
                "start + fraction * step",
                "start + step",
                "return fraction",
                "return fraction\n        step *= shrink",
            ),
            "`step *= shrink` changes the argument: multiply by a fraction instead.",
        ),
        Mistake(
            "None when nothing was safe",
            _edit("return 0.0", "return None"),
            "No part of the step was taken, and the fraction of that is 0.0.",
        ),
        Mistake(
            "a parameter changed in place while autograd records",
            _edit(
                "assign(start + fraction * step, parameters)",
                "for p in parameters:\n            p += step[: p.numel()].view_as(p)",
            ),
            "Outside `torch.no_grad()` a leaf must not be changed: assign with "
            "`vector_to_parameters`, or work on `p.data`.",
        ),
    ),
    alternatives=(_by_copies, _by_stepping_back, line_by_line),
    hints=(
        "Remember two things before you move: the parameters, as one vector, and the objective.",
        "For attempt 0, 1, 2, …: set the parameters to start + shrink^attempt · step, look at both "
        "conditions, return the fraction if they hold. After the loop put the start back and "
        "return 0.0.",
        "Two helpers lay parameters end to end and back:\n\n"
        "    parameters = list(parameters)\n"
        "    start = torch.nn.utils.parameters_to_vector(parameters)\n"
        "    objective_before = objective_fn()\n"
        "    for attempt in range(max_backtracks):\n"
        "        fraction = ...\n"
        "        torch.nn.utils.vector_to_parameters(..., parameters)\n"
        "        if ... and ...:\n"
        "            return fraction\n"
        "    ...\n"
        "    return 0.0",
    ),
)
