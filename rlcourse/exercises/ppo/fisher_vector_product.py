"""The Fisher matrix times a vector, on softmax policies whose matrix could be written down."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.ppo import fisher_vector_product
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.checks.specs import Spec


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


def _cases(draw: CaseSampler) -> Iterator[Case]:
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


_edit = Sketch(line_by_line, matrix, in_blocks, columns_first).alone
_list = partial(_edit, "list(parameters)")
_again = partial(_edit, "torch.autograd.grad(gradient @ vector, parameters)")
_product = partial(_edit, "flat(products)")
_returned = partial(_edit, "product + damping * vector")


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


def _by_damped_objective(kl_fn, parameters, vector, damping=0.0):
    """The damping as a term of what is differentiated: ½ damping ‖θ − θold‖²."""
    parameters = list(parameters)
    start = flat(parameters).detach()
    damped = kl_fn() + damping / 2 * (flat(parameters) - start).square().sum()
    along = flat(torch.autograd.grad(damped, parameters, create_graph=True)).dot(vector)
    return flat(torch.autograd.grad(along, parameters))


EXERCISE = Exercise(
    reference=fisher_vector_product,
    lesson="05_ppo",
    section="A matrix that is never written down",
    points=4,
    difficulty=4,
    minutes=12,
    cases=_cases,
    oracle=_by_explicit_matrix,
    mistakes=(
        Mistake(
            "the gradient of the KL, differentiated once only",
            _product("gradient.detach()"),
            "At θold the KL is at its lowest point and its gradient is 0: what tells directions "
            "apart is its *second* derivative.",
        ),
        Mistake(
            "the outer product of the KL's gradient with itself",
            _product("gradient.detach() * (gradient.detach() @ vector)"),
            "The Fisher matrix is the mean outer product of the *scores*, not of the gradient of "
            "the KL, which is 0 at θold: differentiate ∇KL · v instead.",
        ),
        Mistake(
            "a second derivative of a gradient that has no graph",
            _edit(", create_graph=True", ""),
            "By default autograd forgets how it computed a gradient: ask for it with "
            "`create_graph=True`, and the gradient can be differentiated again.",
        ),
        Mistake(
            "parameters that are gone through twice, where once is all they give",
            _list("parameters"),
            "`policy.parameters()` is a generator, empty after the first pass: begin with "
            "`parameters = list(parameters)`.",
            telling=1,
        ),
        Mistake(
            "F times a vector of ones",
            _edit("gradient @ vector", "gradient.sum()"),
            "The sum of ∇KL is ∇KL · 1: take its dot product with `vector` before you "
            "differentiate again.",
        ),
        Mistake(
            "the diagonal of F times v",
            _again("[matrix(gradient, parameters).diagonal() * vector]"),
            "Parameters act together: what one logit does depends on the others, and that is in "
            "the entries off the diagonal.",
        ),
        Mistake(
            "a product in which each parameter tensor knows only itself",
            _again("in_blocks(gradients, parameters, vector)"),
            "F couples the tensors: lay all gradients end to end, one dot product with the whole "
            "vector, then differentiate by all of them.",
        ),
        Mistake(
            "the product for the first parameter tensor only",
            _list("list(parameters)[:1]\n    vector = vector[: parameters[0].numel()]"),
            "D counts the elements of *all* parameters: lay the products end to end.",
        ),
        Mistake(
            "entries in column order",
            _edit(
                "flat(gradients)",
                "columns_first(gradients)",
                "flat(products)",
                "columns_first(products)",
            ),
            "The vector's layout is that of `flatten`, rows first, as in "
            "`torch.nn.utils.parameters_to_vector`.",
        ),
        Mistake(
            "parameter tensors in reversed order",
            _edit(
                "flat(gradients)", "flat(gradients[::-1])", "flat(products)", "flat(products[::-1])"
            ),
            "The first elements of the vector belong to the first tensor of `parameters`.",
        ),
        Mistake(
            "F v without damping",
            _returned("product"),
            "F + damping · I: add `damping * vector`, so that directions in which the policy does "
            "not change at all cannot get an infinite step.",
        ),
        Mistake(
            "F v + damping, a number added to every entry",
            _returned("product + damping"),
            "The damping is a multiple of the *identity matrix*, which gives damping · v.",
        ),
        Mistake(
            "F v scaled by 1 + damping",
            _returned("(1 + damping) * product"),
            "The identity matrix times v is v, not F v.",
        ),
        Mistake(
            "F v with the damping subtracted",
            _returned("product - damping * vector"),
            "Subtracted, it would make flat directions look like hills: F + damping · I.",
        ),
        Mistake(
            "the product with its sign turned",
            _returned("damping * vector - product"),
            "Every direction away from θold *raises* the KL, so v·F v is never negative.",
        ),
        Mistake(
            "a product that leaves gradients behind in the parameters",
            _edit(
                "torch.autograd.grad(kl_fn(), parameters, create_graph=True)",
                "[p.grad for p in parameters]",
                "gradients =",
                "kl_fn().backward(create_graph=True)\n    gradients =",
            ),
            "`backward` writes into `.grad`, where the next optimizer step will find it: use "
            "`torch.autograd.grad`, which returns the gradient.",
            telling=2,
        ),
        Mistake(
            "v·F v, a single number",
            _returned("vector @ (product + damping * vector)"),
            "The product of a matrix and a vector is a vector: (D,).",
        ),
        Mistake(
            "a product that multiplies the vector in place",
            _edit("return", "vector *= damping\n    return", "damping * vector", "vector"),
            "`vector *= damping` changes the caller's vector: `damping * vector` makes a new one.",
        ),
        Mistake(
            "F applied twice",
            _again("[matrix(gradient, parameters) @ (matrix(gradient, parameters) @ vector)]"),
            "Two derivatives make one F: the first gives ∇KL, the second that of ∇KL · v.",
        ),
        Mistake(
            "the product with v scaled to length 1",
            _list("list(parameters)\n    vector = vector / vector.norm()"),
            "The product is linear in v: twice the vector, twice the product.",
        ),
    ),
    alternatives=(_by_explicit_matrix, _by_grad_outputs, _by_damped_objective, line_by_line),
    hints=(
        "F is the matrix of second derivatives of the KL. You need not write it down: the gradient "
        "of (∇KL · v), with v held constant, is F v.",
        "Call `torch.autograd.grad` twice. The first call needs `create_graph=True`, so that its "
        "result can be differentiated; between the two lay the gradients end to end and take the "
        "dot product with `vector`.",
        "Flatten after each of the two:\n\n"
        "    parameters = list(parameters)\n"
        "    gradients = torch.autograd.grad(kl_fn(), parameters, create_graph=True)\n"
        "    flat = torch.cat([gradient.flatten() for gradient in gradients])\n"
        "    products = torch.autograd.grad(..., parameters)\n"
        "    return torch.cat([...]) + ...",
    ),
)
