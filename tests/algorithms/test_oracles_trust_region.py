"""TRPO's three parts on a policy whose Fisher matrix can be written down."""

import pytest
import torch

from rlcourse.algorithms import (
    backtracking_line_search,
    conjugate_gradient,
    exact_policy_gradient,
    fisher_vector_product,
    kl_divergence,
)

STATES, ACTIONS = 3, 4


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


class LinearPolicy:
    """Softmax of a linear map of the state: two parameter tensors, D = 3·4 + 4."""

    def __init__(self):
        self.states = normal(5, STATES, seed=1)
        self.weight = normal(STATES, ACTIONS, seed=2).requires_grad_()
        self.bias = normal(ACTIONS, seed=3).requires_grad_()
        self.parameters = [self.weight, self.bias]
        self.old_logits = self.logits().detach()

    def logits(self):
        return self.states @ self.weight + self.bias

    def kl(self):
        return kl_divergence(self.old_logits, self.logits()).mean()

    def fisher(self):
        """Mean over states of Σ_a π(a) ∇log π(a) ∇log π(a)ᵀ, entry by entry from its definition."""
        matrix = torch.zeros(16, 16).double()
        logprobs = self.logits().log_softmax(-1)
        for s in range(len(self.states)):
            for a in range(ACTIONS):
                grads = torch.autograd.grad(logprobs[s, a], self.parameters, retain_graph=True)
                score = torch.cat([g.flatten() for g in grads])
                matrix += logprobs[s, a].exp().detach() * torch.outer(score, score)
        return matrix / len(self.states)


@pytest.mark.parametrize("damping", [0.0, 0.1])
def test_fisher_vector_product_is_the_explicit_matrix(damping):
    policy = LinearPolicy()
    matrix = policy.fisher() + damping * torch.eye(16).double()
    for seed in range(3):
        vector = normal(16, seed=seed)
        product = fisher_vector_product(policy.kl, policy.parameters, vector, damping)
        torch.testing.assert_close(product, matrix @ vector, rtol=1e-8, atol=1e-10)
    assert not product.requires_grad
    assert policy.weight.grad is None


@pytest.mark.parametrize("size", [1, 5, 12])
def test_conjugate_gradient_solves_the_system_in_as_many_steps_as_unknowns(size):
    root = normal(size, size, seed=size)
    matrix, b = root @ root.T + torch.eye(size).double(), normal(size, seed=99)
    before = b.clone()
    x = conjugate_gradient(lambda v: matrix @ v, b, iterations=size, tolerance=0.0)
    torch.testing.assert_close(x, torch.linalg.solve(matrix, b), rtol=1e-6, atol=1e-8)
    assert torch.equal(b, before)


def test_conjugate_gradient_counts_its_products():
    calls = []
    matrix = torch.diag(torch.arange(1.0, 11.0).double())

    def matvec(v):
        calls.append(1)
        return matrix @ v

    conjugate_gradient(matvec, torch.ones(10).double(), iterations=3, tolerance=0.0)
    assert len(calls) == 3
    calls.clear()
    # two distinct eigenvalues: done after two steps
    matrix = torch.diag(torch.tensor([1.0] * 5 + [4.0] * 5).double())
    x = conjugate_gradient(matvec, torch.ones(10).double(), iterations=10, tolerance=1e-20)
    assert len(calls) == 2
    torch.testing.assert_close(matrix @ x, torch.ones(10).double())


def line_search(logits, rewards, step, max_kl, **options):
    old = logits.detach().clone()
    return backtracking_line_search(
        lambda: logits.softmax(0) @ rewards,
        lambda: kl_divergence(old, logits),
        [logits], step, max_kl, **options,
    )  # fmt: skip


def test_line_search_takes_the_largest_safe_step():
    rewards = torch.tensor([1.0, 0.0, 0.0]).double()
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    step = 100 * exact_policy_gradient(logits.detach(), rewards)
    fraction = line_search(logits, rewards, step, max_kl=0.01)
    kls = [kl_divergence(torch.zeros(3).double(), 0.5**k * step).item() for k in range(10)]
    first_safe = next(k for k, kl in enumerate(kls) if kl <= 0.01)
    assert first_safe > 0 and fraction == 0.5**first_safe
    torch.testing.assert_close(logits.detach(), fraction * step)


def test_line_search_restores_the_parameters_when_nothing_is_safe():
    rewards = torch.tensor([1.0, 0.0, 0.0]).double()
    logits = normal(3).requires_grad_()
    before = logits.detach().clone()
    downhill = -exact_policy_gradient(before, rewards)
    assert line_search(logits, rewards, downhill, max_kl=1.0, max_backtracks=5) == 0.0
    assert torch.equal(logits.detach(), before)
    assert logits.requires_grad


def test_line_search_over_several_tensors_and_its_shrinkage():
    policy = LinearPolicy()
    step = normal(16, seed=8)
    shapes = [p.shape for p in policy.parameters]
    before = torch.cat([p.detach().flatten() for p in policy.parameters])
    tried = []

    def objective():
        tried.append(torch.cat([p.detach().flatten() for p in policy.parameters]) - before)
        return torch.tensor(1.0 if len(tried) == 4 else 0.0)

    fraction = backtracking_line_search(
        objective, policy.kl, policy.parameters, step, max_kl=1e9, shrink=0.7
    )
    assert fraction == pytest.approx(0.7**2)
    torch.testing.assert_close(torch.stack(tried[1:]), torch.stack([step, 0.7 * step, 0.49 * step]))
    assert [p.shape for p in policy.parameters] == shapes


def test_natural_step_reaches_the_kl_budget():
    """The three parts together: √(2δ / gᵀF⁻¹g) F⁻¹g changes the policy by a KL of about δ."""
    policy, delta = LinearPolicy(), 1e-4
    rewards = normal(5, ACTIONS, seed=7)
    objective = lambda: (policy.logits().softmax(-1) * rewards).sum(-1).mean()  # noqa: E731
    gradients = torch.autograd.grad(objective(), policy.parameters)
    g = torch.cat([x.flatten() for x in gradients])
    matvec = lambda v: fisher_vector_product(policy.kl, policy.parameters, v, 1e-10)  # noqa: E731
    natural = conjugate_gradient(matvec, g, iterations=50, tolerance=1e-24)
    step = (2 * delta / (g @ natural)).sqrt() * natural
    before = objective().item()
    assert backtracking_line_search(objective, policy.kl, policy.parameters, step, 2 * delta) == 1.0
    assert policy.kl().item() == pytest.approx(delta, rel=0.05)
    assert objective().item() > before
