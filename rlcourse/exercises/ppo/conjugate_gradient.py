"""Conjugate gradients on small systems."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.ppo import conjugate_gradient
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.checks.specs import Spec


def _case(label: str, matrix: Tensor, b: Tensor, **options) -> Case:
    return Case(label, {"matvec": Spec("matrix", {"entries": matrix}), "b": b, **options})


def _cases(draw: CaseSampler) -> Iterator[Case]:
    worked, b = tensor([[4.0, 1.0], [1.0, 3.0]]), tensor([1.0, 2.0])
    yield _case("worked: two unknowns, one iteration", worked, b, iterations=1)
    yield _case("worked: two unknowns, two iterations", worked, b, iterations=2)

    def drawn(label: str, size: int, dtype=torch.float64, **options) -> Case:
        root = draw.normal(size, size)
        matrix = root @ root.T / size + torch.eye(size).double()  # well conditioned
        b = draw.normal(size)
        b = b * (1 + 1 / b.norm())  # not so short that a tolerance would stop at once
        return _case(label, matrix.to(dtype), b.to(dtype), **options)

    yield drawn("all defaults", 4)
    yield drawn("one unknown", 1)
    yield drawn("two iterations for many unknowns", draw.size(6, 8), iterations=2)
    yield drawn("three iterations for many unknowns", draw.size(6, 8), iterations=3)
    yield drawn("more iterations than unknowns", 3, iterations=12)
    uneven = torch.diag(0.1 + torch.arange(14).double() / 2)
    yield _case("twelve iterations for 14 unknowns", uneven, draw.normal(14) + 2, iterations=12)
    for threshold in (1e-2, 1e-3):
        yield drawn(f"a tolerance of {threshold:g}", draw.size(7, 8), tolerance=threshold)
    long = tensor([4.0, 0.25])  # its square is above the tolerance, the sum of its roots is not
    yield _case("b is longer than the tolerance", tensor([[2.0, 0.0], [0, 1]]), long, tolerance=5.0)
    identity = torch.eye(5).double()
    yield _case("the identity matrix", identity, draw.normal(5) + 2, iterations=4)
    yield _case("b is 0", identity, torch.zeros(5).double())
    yield _case("b is solved well enough by 0", identity, draw.normal(5), tolerance=1e3)
    yield drawn("no iterations", 4, iterations=0)
    yield drawn("float32", 6, torch.float32, iterations=3, tolerance=1e-8)


def line_by_line(matvec, b, iterations=10, tolerance=1e-10):
    x = torch.zeros_like(b)
    residual, direction = b.clone(), b.clone()
    squared = residual @ residual
    for _ in range(iterations):
        if squared < tolerance:
            break
        image = matvec(direction)
        step = squared / (direction @ image)
        x = x + step * direction
        residual = residual - step * image
        previous, squared = squared, residual @ residual
        share = squared / previous
        direction = residual + share * direction
    return x


def matrix_of(matvec, b: Tensor) -> Tensor:
    unit = torch.eye(len(b), dtype=b.dtype)
    return torch.stack([matvec(unit[i]) for i in range(len(b))], dim=1)


_edit = Sketch(line_by_line, matrix_of).alone
_share = partial(_edit, "squared / previous")
_step = partial(_edit, "squared / (direction @ image)")
_direction = partial(_edit, "residual + share * direction")
_turns = partial(_edit, "range(iterations)")
_stop = partial(_edit, "squared < tolerance")
_returned = partial(_edit, "return x")


def _by_true_residual(matvec, b, iterations=10, tolerance=1e-10):
    """The residual computed anew, and β from conjugacy itself."""
    x = torch.zeros_like(b)
    residual = direction = b
    for _ in range(iterations):
        if (residual**2).sum() < tolerance:
            return x
        image = matvec(direction)
        x = x + (residual @ direction) / (direction @ image) * direction
        residual = b - matvec(x)
        direction = residual - (residual @ image) / (direction @ image) * direction
    return x


def _by_recursion(matvec, b, iterations=10, tolerance=1e-10):
    def go(x, r, d, left):
        rr = torch.dot(r, r)
        if left == 0 or float(rr) < tolerance:
            return x
        image = matvec(d)
        a = rr / torch.dot(r, image)  # equal to d·A d, as directions are conjugate
        r_next = r - a * image
        return go(x + a * d, r_next, r_next + torch.dot(r_next, r_next) / rr * d, left - 1)

    return go(torch.zeros_like(b), b, b, iterations)


def _by_krylov_space(matvec, b, iterations=10, tolerance=1e-10):
    """The point of each Krylov space that lies nearest to the solution in A's own norm."""
    x, basis = torch.zeros_like(b), []
    for _ in range(iterations):
        residual = b - matvec(x)
        if residual.square().sum() < tolerance:
            break
        basis.append(residual / residual.norm())
        Q = torch.stack(basis, 1)
        small = Q.T @ torch.stack([matvec(q) for q in basis], 1)
        x = Q @ torch.linalg.solve(small, Q.T @ b)
    return x


