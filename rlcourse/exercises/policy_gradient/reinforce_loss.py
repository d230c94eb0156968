"""The REINFORCE loss over sampled completions."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.policy_gradient import reinforce_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _loss_cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, advantages: Tensor, mask: Tensor) -> Case:
        return Case(label, {"logprobs": logprobs, "advantages": advantages, "mask": mask})

    worked = tensor([[-0.5, -1.0], [-2.0, -3.0]])
    padded = torch.tensor([[True, True], [True, False]])
    yield case("worked: two completions", worked, tensor([1.0, 0.5]), padded)
    for label, logprobs, mask in draw.batches():
        yield case(label, logprobs, draw.rewards(len(logprobs), logprobs.dtype), mask)
    rows, tokens = draw.size(5, 7), draw.size(2, 4)
    binary = draw.binary_rewards(rows)
    yield case("rewards of 0 and 1", draw.logprobs(rows, tokens), binary, draw.mask(rows, tokens))
    rows, tokens = draw.shape()
    nothing = torch.zeros(rows).double()
    yield case("no reward", draw.logprobs(rows, tokens), nothing, draw.mask(rows, tokens))
    second_empty = torch.tensor([[True, True], [False, False]])
    yield case("an empty row beside a praised one", worked, tensor([1.0, 0.5]), second_empty)
    yield _every_sentence(draw)


def _every_sentence(draw: CaseSampler) -> Case:
    """All V² sentences of two independent tokens, weighted so that the gradient is exact."""
    first, second = (draw.normal(3).log_softmax(0) for _ in range(2))
    logprobs = torch.stack([first.repeat_interleave(3), second.repeat(3)], dim=1)
    weighted = len(logprobs) * logprobs.sum(1).exp() * draw.rewards(len(logprobs))
    label = "every sentence of a toy model, weighted by its probability"
    mask = torch.ones_like(logprobs).bool()
    return Case(label, {"logprobs": logprobs, "advantages": weighted, "mask": mask})


def _summed(logprobs: Tensor, mask: Tensor) -> Tensor:
    return (logprobs * mask).sum(1)


def token_mean_loss(logprobs, advantages, mask):
    return -(advantages.detach() * _summed(logprobs, mask) / mask.sum(1).clamp(min=1)).mean()


def baseline_loss(logprobs, advantages, mask):
    return reinforce_loss(logprobs, advantages - advantages.mean(), mask)


def _loss_by_loop(logprobs, advantages, mask):
    total = logprobs.new_zeros(())
    for i in range(len(advantages)):
        for t in range(logprobs.shape[1]):
            if mask[i, t]:
                total = total - advantages[i].item() * logprobs[i, t]
    return total / len(advantages)


def _loss_by_einsum(logprobs, advantages, mask):
    weights = mask.to(logprobs.dtype)
    return -torch.einsum("n,nt,nt->", advantages.detach(), logprobs, weights) / len(advantages)


def _loss_in_float64(logprobs, advantages, mask):
    selected = torch.where(mask.bool(), logprobs, 0.0).double()
    per_row = advantages.detach().double() * selected.sum(dim=-1)
    return per_row.mean().neg().to(logprobs.dtype)


def line_by_line(logprobs, advantages, mask):
    a = advantages.detach()
    per_token = torch.where(mask.bool(), logprobs, 0.0)
    rows = per_token.sum(1)
    per_row = a * rows
    return -per_row.mean()


def last_token(mask):
    return (mask.long().sum(1, keepdim=True) - 1).clamp(min=0)


_edit = Sketch(line_by_line, last_token).edit
_over_tokens = partial(_edit, "the sum over tokens", "per_token.sum(1)")
_over_completions = partial(_edit, "the mean over completions", "per_row.mean()")
_size = partial(_edit, "the advantages: their size", "per_token =")


EXERCISE = Exercise(
    reference=reinforce_loss,
    lesson="02_policy_gradient",
    section="From one action to a sentence",
    points=4,
    difficulty=2,
    minutes=20,
    differentiable=("logprobs",),
    constants=("advantages",),
    cases=_loss_cases,
    mistakes=(
        Mistake(
            "a mean over each completion's tokens in place of the sum",
            _over_tokens("per_token.sum(1) / mask.sum(1).clamp(min=1)"),
            "The log-prob of a completion is the *sum* over its tokens; a mean makes every token "
            "of a long completion count less.",
        ),
        Mistake(
            "a mean over all real tokens of the batch",
            _over_completions("per_row.sum() / mask.sum().clamp(min=1)"),
            "The expectation is over completions: sum each one's tokens, then divide by the "
            "number of completions N.",
        ),
        Mistake(
            "a mean over all N·T positions, padding included",
            _over_completions("per_row.sum() / mask.numel()"),
            "Padding must neither be added nor counted: sum over a completion's tokens, and take "
            "the mean over completions only.",
        ),
        Mistake(
            "the objective, not the loss: the sign is missing",
            _edit("the sign", "return -", "return "),
            "An optimizer minimizes: without the minus it makes rewarded completions less likely.",
        ),
        Mistake(
            "a sum that counts padding",
            _edit("the padding", "torch.where(mask.bool(), logprobs, 0.0)", "logprobs"),
            "What stands after the end of a completion was never said: multiply by `mask` "
            "before you sum.",
        ),
        Mistake(
            "a loss through which gradient flows into the advantages",
            _edit("the advantages: their gradient", "advantages.detach()", "advantages"),
            "A reward is a number that the environment returned, a constant: use "
            "`advantages.detach()`.",
        ),
        Mistake(
            "rewards laid along the tokens in place of the rows",
            _edit("the advantages: their axis", "a * rows", "(a * per_token).sum(1)"),
            "(N,) against (N, T) lines up with T: it fails where N ≠ T, and where N = T it gives "
            "token t the reward of row t; write `advantages[:, None]` or sum over tokens first.",
        ),
        Mistake(
            "a sum over completions in place of the mean",
            _over_completions("per_row.sum()"),
            "The loss estimates an expectation: as a sum, twice the batch would mean twice the "
            "step.",
        ),
        Mistake(
            "a loss on token probabilities in place of log-probs",
            _edit("the log-probs", "logprobs, 0.0", "logprobs.exp(), 0.0"),
            "The log-derivative trick needs ∇ log π; the sampling supplies the factor π.",
        ),
        Mistake(
            "a loss on the completion's probability in place of its log-prob",
            _edit("the log-probs", "a * rows", "a * rows.exp()"),
            "That weights each completion by π a second time: sampling it already did.",
        ),
        Mistake(
            "a loss that no gradient leaves",
            _edit("the gradient", "rows = per_token", "rows = per_token.detach()"),
            "The value is right but is cut off from `logprobs` (by detach, item, no_grad or a new "
            "tensor), so nothing would be learned.",
        ),
        Mistake(
            "a mean over the rewarded completions only",
            _over_completions("per_row[a > 0].sum() / (a > 0).sum().clamp(min=1)"),
            "Completions without reward add 0 but still count in the mean, and a negative reward "
            "must push down.",
        ),
        Mistake(
            "the mean log-prob of the rewarded completions",
            _over_completions("rows[a > 0].mean()"),
            "With rewards of 0 and 1 this points the same way, but a batch with one right answer "
            "would move the weights as far as one with all right: each completion counts with its "
            "reward, and the mean runs over all N.",
        ),
        Mistake(
            "a mean over the rewarded completions only, which is NaN where there are none",
            _over_completions("per_row[a > 0].mean()"),
            "Completions without reward add 0 but still count in the mean, and a negative reward "
            "must push down.",
        ),
        Mistake(
            "rewards standardized by their mean and standard deviation",
            _size("a = (a - a.mean()) / a.std()\n    per_token ="),
            "That is an advantage, the idea of lessons 03 and 06, and for N = 1 it is 0/0; "
            "REINFORCE as it stands uses the reward itself.",
        ),
        Mistake(
            "a loss that takes any positive reward for 1 and others for 0",
            _size("a = (a > 0).to(logprobs.dtype)\n    per_token ="),
            "Rewards are real numbers: twice the reward is twice the push, and a negative one "
            "pushes down.",
        ),
        Mistake(
            "rewards minus their mean",
            _size("a = a - a.mean()\n    per_token ="),
            "That is a baseline, the idea of lesson 03; REINFORCE as it stands uses the reward "
            "itself.",
        ),
        Mistake(
            "the mean reward times the mean log-prob",
            _over_completions("a.mean() * rows.mean()"),
            "Each completion's log-prob must meet its own reward before the mean is taken.",
        ),
        Mistake(
            "credit for the last token only",
            _over_tokens("per_token.gather(1, last_token(mask)).squeeze(1)"),
            "The reward comes at the end, but every decision on the way led to it: each token "
            "gets the completion's whole reward.",
        ),
        Mistake(
            "credit for the last column only",
            _over_tokens("logprobs[:, -1]"),
            "The last column is padding in short rows; and every decision on the way led to the "
            "reward: each real token gets the completion's whole reward.",
        ),
        Mistake(
            "a mean over the completions that are not empty",
            _over_completions("per_row.sum() / mask.bool().any(1).sum().clamp(min=1)"),
            "An empty row adds 0 and is counted all the same: divide by N.",
            telling=1,
        ),
    ),
    alternatives=(_loss_by_loop, _loss_by_einsum, _loss_in_float64, line_by_line),
    hints=(
        "First the log-prob of each whole completion, (N,): which tokens belong to it, and do "
        "their log-probs add or average?",
        "Sum the log-probs where the mask is 1, multiply by the reward of the row (a constant), "
        "take the mean over rows, and turn the sign, because optimizers minimize.",
        "Mind that the mask may be bool or float:\n\n"
        "    completion_logprobs = (logprobs * mask).sum(dim=...)  # (N,)\n"
        "    return -(advantages.detach() * ...).mean()",
    ),
)
