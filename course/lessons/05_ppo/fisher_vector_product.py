"""The Fisher matrix times a vector, on softmax policies whose matrix could be written down."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, Spec, tensor


def _case(label, weight, states, vector, damping=None, bias=None, away=None, once=False) -> Case:
    tensors = {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
    tensors |= {"once": True} if once else {}
    kl = {"states": states} if away is None else {"states": states, "away": away}
    arguments = {
        "parameters": Spec("softmax_parameters", tensors),
        "kl_fn": Spec("mean_kl", kl),
        "vector": vector,
    }
    return Case(label, arguments if damping is None else {**arguments, "damping": damping})


def cases(draw: CaseSampler) -> Iterator[Case]:
    one = torch.ones(1, 1).double()
    worked = tensor([[0.5, 0.3, 0.2]]).log()
    yield _case(
        "worked: π = (0.5, 0.3, 0.2), along the first logit", worked, one, tensor([1, 0, 0])
    )
    yield _case("worked: damped by 0.1", worked, one, tensor([1, 0, 0]), damping=0.1)

    def drawn(label: str, damping=None, with_bias=True, away=0.0, dtype=None, once=False):
        inputs, actions = draw.integer(2, 3), draw.size(3, 4)
        states = draw.normal(draw.size(4, 5), inputs)
        tensors = [draw.normal(inputs, actions), states]
        tensors.append(draw.normal((inputs + with_bias) * actions))
        bias = draw.normal(actions) if with_bias else None
        old = away * draw.normal(len(states), actions) if away else None
        if dtype:
            tensors, bias = [t.to(dtype) for t in tensors], bias.to(dtype)
        return _case(label, *tensors, damping=damping, bias=bias, away=old, once=once)

    yield drawn("one parameter tensor", with_bias=False)
    yield drawn("two parameter tensors")
    yield drawn("two parameter tensors, damped", damping=0.3)
    yield drawn("a strong damping", damping=5.0)
    yield drawn("a KL that is not at its lowest point", away=0.8)
    yield drawn("away from the lowest point, damped", damping=0.3, away=0.8)
    yield drawn("parameters as `policy.parameters()` gives them, once", once=True)
    yield drawn("float32", damping=0.3, dtype=torch.float32)


def flat(tensors) -> Tensor:
    return torch.cat([t.flatten() for t in tensors])


def matrix(gradient, parameters) -> Tensor:
    """The derivatives of all entries of a gradient, a row for each."""
    return torch.stack(
        [flat(torch.autograd.grad(entry, parameters, retain_graph=True)) for entry in gradient]
    )


def in_blocks(gradients, parameters, vector) -> list[Tensor]:
    parts = vector.split([p.numel() for p in parameters])
    return [
        matrix(gradient.flatten(), parameter) @ part
        for gradient, parameter, part in zip(gradients, parameters, parts, strict=True)
    ]


def columns_first(tensors) -> Tensor:
    return flat([t.T if t.dim() == 2 else t for t in tensors])


def line_by_line(kl_fn, parameters, vector, damping=0.0):
    parameters = list(parameters)
    gradients = torch.autograd.grad(kl_fn(), parameters, create_graph=True)
    gradient = flat(gradients)
    products = torch.autograd.grad(gradient @ vector, parameters)
    product = flat(products)
    return product + damping * vector


def _by_explicit_matrix(kl_fn, parameters, vector, damping=0.0):
    parameters = list(parameters)
    gradient = flat(torch.autograd.grad(kl_fn(), parameters, create_graph=True))
    identity = torch.eye(len(vector), dtype=vector.dtype)
    return (matrix(gradient, parameters) + damping * identity) @ vector


def _by_grad_outputs(kl_fn, parameters, vector, damping=0.0):
    parameters = list(parameters)
    gradients = torch.autograd.grad(kl_fn(), parameters, create_graph=True)
    parts = [
        part.view_as(p)
        for part, p in zip(vector.split([p.numel() for p in parameters]), parameters, strict=True)
    ]
    products = torch.autograd.grad(gradients, parameters, grad_outputs=parts)
    return torch.cat([(f + damping * v).reshape(-1) for f, v in zip(products, parts, strict=True)])


sketch = Sketch(line_by_line, matrix, in_blocks, columns_first)
alternatives = (_by_explicit_matrix, _by_grad_outputs)
oracle = _by_explicit_matrix
