"""Conjugate gradients on small systems."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, Spec, tensor


def _case(label: str, matrix: Tensor, b: Tensor, **options) -> Case:
    return Case(label, {"matvec": Spec("matrix", {"entries": matrix}), "b": b, **options})


def cases(draw: CaseSampler) -> Iterator[Case]:
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
    just = _case("b is just as long as the tolerance", worked, tensor([0.5, 0.0]), tolerance=0.25)
    yield replace(just, edge=True)
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


sketch = Sketch(line_by_line, matrix_of)
alternatives = (_by_krylov_space,)
