"""A language model so small that every sentence it can say can be listed.

It keeps one row of logits for every prefix, so it can be *any* distribution over sequences of
`length` tokens. With V = 3 and T = 3 there are 13 prefixes and 27 sentences: expectations are
sums, and the gradient of an expectation is what autograd makes of the sum. The course compares its
estimators, which see only samples, with these exact values.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from rlcourse.algorithms.policies import completion_mask, sample_tokens
from rlcourse.policy.rollouts import Rollouts


class ToyPolicy(nn.Module):
    """A tabular autoregressive policy over V tokens and at most T steps; it has no prompt.

    With an `eos_id` a sentence ends at its first EOS, so that lengths differ; padding after it is
    EOS again, with mask False.
    """

    def __init__(
        self,
        vocab_size: int = 3,
        length: int = 3,
        seed: int = 0,
        eos_id: int | None = None,
        dtype: torch.dtype = torch.float64,
    ):
        super().__init__()
        self.vocab_size, self.length, self.eos_id = vocab_size, length, eos_id
        n_prefixes = sum(vocab_size**t for t in range(length))
        generator = torch.Generator().manual_seed(seed)
        self.logits = nn.Parameter(
            torch.randn(n_prefixes, vocab_size, generator=generator, dtype=dtype)
        )

    def child(self, prefix: Tensor, token: Tensor) -> Tensor:
        """Row of the prefix that grows by `token`. The empty prefix is row 0, as in a heap."""
        return prefix * self.vocab_size + 1 + token

    def logprobs(self, batch) -> Tensor:
        """Log-probs (N, T) in nats of `batch.tokens` at `batch.temperature`, 0 on padding."""
        table = (self.logits / batch.temperature).log_softmax(dim=-1)
        tokens = batch.tokens.masked_fill(~batch.mask.bool(), 0)
        prefix = torch.zeros_like(tokens[:, 0])
        logprobs = []
        for token in tokens.unbind(dim=1):
            logprobs.append(table[prefix, token])
            prefix = self.child(prefix, token)
        return torch.stack(logprobs, dim=1).masked_fill(~batch.mask.bool(), 0.0)

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Rollouts:
        """Draw n sentences, all of one group."""
        prefix = torch.zeros(n, dtype=torch.long, device=self.logits.device)
        tokens = []
        for _ in range(self.length):
            tokens.append(sample_tokens(self.logits[prefix], generator=generator))
            prefix = self.child(prefix, tokens[-1])
        return self._rollouts(torch.stack(tokens, dim=1), group_size=n)

    # The truth, by summation over all sentences

    @torch.no_grad()
    def trajectories(self) -> Rollouts:
        """Every sentence once: M = V^T rows, or fewer where an EOS ends some early."""
        vocabulary = torch.arange(self.vocab_size, device=self.logits.device)
        tokens = torch.cartesian_prod(*[vocabulary] * self.length).view(-1, self.length)
        if self.eos_id is not None:  # after EOS nothing but padding, or sentences would repeat
            is_padded_well = completion_mask(tokens, self.eos_id) | (tokens == self.eos_id)
            tokens = tokens[is_padded_well.all(dim=1)]
        return self._rollouts(tokens, group_size=1)

    def probabilities(self) -> Tensor:
        """Probability (M,) of each of `trajectories()`; they sum to 1."""
        return self._sequence_logprobs().exp()

    def expected_reward(self, rewards: Tensor | Callable[[Rollouts], Tensor]) -> Tensor:
        """J(θ) = Σ_y πθ(y) R(y), a scalar: its autograd gradient is the exact policy gradient.

        `rewards` is (M,), for each of `trajectories()`, or a function that turns them into that.
        """
        if callable(rewards):
            rewards = rewards(self.trajectories())
        probabilities = self.probabilities()
        return (probabilities * rewards.to(probabilities)).sum()

    def kl(self, other: "ToyPolicy") -> Tensor:
        """KL(self ‖ other) in nats between the distributions over whole sentences, a scalar."""
        logprobs = self._sequence_logprobs()
        return (logprobs.exp() * (logprobs - other._sequence_logprobs())).sum()

    def entropy(self) -> Tensor:
        """Entropy in nats of the distribution over whole sentences, a scalar."""
        logprobs = self._sequence_logprobs()
        return -(logprobs.exp() * logprobs).sum()

    def _sequence_logprobs(self) -> Tensor:
        return self.logprobs(self.trajectories()).sum(dim=1)

    def _rollouts(self, tokens: Tensor, group_size: int) -> Rollouts:
        if self.eos_id is None:
            mask = torch.ones_like(tokens, dtype=torch.bool)
        else:
            mask = completion_mask(tokens, self.eos_id)
            tokens = tokens.masked_fill(~mask, self.eos_id)
        no_prompt = tokens[:, :0]
        unscored = Rollouts(
            prompt_tokens=no_prompt,
            prompt_mask=no_prompt.bool(),
            tokens=tokens,
            mask=mask,
            old_logprobs=torch.zeros_like(tokens, dtype=self.logits.dtype),
            group_size=group_size,
        )
        return replace(unscored, old_logprobs=self.logprobs(unscored))
