"""What several test files share: random batches of completions, and how each loss is called."""

from types import SimpleNamespace

import torch

from rlcourse import algorithms

# name -> its arguments; the first is the one that carries gradient
LOSSES = {
    "sft_loss": ("logprobs", "mask"),
    "reinforce_loss": ("logprobs", "rewards", "mask"),
    "off_policy_loss": ("logprobs", "old_logprobs", "advantages", "mask"),
    "ppo_clip_loss": ("logprobs", "old_logprobs", "advantages", "mask"),
    "grpo_loss": ("logprobs", "old_logprobs", "ref_logprobs", "advantages", "mask"),
    "value_loss": ("values", "returns", "old_values", "mask"),
}


def right_padded_mask(lengths, width) -> torch.Tensor:
    """(N, T) bool, True on the first lengths[i] tokens of row i."""
    return torch.arange(width) < torch.as_tensor(lengths)[:, None]


def make_batch(seed, rows=5, width=7, dtype=torch.float64, lengths=None) -> SimpleNamespace:
    """Log-probs of three policies near one another, rewards, values and a right-padded mask.

    The spread of the ratios is wide enough for every branch of the clip to occur.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    if lengths is None:
        lengths = torch.randint(0, width + 1, (rows,), generator=generator)
        lengths[0] = width
    logprobs = -normal(rows, width).abs() - 0.05
    values = normal(rows, width)
    return SimpleNamespace(
        logprobs=logprobs.to(dtype),
        old_logprobs=(logprobs + 0.3 * normal(rows, width)).to(dtype),
        ref_logprobs=(logprobs + 0.5 * normal(rows, width)).to(dtype),
        advantages=normal(rows).to(dtype),
        rewards=normal(rows).to(dtype),
        values=values.to(dtype),
        old_values=(values + 0.3 * normal(rows, width)).to(dtype),
        returns=normal(rows, width).to(dtype),
        mask=right_padded_mask(lengths, width),
    )


def call_loss(name, batch) -> torch.Tensor:
    """The scalar loss `name` of a batch (or of any object with the attributes it needs)."""
    result = getattr(algorithms, name)(*(getattr(batch, argument) for argument in LOSSES[name]))
    return result[0] if isinstance(result, tuple) else result


def loss_and_gradient(name, batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss and its gradient with respect to its first argument."""
    batch = SimpleNamespace(**vars(batch))
    source = getattr(batch, LOSSES[name][0]).detach().clone().requires_grad_()
    setattr(batch, LOSSES[name][0], source)
    loss = call_loss(name, batch)
    (gradient,) = torch.autograd.grad(loss, source)
    return loss.detach(), gradient
