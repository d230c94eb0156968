"""A reward for every token: the score at the end, and the leash all along."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.algorithms.ppo import kl_shaped_rewards
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, mask: Tensor, beta=0.3, **given) -> Case:
        apart = draw.normal(*logprobs.shape, scale=0.6)
        arguments = {
            "scores": draw.rewards(len(logprobs), logprobs.dtype),
            "logprobs": logprobs,
            "ref_logprobs": (logprobs - apart).to(logprobs.dtype),
            "mask": mask,
            "beta": beta,
        }
        return Case(label, {**arguments, **given})

    rows, tokens = draw.size(3, 4), draw.size(5, 6)
    yield case("different lengths", draw.logprobs(rows, tokens), draw.mask(rows, tokens))
    worked = {
        "scores": tensor([1.0]),
        "logprobs": tensor([[-0.5, -1.0, -0.2, -9.0]]),
        "ref_logprobs": tensor([[-0.7, -0.6, -0.2, -1.0]]),
        "mask": torch.tensor([[1, 1, 1, 0]]) > 0,
        "beta": 0.1,
    }
    yield Case("worked: three tokens and padding", worked)
    for label, logprobs, mask in draw.batches():
        yield case(label, logprobs, mask)
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield case("no leash", logprobs, mask, beta=0.0)
    yield case("a strong leash", logprobs, mask, beta=4.0)
    yield case("the policy is the reference", logprobs, mask, ref_logprobs=logprobs)
    yield case("scores of 0", logprobs, mask, scores=torch.zeros(rows).double())
    short = draw.mask(rows, tokens) & (torch.arange(tokens) < tokens - 1)
    yield case("every row is padded", logprobs, short)


def _is_last(mask: Tensor) -> Tensor:
    real = mask.bool()
    following = torch.cat([real[:, 1:], torch.zeros_like(real[:, :1])], 1)
    return real & ~following


def line_by_line(scores, logprobs, ref_logprobs, mask, beta):
    scores, new, ref = scores.detach(), logprobs.detach(), ref_logprobs.detach()
    real = mask.bool()
    kl = (new - ref).masked_fill(~real, 0)
    penalty = -(beta * kl)
    last = _is_last(mask)
    rewards = penalty + last * scores[:, None]
    return rewards.masked_fill(mask == 0, 0)


def _also_empty_rows(rewards, scores, mask):
    empty = ~mask.bool().any(1, keepdim=True)
    return rewards.masked_fill(mask == 0, 0) + empty * _column(mask, -1) * scores[:, None]


def _column(mask, index):
    where = torch.zeros_like(mask.bool())
    where[:, index] = True
    return where


_edit = Sketch(line_by_line, masked_mean, _is_last, _column, _also_empty_rows).edit
_place = partial(_edit, "the penalty: its place", "penalty =")


def _in_place(scores, logprobs, ref_logprobs, mask, beta):
    with torch.no_grad():
        shaped = kl_shaped_rewards(scores, logprobs, ref_logprobs, mask, beta)
        return logprobs.copy_(shaped)


def _by_loop(scores, logprobs, ref_logprobs, mask, beta):
    rewards = torch.zeros_like(logprobs, requires_grad=False)
    for i, length in enumerate(mask.sum(1).long().tolist()):
        for t in range(length):
            rewards[i, t] = -beta * (logprobs[i, t] - ref_logprobs[i, t]).item()
        if length:
            rewards[i, length - 1] += scores[i].item()
    return rewards


def _by_scatter(scores, logprobs, ref_logprobs, mask, beta):
    with torch.no_grad():
        real = mask.to(logprobs.dtype)
        lengths = real.sum(1, keepdim=True).long()
        ends = torch.zeros_like(real).scatter(1, (lengths - 1).clamp(min=0), 1.0) * (lengths > 0)
        return real * (beta * (ref_logprobs - logprobs) + ends * scores.unsqueeze(1))


def _by_comparing_positions(scores, logprobs, ref_logprobs, mask, beta):
    positions = torch.arange(mask.shape[1], device=mask.device)
    last = positions == mask.sum(dim=1, keepdim=True) - 1
    rewards = torch.where(last, scores.detach()[:, None], 0.0)
    rewards = rewards - beta * (logprobs - ref_logprobs).detach()
    return torch.where(mask.bool(), rewards, 0.0)


EXERCISE = Exercise(
    reference=kl_shaped_rewards,
    lesson="05_ppo",
    section="A leash inside the reward",
    points=3,
    difficulty=2,
    minutes=8,
    constants=("scores", "logprobs", "ref_logprobs"),
    cases=_cases,
    mistakes=(
        Mistake(
            "rewards with the score in the last column, padding or not",
            _edit("the score: its place", "_is_last(mask)", "_column(mask, -1)"),
            "In a padded row the last column is no token, nor is the one after the end: the score "
            "belongs to the last entry with mask 1.",
        ),
        Mistake(
            "rewards with the score at the first token",
            _edit("the score: its place", "_is_last(mask)", "_column(mask, 0)"),
            "The score is known when the completion is over, at its last real token.",
        ),
        Mistake(
            "rewards with the score at every token",
            _edit("the score: its place", "_is_last(mask)", "real"),
            "Summed over the tokens the score would count T times: it is paid once, at the end.",
        ),
        Mistake(
            "rewards in which an empty row is paid as well",
            _edit(
                "empty rows",
                "return rewards.masked_fill(mask == 0, 0)",
                "return _also_empty_rows(rewards, scores, mask)",
            ),
            "For a row without tokens, n − 1 is −1, and that is the last column: such a row gets "
            "nothing.",
            telling=2,
        ),
        Mistake(
            "rewards whose last token has the score but no penalty",
            _edit(
                "the penalty: at the last token",
                "penalty + last",
                "penalty.masked_fill(last, 0) + last",
            ),
            "The last token is held by the leash as well: *add* the score to its penalty.",
        ),
        Mistake(
            "a leash that pays for going away",
            _edit("the penalty: its sign", "-(beta", "(beta"),
            "Where the policy makes a token likelier than the reference, it has to pay: "
            "−β (log πθ − log πref).",
        ),
        Mistake(
            "a penalty that is not weighed by β",
            _edit("the penalty: its weight", "beta * kl", "1 * kl"),
            "The leash has a strength: multiply the log-ratio by `beta`.",
        ),
        Mistake(
            "rewards without the leash",
            _edit("the penalty: its weight", "beta * kl", "0 * kl"),
            "Every real token pays β times its log-ratio to the reference.",
        ),
        Mistake(
            "scores that are weighed by β, too",
            _edit("the score: its size", "scores[:, None]", "(beta * scores)[:, None]"),
            "β weighs the penalty only; the score is what the leash is weighed against.",
        ),
        Mistake(
            "a penalty of k3",
            _edit(
                "the penalty: the log-ratio", "(new - ref)", "(torch.expm1(ref - new) + new - ref)"
            ),
            "In the *reward* the plain log-ratio is right: only its mean gives the KL's gradient "
            "there (lesson 04).",
        ),
        Mistake(
            "a penalty of k2, half the squared log-ratio",
            _edit("the penalty: the log-ratio", "(new - ref)", "((new - ref) ** 2 / 2)"),
            "In the *reward* the plain log-ratio is right: it may be negative for a single token.",
        ),
        Mistake(
            "a penalty of the absolute log-ratio",
            _edit("the penalty: the log-ratio", "(new - ref)", "(new - ref).abs()"),
            "A token that has become less likely has a negative term, and must: only with these "
            "is the mean the KL.",
        ),
        Mistake(
            "a penalty that is never negative",
            _edit("the penalty: the log-ratio", "(new - ref)", "(new - ref).clamp(min=0)"),
            "A token that has become less likely has a negative term, and must: only with these "
            "is the mean the KL.",
        ),
        Mistake(
            "a difference of probabilities in place of log-probs",
            _edit("the penalty: the log-ratio", "(new - ref)", "(new.exp() - ref.exp())"),
            "The KL is a mean of *log*-ratios, and that is what you are given: subtract, do not "
            "exponentiate.",
        ),
        Mistake(
            "the ratio in place of its logarithm",
            _edit("the penalty: the log-ratio", "(new - ref)", "(new - ref).exp()"),
            "Where the policies agree nothing is to be paid: log 1 = 0.",
        ),
        Mistake(
            "the completion's whole KL at every token",
            _place("kl = kl.sum(1, keepdim=True) * mask\n    penalty ="),
            "Each token pays for itself: the sum over tokens is then the completion's KL, once.",
        ),
        Mistake(
            "the completion's whole KL at the last token",
            _place("kl = kl.sum(1, keepdim=True) * _is_last(mask)\n    penalty ="),
            "The sum is right, but a token's penalty belongs where it arose: that is what lets the "
            "critic tell tokens apart.",
        ),
        Mistake(
            "the mean log-ratio of the completion, at the last token",
            _place("kl = masked_mean(kl, mask, dim=1)[:, None] * _is_last(mask)\n    penalty ="),
            "A completion's KL is a *sum* over its tokens, and each token pays where it stands.",
        ),
        Mistake(
            "a score divided by the length",
            _edit(
                "the score: its size",
                "scores[:, None]",
                "(scores / mask.sum(1).clamp(min=1))[:, None]",
            ),
            "The score is paid once and in full, at the last token.",
        ),
        Mistake(
            "scores laid along the tokens",
            _edit("the score: its axis", "scores[:, None]", "scores"),
            "(N,) against (N, T) lines up with T: write `scores[:, None]`.",
        ),
        Mistake(
            "a penalty on padding as well",
            _edit(
                "the padding",
                "return rewards.masked_fill(mask == 0, 0)",
                "return torch.where(real, rewards, -beta * new.sub(ref))",
            ),
            "Padding was never said, so it pays nothing: 0 where the mask is 0.",
        ),
        Mistake(
            "one reward for each completion",
            _edit("the shape of the result", "mask == 0, 0)", "mask == 0, 0).sum(1)"),
            "The result is a reward for each *token*, (N, T); `gae` adds them up.",
        ),
        Mistake(
            "rewards that carry gradient",
            _edit(
                "the constants",
                "scores.detach(), logprobs.detach(), ref_logprobs.detach()",
                "scores, logprobs, ref_logprobs",
            ),
            "A reward is a number: with a graph the penalty's gradient would enter the loss in a "
            "second, wrong way. Detach the log-probs.",
        ),
        Mistake(
            "rewards written over the log-probs",
            _in_place,
            "The caller still needs `logprobs`: make a new tensor.",
        ),
        Mistake(
            "the score in the last column, and the mask forgotten there",
            _edit(
                "the score: its place",
                "_is_last(mask)",
                "_column(mask, -1)",
                "rewards.masked_fill(mask == 0, 0)",
                "rewards",
            ),
            "`r[:, -1] += scores` pays at the last *column*, which in a short row is padding: "
            "find each row's last real token.",
        ),
        Mistake(
            "the score in the last column, and penalties on padding",
            _edit(
                "the score: its place",
                "_is_last(mask)",
                "_column(mask, -1)",
                "(new - ref).masked_fill(~real, 0)",
                "new - ref",
                "rewards.masked_fill(mask == 0, 0)",
                "rewards",
            ),
            "`r[:, -1] += scores` pays at the last *column*, which in a short row is padding; and "
            "what stands on padding is 0.",
        ),
    ),
    alternatives=(_by_loop, _by_scatter, _by_comparing_positions, line_by_line),
    hints=(
        "Two parts that are added: a penalty at every real token, and the score at one of them.",
        "The penalty is −beta · (logprobs − ref_logprobs), detached. The last real token of a row "
        "stands at index n − 1, where n is the sum of the row's mask; compare with "
        "`torch.arange(T)`.",
        "Broadcasting does the rest:\n\n"
        "    penalty = -beta * (logprobs - ref_logprobs).detach()\n"
        "    positions = torch.arange(mask.shape[1], device=mask.device)\n"
        "    is_last = positions == ...\n"
        "    rewards = penalty + is_last * ...\n"
        "    return rewards.masked_fill(~mask.bool(), 0)",
    ),
)