EXERCISE = Exercise(
    reference=conjugate_gradient,
    lesson="05_ppo",
    section="Conjugate gradients",
    points=3,
    difficulty=3,
    minutes=10,
    cases=_cases,
    mistakes=(
        Mistake(
            "steepest descent: every direction is the residual",
            _share("0.0"),
            "Without the share of the old direction each step undoes part of the last one; "
            "conjugate directions are never needed twice.",
        ),
        Mistake(
            "directions whose share of the old one is upside down",
            _share("previous / squared"),
            "The share is the *new* squared residual over the old one, which is below 1 when the "
            "solution comes nearer.",
        ),
        Mistake(
            "directions that keep the whole old one",
            _share("squared / squared"),
            "Remember the squared residual from before the update: the new one over itself is 1.",
        ),
        Mistake(
            "a share of the lengths, not of their squares",
            _share("(squared / previous).sqrt()"),
            "β is the ratio of *squared* residuals.",
        ),
        Mistake(
            "directions that subtract the old one",
            _direction("residual - share * direction"),
            "The new direction is the residual *plus* β times the old direction.",
        ),
        Mistake(
            "a direction that is never renewed",
            _direction("direction"),
            "One direction is exhausted after one step: each iteration needs a new one, built "
            "from the new residual.",
        ),
        Mistake(
            "steps that do not look at the curvature",
            _step("squared / (direction @ direction)"),
            "How far to go depends on how steeply A rises along the direction: divide by d · A d.",
        ),
        Mistake(
            "steps divided by the length of A d",
            _step("squared / (image @ image)"),
            "The lowest point along d is at r·r / (d · A d).",
        ),
        Mistake(
            "a residual that grows: its update has the wrong sign",
            _edit("residual - step", "residual + step"),
            "The residual is b − A x: as x grows by step · d, it *loses* step · A d.",
        ),
        Mistake(
            "a start at b in place of 0",
            _edit("torch.zeros_like(b)", "b.clone()\n    b = b - matvec(x)"),
            "Stopped early, the answer depends on the start: x begins at 0, so the first residual "
            "is b itself.",
        ),
        Mistake(
            "as many iterations as there are unknowns",
            _turns("range(len(b))"),
            "`iterations` is the budget: a network has millions of unknowns; ten steps must do.",
        ),
        Mistake(
            "ten iterations whatever the argument says",
            _turns("range(10)"),
            "Use the argument `iterations`, not its default.",
        ),
        Mistake(
            "one iteration too many",
            _turns("range(iterations + 1)"),
            "`range(iterations)` already has `iterations` turns.",
        ),
        Mistake(
            "one iteration too few",
            _turns("range(1, iterations)"),
            "`range(1, iterations)` has one turn less than `iterations`.",
        ),
        Mistake(
            "iterations that no tolerance stops",
            _stop("False"),
            "Once the residual is 0 the step is 0/0: stop when its square falls below `tolerance`.",
        ),
        Mistake(
            "a tolerance that is compared with the length of the residual, not its square",
            _stop("residual.norm() < tolerance"),
            "It is the *squared* residual that is compared with `tolerance`.",
            telling=2,
        ),
        Mistake(
            "a tolerance of 1e−10 whatever the argument says",
            _stop("squared < 1e-10"),
            "Use the argument `tolerance`, not its default.",
        ),
        Mistake(
            "a first step taken before anyone looks at the residual",
            _edit("for _ in", "for i in", "squared < tolerance", "i and squared < tolerance"),
            "Look before the step: b may be 0, and then the step is 0/0.",
            telling=2,
        ),
        Mistake(
            "the residual, not the solution",
            _returned("return residual"),
            "What is asked for is x; the residual says how far A x still is from b.",
        ),
        Mistake(
            "the last direction, not the solution",
            _returned("return direction"),
            "The solution is the sum of all the steps, x.",
        ),
        Mistake(
            "the exact solution, whatever the budget",
            _returned("return torch.linalg.solve(matrix_of(matvec, b), b)"),
            "To solve exactly you had to build the matrix, D products of D numbers; the point of "
            "this method is to stop after a few.",
        ),
        Mistake(
            "b divided by the diagonal of A",
            _returned("return b / matrix_of(matvec, b).diagonal()"),
            "That solves the system only if A has nothing beside its diagonal.",
        ),
        Mistake(
            "A b in place of the solution of A x = b",
            _returned("return matvec(b)"),
            "The matrix is to be undone, not applied.",
        ),
        Mistake(
            "a solution that writes over b",
            _edit(
                "residual, direction = b.clone()",
                "residual, direction = b",
                "residual = residual - step",
                "residual -= step",
            ),
            "`b -= …` changes the caller's vector, also where `residual = b` is but another name "
            "for it: start from `b.clone()`, or make new tensors.",
        ),
        Mistake(
            "a solution in which residual, direction and b are one tensor",
            _edit("b.clone(), b.clone()", "b, b", "residual = residual - step", "residual -= step"),
            "`residual = b` makes a second name, not a copy, and `-=` then changes all of them: "
            "start from `b.clone()`.",
        ),
        Mistake(
            "steps that use the first squared residual all along",
            _edit(
                "previous, squared = squared, residual @ residual\n        ",
                "",
                "squared / previous",
                "residual @ residual / squared",
            ),
            "The squared residual of this turn is the old one of the next: renew it at the end of "
            "each turn.",
        ),
        Mistake(
            "iterations without a tolerance, and 1e−8 in the divisor of the step",
            _edit("direction @ image", "direction @ image + 1e-8", "squared < tolerance", "False"),
            "The small number saves the step but not the share of the old direction, which is 0/0 "
            "as well: stop when the squared residual falls below `tolerance`.",
        ),
    ),
    alternatives=(_by_true_residual, _by_recursion, _by_krylov_space, line_by_line),
    hints=(
        "Keep three vectors, x, residual and direction, and one number, the squared residual. "
        "Call `matvec` once per turn.",
        "Each turn: step = r·r / (d·A d); x gains step · d; r loses step · A d; then the new "
        "direction is r + (new r·r / old r·r) · d. Look at the tolerance before the step.",
        "Start from x = 0, so that the residual is b:\n\n"
        "    x = torch.zeros_like(b)\n"
        "    residual, direction = b.clone(), b.clone()\n"
        "    squared = residual @ residual\n"
        "    for _ in range(iterations):\n"
        "        if squared < tolerance:\n"
        "            break\n"
        "        image = matvec(direction)\n"
        "        step = ...\n"
        "        x, residual = x + ..., residual - ...\n"
        "        previous, squared = squared, residual @ residual\n"
        "        direction = ...\n"
        "    return x",
    ),
)
