"""The stub and the solution come from the library's own text."""

import ast
import inspect

import pytest
import torch
from torch import Tensor

from rlcourse.algorithms import policy_gradient
from rlcourse.authoring import stubs
from rlcourse.checks.asking.names import free_names
from rlcourse.errors import UserError


def weighted(
    x: Tensor,
    weight: float = 1.0,  # a comment in the signature
) -> Tensor:
    """Weigh x, in

    several lines.
    """
    # why: a comment that opens the body
    y = x * weight

    return y  # at the end


def test_stub_keeps_signature_and_docstring_and_nothing_of_the_body():
    text = stubs.stub(weighted)
    assert text.endswith('    """\n    raise NotImplementedError')
    assert "# a comment in the signature" in text
    assert "why" not in text and "* weight" not in text
    namespace = {"Tensor": Tensor}
    exec(text, namespace)
    assert namespace["weighted"].__doc__ == weighted.__doc__
    with pytest.raises(NotImplementedError):
        namespace["weighted"](torch.ones(1))


def test_solution_keeps_comments_inside_the_marks_and_the_docstring_outside():
    text = stubs.solution(weighted)
    before, body = text.split("    ### BEGIN SOLUTION\n")
    assert before.endswith('    """\n') and "why" not in before
    assert body.startswith("    # why: a comment") and body.endswith("\n    ### END SOLUTION")
    assert stubs.solution(weighted, marks=False) == stubs.source_of(weighted)


def test_free_names_include_annotations_and_nested_scopes_but_no_locals_or_builtins():
    source = (
        "def f(x: Tensor, n: int = LIMIT) -> Tensor:\n"
        "    total = sum(helper(i) + n for i in range(n))\n"
        "    def inner(y): return y + total + deep\n"
        "    return inner(x)\n"
    )
    assert free_names(source) == {"Tensor", "LIMIT", "helper", "deep"}
    assert free_names("if ready:\n    import os; os.getcwd()") == {"ready"}


def test_a_function_without_docstring_is_refused():
    def bare(x):
        return x

    with pytest.raises(UserError, match="docstring"):
        stubs.stub(bare)


def test_blank_functions_takes_out_only_the_named_bodies():
    source = inspect.getsource(policy_gradient)
    blanked = stubs.blank_functions(source, ["reinforce_loss", "score_function"])
    kept = {n.name: ast.unparse(n) for n in ast.parse(source).body if hasattr(n, "name")}
    for node in ast.parse(blanked).body:
        if not hasattr(node, "name"):
            continue
        if node.name in ("reinforce_loss", "score_function"):
            assert ast.unparse(node.body[1:]) == "raise NotImplementedError"
        else:
            assert ast.unparse(node) == kept[node.name]
    with pytest.raises(UserError, match="no function other"):
        stubs.blank_functions(source, ["other"])
