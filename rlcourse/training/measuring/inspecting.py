"""Which probability a policy gives each token that it, or another policy, wrote."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import importance_weights, kl_estimates
from rlcourse.errors import UserError
from rlcourse.policy.rollouts import Rollouts
from rlcourse.reports.tokens import MEASURES, TokenGroup, TokenPage, Tokens


@torch.no_grad()
def inspect_rollouts(
    policy,
    rollouts: Rollouts | Mapping[str, Rollouts],
    old=None,
    reference=None,
    show: Sequence[str] = tuple(MEASURES),
) -> TokenPage:
    """Completions with the numbers of each token, as a page that a notebook shows.

    The log-prob is that of sampling, ``rollouts.old_logprobs``. The ratio πθ/πold is that of
    `policy` to `old`, by default to the policy that sampled. The KL term is k3 of `policy` against
    `reference`, by default against `old`, or against ``rollouts.ref_logprobs`` where they are
    known. Advantages and rewards are shown where the rollouts have them.

    Args:
        rollouts: N completions, or {heading: N completions} of the same prompts, such as
            ``{"before": ..., "after": ...}``, which then stand side by side.
        old, reference: policies, or None.
        show: the measures to show, of logprob, ratio, advantage and kl; by default all.

    Raises:
        UserError: the headings' rollouts are not of the same prompts.
    """
    named = rollouts if isinstance(rollouts, Mapping) else {"completions": rollouts}
    columns = {
        name: by_question(policy.tokenizer, batch, _measured(policy, batch, old, reference), show)
        for name, batch in named.items()
    }
    first, *others = columns.values()
    if any(list(other) != list(first) for other in others):
        raise UserError("these rollouts are not of the same prompts: sample both with the same")
    groups = [
        TokenGroup(question, {name: column[question] for name, column in columns.items()})
        for question in first
    ]
    return TokenPage(groups)


def _measured(policy, batch: Rollouts, old, reference) -> dict[str, Tensor]:
    """{measure: (N, T)}, without the measures that are unknown."""
    mask = batch.mask
    now = policy.logprobs(batch).float()
    before = batch.old_logprobs.float() if old is None else old.logprobs(batch).float()
    found = {"logprob": batch.old_logprobs, "ratio": importance_weights(now, before, mask)}
    if reference is not None:
        found["kl"] = kl_estimates(now, reference.logprobs(batch).float(), "k3")
    elif batch.ref_logprobs is not None:
        found["kl"] = kl_estimates(now, batch.ref_logprobs.float(), "k3")
    elif old is not None:
        found["kl"] = kl_estimates(now, before, "k3")
    if batch.advantages is not None:
        found["advantage"] = per_token(batch.advantages, mask)
    return found


def per_token(advantages: Tensor, mask: Tensor) -> Tensor:
    """Advantages (N,) or (N, T) as (N, T)."""
    wide = advantages[:, None] if advantages.ndim == 1 else advantages
    return wide.expand(mask.shape)


def by_question(
    tokenizer, batch: Rollouts, values: dict[str, Tensor], show: Sequence[str] = tuple(MEASURES)
) -> dict[str, list[Tokens]]:
    """{question: its completions}, with `values` {measure: (N, T)} of each real token.

    The same question asked twice counts as one.
    """
    found: dict[str, list[Tokens]] = {}
    values = {name: of for name, of in values.items() if name in show}
    for i in range(len(batch)):
        prompt = batch.prompt_tokens[i][batch.prompt_mask[i]].tolist()
        question = tokenizer.decode(prompt, skip_special_tokens=True).strip()
        real, drawn = batch.reads[i], batch.mask[i]  # what an environment wrote has no numbers
        numbers = {
            name: [round(x, 5) for x in (of[i] * drawn)[real].tolist()]
            for name, of in values.items()
        }
        texts = [tokenizer.decode([token]) for token in batch.tokens[i][real].tolist()]
        reward = None if batch.rewards is None else batch.rewards[i].item()
        found.setdefault(question, []).append(Tokens(texts, numbers, reward))
    return found
