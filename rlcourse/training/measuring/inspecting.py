"""Which probability a policy gives each token that it, or another policy, wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import importance_weights, kl_estimates
from rlcourse.errors import UserError
from rlcourse.evaluation import Evaluation
from rlcourse.policy import Speaker
from rlcourse.policy.rollouts import Rollouts
from rlcourse.policy.turns import rows_of
from rlcourse.reports.tokens import MEASURES, TokenGroup, TokenPage, Tokens
from rlcourse.seeds import derived_generator
from rlcourse.tasks.problem import Problem, Task
from rlcourse.tasks.rewards import correctness_reward
from rlcourse.training.data.scoring import world_of
from rlcourse.training.functions.calling import call_estimator
from rlcourse.training.networks.optimizer import autocast
from rlcourse.training.recipes.settings import Recipe

QUESTIONS, COMPLETIONS = 4, 8  # that a run's report shows, before training and after


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


@dataclass(frozen=True)
class Watched:
    """Questions of a run, and what the policy answered before it was trained."""

    problems: list[Problem]
    before: Rollouts

    @classmethod
    def begin(cls, policy, recipe: Recipe, task: Task, before: Evaluation | None):
        """Sample before training; None where no policy is measured."""
        if before is None or not before.transcripts:
            return None
        problems = telling_problems(task, before)
        return cls(problems, sampled_groups(policy, recipe, task, problems))

    def page(self, policy, recipe: Recipe, task: Task) -> TokenPage:
        """The same questions before and after, by the policy as it is now.

        The weights that training began with are gone, so ratio and KL are unknown for completions
        after training.
        """
        tokenizer = policy.tokenizer
        with torch.no_grad(), autocast(policy.device, recipe.dtype):
            after = sampled_groups(policy, recipe, task, self.problems)
            start = replace(self.before, ref_logprobs=self.before.old_logprobs)
            columns = {
                "before": by_question(tokenizer, start, _measured(policy, start, None, None)),
                "after": by_question(tokenizer, after, _as_sampled(after)),
            }
        asked = dict(zip(columns["before"], self.problems, strict=False))
        return TokenPage(
            [
                TokenGroup(problem.question, {when: of[key] for when, of in columns.items()})
                for key, problem in asked.items()
            ]
        )


def _as_sampled(batch: Rollouts) -> dict[str, Tensor]:
    found = {"logprob": batch.old_logprobs}
    if batch.advantages is not None:
        found["advantage"] = per_token(batch.advantages, batch.mask)
    return found


def telling_problems(task: Task, before: Evaluation) -> list[Problem]:
    """Held-out problems that the policy solves in some of its attempts, if there are any."""
    sometimes = [0 < t.samples_correct < len(t.samples) for t in before.transcripts]
    order = sorted(range(len(sometimes)), key=lambda i: not sometimes[i])
    distinct: dict[str, Problem] = {}
    for i in order:
        distinct.setdefault(task.evaluation[i].question, task.evaluation[i])
    return list(distinct.values())[:QUESTIONS]


@torch.no_grad()
def sampled_groups(policy, recipe: Recipe, task: Task, problems: list[Problem]) -> Rollouts:
    """A group of completions of each problem, with rewards and, if the method has them, with
    advantages; drawn independently of training's random numbers."""
    generator = derived_generator(policy.device, recipe.seed, "tokens", 0)
    world = world_of(recipe, task)
    with autocast(policy.device, recipe.dtype):
        if world is not None:
            speaker = Speaker(policy, recipe.max_tokens, 1.0, generator, recipe.system)
            episodes, rewards = world.play(speaker, problems, COMPLETIONS)
            batch = rows_of(policy, episodes, COMPLETIONS)
        else:
            prompts = [policy.format_prompt(p.question, system=recipe.system) for p in problems]
            batch = policy.sample(
                prompts, COMPLETIONS, max_tokens=recipe.max_tokens, generator=generator
            )
            answers = [p.answer for p in problems for _ in range(COMPLETIONS)]
            rewards = correctness_reward(policy.decode(batch), answers, task.extract)
    rewards = rewards.to(batch.mask.device)
    batch = replace(batch, rewards=rewards)
    method = recipe.method
    estimator = method.advantages
    if estimator is None or method.imitates or method.critic or method.taught:
        return batch  # without what is not there: a critic, or a teacher
    advantages = call_estimator(estimator, rewards, batch.mask, {"group_size": COMPLETIONS})
    return replace(batch, advantages=advantages)
