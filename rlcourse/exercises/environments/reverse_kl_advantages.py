"""What a teacher says of each token that the student wrote."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.environments import reverse_kl_advantages
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, student: Tensor, mask: Tensor, teacher=None, **given) -> Case:
        if teacher is None:
            teacher = draw.logprobs(*student.shape).to(student.dtype)
        names = {"student_logprobs": student, "teacher_logprobs": teacher, "mask": mask}
        return Case(label, names | given)

    half, most, rare = tensor([[0.5, 0.5, 0.9]]).log(), 0.8, 0.1
    worked = tensor([[most, rare, 0.9]]).log()
    yield case(
        "worked: one liked, one disliked, one agreed upon", half, torch.ones(1, 3) > 0, worked
    )
    yield case("worked: γ of 1", half, torch.ones(1, 3) > 0, worked, gamma=1.0)
    for label, logprobs, mask in draw.batches():
        yield case(label, logprobs, mask)
    mask = torch.tensor([[0, 1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 0, 0, 0]]) > 0
    for gamma in (0.0, 0.5, 0.8, 1.0):
        yield case(
            f"turns of an environment between, γ of {gamma:g}",
            draw.logprobs(2, 7),
            mask,
            gamma=gamma,
        )
    rows, tokens = draw.size(3, 4), draw.size(5, 6)
    for gamma in (0.3, 0.9, 1.0):
        mask = draw.mask(rows, tokens)
        yield case(f"γ of {gamma:g}", draw.logprobs(rows, tokens), mask, gamma=gamma)
    logprobs = draw.logprobs(rows, tokens)
    yield case("the student is the teacher", logprobs, mask, logprobs.clone())
    yield case("a teacher who likes nothing", logprobs, mask, logprobs - 8)
    mask = draw.mask(2, 5)
    padded = draw.logprobs(2, 5).masked_fill(~mask, -torch.inf)
    yield case("log-probs of −∞ on padding", padded, mask, padded.clone())


def line_by_line(student_logprobs, teacher_logprobs, mask, gamma=0.0):
    kept = mask.bool()
    gap = teacher_logprobs - student_logprobs
    gap = torch.where(kept, gap, 0).detach()
    columns, later = [], torch.zeros_like(gap[:, 0])
    for t in reversed(range(gap.shape[1])):
        later = gap[:, t] + gamma * later
        columns = [later, *columns]
    advantages = torch.stack(columns, 1)
    return torch.where(kept, advantages, 0)


def centered(a, kept):
    mean = a.sum() / kept.sum().clamp(min=1)
    return (a - mean) * kept


def whitened(a, kept):
    apart = centered(a, kept)
    return apart / (apart.square().sum() / kept.sum().clamp(min=1)).sqrt().clamp(min=1e-8)


def shifted(gap):
    return torch.cat([gap[:, 1:], torch.zeros_like(gap[:, :1])], 1)


def rest(gap):
    return gap.flip(1).cumsum(1).flip(1) - gap


_edit = Sketch(line_by_line, centered, whitened, shifted, rest).edit
_KEPT, _MASKED = "torch.where(kept, gap, 0)", "torch.where(kept, advantages, 0)"
_LATER = "gap[:, t] + gamma * later"
_gap = partial(_edit, "the gap: its parts", "teacher_logprobs - student_logprobs")


def by_matrix(student_logprobs, teacher_logprobs, mask, gamma=0.0):
    with torch.no_grad():
        gap = (teacher_logprobs - student_logprobs).masked_fill(~mask.bool(), 0)
        steps = torch.arange(gap.shape[1])
        apart = steps[:, None] - steps[None, :]
        weights = torch.where(
            apart >= 0, torch.tensor(gamma, dtype=gap.dtype) ** apart.clamp(min=0), 0
        )
        return (gap @ weights.to(gap)) * mask.bool()


def by_double_loop(student_logprobs, teacher_logprobs, mask, gamma=0.0):
    out = torch.zeros_like(student_logprobs).detach()
    for i, t in mask.bool().nonzero().tolist():
        for later in range(t, mask.shape[1]):
            if mask[i, later]:
                gap = teacher_logprobs[i, later] - student_logprobs[i, later]
                out[i, t] += gamma ** (later - t) * gap.detach()
    return out


EXERCISE = Exercise(
    reference=reverse_kl_advantages,
    lesson="14_environments",
    section="A word for every token",
    points=4,
    difficulty=3,
    minutes=10,
    constants=("student_logprobs", "teacher_logprobs"),
    cases=_cases,
    mistakes=(
        Mistake(
            "the student's log-prob minus the teacher's",
            _edit(
                "the gap: its sign",
                "teacher_logprobs - student_logprobs",
                "student_logprobs - teacher_logprobs",
            ),
            "An advantage says what is good: what the teacher likes better than the student does.",
        ),
        Mistake(
            "the teacher's log-prob alone",
            _gap("teacher_logprobs"),
            "Without the student's share the policy collapses onto the teacher's likeliest token: "
            "−log π_student is the entropy in the divergence.",
        ),
        Mistake(
            "a ratio of probabilities",
            _gap("(teacher_logprobs - student_logprobs).exp()"),
            "The divergence is a mean of *log*-ratios: where both agree the advantage is 0, not 1.",
        ),
        Mistake(
            "a difference of probabilities",
            _gap("teacher_logprobs.exp() - student_logprobs.exp()"),
            "The reverse KL compares log-probs: 0.01 against 0.1 is as far as 0.1 against 1.",
        ),
        Mistake(
            "a gap weighted with the teacher's probability: the forward KL's",
            _gap("teacher_logprobs.exp() * (teacher_logprobs - student_logprobs)"),
            "The student drew the token, so the draw has weighted it already.",
        ),
        Mistake(
            "a gap weighted with the student's probability",
            _gap("student_logprobs.exp() * (teacher_logprobs - student_logprobs)"),
            "A mean over samples of π needs no further π: the draw is the weight.",
        ),
        Mistake(
            "only what the teacher likes better",
            _edit(
                "the gap: its range",
                "teacher_logprobs - student_logprobs",
                "(teacher_logprobs - student_logprobs).clamp(min=0)",
            ),
            "Most of what a teacher has to say is what she would *not* have written.",
        ),
        Mistake(
            "the sign of the gap",
            _edit(
                "the gap: its range",
                "teacher_logprobs - student_logprobs",
                "(teacher_logprobs - student_logprobs).sign()",
            ),
            "How much they disagree is the information, and at 0 it says: leave this.",
        ),
        Mistake(
            "one number for the whole episode",
            _edit("the result: one a token", _MASKED, "gap.sum(1, keepdim=True) * kept"),
            "That is what an outcome reward gives; a teacher has a word for every token.",
        ),
        Mistake(
            "advantages centered over the batch",
            _edit(
                "the result: its center",
                "torch.where(kept, advantages, 0)",
                "centered(torch.where(kept, advantages, 0), kept)",
            ),
            "0 means something here, that both agree; with the mean taken off, agreement would be "
            "rewarded or punished.",
        ),
        Mistake(
            "advantages whitened over the batch",
            _edit("the result: its center", _MASKED, f"whitened({_MASKED}, kept)"),
            "0 means something here, that both agree, and the size says by how much they do not.",
        ),
        Mistake(
            "γ ignored",
            _edit("what follows: its discount", "gamma * later", "0.0 * later"),
            "With γ above 0 a token answers for what follows, too: `returns_to_go`.",
        ),
        Mistake(
            "γ of 1, whatever the argument says",
            _edit("what follows: its discount", "gamma * later", "1.0 * later"),
            "By default a token answers for itself: pass `gamma` on.",
        ),
        Mistake(
            "γ applied to the next token alone",
            _edit("what follows: how far", "torch.stack(columns, 1)", "gap + gamma * shifted(gap)"),
            "“And so on”: what the next token *has* holds what comes after it, with γ² and γ³.",
        ),
        Mistake(
            "γ once for everything that follows",
            _edit("what follows: how far", "torch.stack(columns, 1)", "gap + gamma * rest(gap)"),
            "A token s places later is multiplied by γ to the power of s.",
        ),
        Mistake(
            "a discount that passes over the environment's tokens",
            _edit(
                "what follows: its discount", _LATER, f"torch.where(kept[:, t], {_LATER}, later)"
            ),
            "Each place to the right costs a factor γ, whoever wrote there, as in `returns_to_go`.",
            telling=2,
        ),
        Mistake(
            "a sum that runs forward",
            _edit(
                "what follows: its direction",
                "reversed(range(gap.shape[1]))",
                "range(gap.shape[1])",
                "[later, *columns]",
                "[*columns, later]",
            ),
            "A token cannot change what was written before it: sum from its own place onward.",
        ),
        Mistake(
            "tokens that the environment wrote, and padding, counted",
            _edit(
                "the mask of the gaps",
                "torch.where(kept, gap, 0).detach()",
                "gap.detach()",
            ),
            "How well the student would have guessed the tool's answer is nobody's concern: mask "
            "the gaps before they are summed.",
        ),
        Mistake(
            "gaps that are masked, and sums that are not",
            _edit(
                "the mask of the result",
                "torch.where(kept, advantages, 0)",
                "advantages",
            ),
            "What follows a masked token still reaches it through γ: mask the result as well.",
        ),
        Mistake(
            "advantages that a gradient flows through",
            _edit(
                "the detach",
                "torch.where(kept, gap, 0).detach()",
                "torch.where(kept, gap, 0)",
            ),
            "An advantage is a number: the gradient comes through log π in the loss. `detach()`.",
        ),
        *(
            Mistake(
                f"NaN {where}",
                _edit("the mask of the gaps", *texts),
                "Padding may hold anything, and 0 · NaN is NaN: choose with `where` or "
                "`masked_fill`.",
                telling=1,
            )
            for where, *texts in (
                (
                    "on padding",
                    _MASKED,
                    f"{_MASKED} + 0 * (teacher_logprobs - student_logprobs).detach()",
                ),
                ("before padding", _KEPT, "(gap * mask)"),
                ("on padding and before it", _KEPT, "(gap * mask)", _MASKED, "advantages * mask"),
            )
        ),
    ),
    alternatives=(line_by_line, by_matrix, by_double_loop),
    hints=(
        "The reward of a token is how much likelier the teacher finds it than the student does. "
        "You wrote the function that sums rewards from a token onward.",
        "`returns_to_go(rewards, mask, gamma)` of lesson 01, with the gaps as rewards. With γ = 0 "
        "it leaves them as they are, and it masks. No gradient may flow.",
        "    gaps = (... - ...).detach()\n    return returns_to_go(gaps, mask, ...)",
    ),
)
