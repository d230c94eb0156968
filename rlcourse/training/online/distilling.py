"""A teacher's word for every token that the student wrote, and the advantages made of it.

Source: Agarwal et al. 2024, "On-Policy Distillation of Language Models"; lesson 14.
"""

from dataclasses import replace

from rlcourse.algorithms import masked_mean
from rlcourse.errors import UserError
from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.functions.calling import call_for_tensor
from rlcourse.training.measuring.metrics import Metrics
from rlcourse.training.recipes.methods import Method
from rlcourse.training.recipes.settings import Recipe


def taught(rollouts: Rollouts, recipe: Recipe, method: Method) -> tuple[Rollouts, Metrics]:
    """The rollouts with the advantages that the teacher's log-probs give them.

    ``kl_teacher`` is the mean of log π_student − log π_teacher (nats per token) over what the
    student sampled: an estimate of the divergence that distillation lowers.
    """
    student, teacher, mask = rollouts.old_logprobs, rollouts.teacher_logprobs, rollouts.mask
    assert teacher is not None and method.advantages is not None
    advantages = call_for_tensor(
        method.advantages,
        tuple(mask.shape),
        student_logprobs=student,
        teacher_logprobs=teacher,
        mask=mask,
    ).detach()
    return replace(rollouts, advantages=advantages), {
        "kl_teacher": masked_mean(student - teacher, mask)
    }


def require_same_words(student, teacher) -> None:
    """Raise ``UserError`` where the two do not mean the same by a token's number."""
    ours, theirs = student.tokenizer.get_vocab(), teacher.tokenizer.get_vocab()
    if ours != theirs:
        raise UserError(
            "the teacher has another tokenizer than the policy, so it cannot score its tokens: "
            "choose a teacher of the same family"
        )
