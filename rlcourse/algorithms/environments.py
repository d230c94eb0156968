"""Lesson 14: episodes of several turns, and a teacher who scores the student's words.

A policy that may use a tool writes a turn, reads what its environment answers, and
writes the next. The episode is one sequence of tokens, and the policy chose only some
of them: these alone have a ratio, an advantage and a gradient. Where a better policy
can be asked, it scores the same tokens, and log π_teacher − log π_student is an
advantage for each of them: on-policy distillation, by the reverse KL divergence. The
better policy can be the student itself, with the answer in what it reads.

An episode is a list of turns (author, tokens, logprobs) in the order in which they
were written, all in plain Python: the author is "policy" or "environment", `tokens`
are ids, `logprobs` are the policy's, in nats, and empty where the environment wrote.
"""

import re

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import kl_divergence
from rlcourse.algorithms.policies import masked_mean, returns_to_go


def calculator(text: str) -> str:
    """What a calculator answers to a turn: "12 * 3" → "36".

    A call is two whole numbers of one to nine digits 0-9 with one of + - * / between
    them; spaces, and no other white space, may stand around each, not within. The
    answer to anything else is "?", and so it is where a division has no whole result.
    The text is a policy's and may be any: nothing raises, and nothing of it is ever run
    as code.
    """
    number = r"([0-9]{1,9})"
    call = re.fullmatch(rf" *{number} *([-+*/]) *{number} *", text)
    if call is None:
        return "?"
    a, operator, b = int(call[1]), call[2], int(call[3])
    if operator == "/":
        return str(a // b) if b != 0 and a % b == 0 else "?"
    return str({"+": a + b, "-": a - b, "*": a * b}[operator])


def rollout_env(speaker, environments: list, max_turns: int):
    """Play an episode in each of N environments: → (N episodes, rewards (N,) float).

    Each environment has `reset()` → its first words, and `step(text)` → (observation,
    reward, done) for one turn of the policy. The speaker is the policy with its
    tokenizer: `prompt(words)` and `observation(words)` → the ids to be read, at the
    beginning and later on; `write(contexts)` → for each list of ids, all that was read
    and written so far, the next turn, (tokens, logprobs); `text(tokens)` → its words.

    An episode is a list of turns, ("environment", ids, []) or ("policy", ids,
    logprobs). The policy writes at most `max_turns` of them, each time for all episodes
    at once that are not done. Ids are kept as they were drawn: text is never made into
    tokens again. An episode's reward is the sum of those of its steps. What is observed
    belongs to it unless it is done, also after the last turn that is allowed.
    """
    begun = [speaker.prompt(environment.reset()) for environment in environments]
    episodes: list = [[("environment", ids, [])] for ids in begun]
    rewards = torch.zeros(len(environments))
    running = list(range(len(environments)))
    for _ in range(max_turns):
        if not running:
            break
        contexts = [[t for _, ids, _ in episodes[i] for t in ids] for i in running]
        written = zip(running, speaker.write(contexts), strict=True)
        running = []
        for i, (tokens, logprobs) in written:
            episodes[i].append(("policy", tokens, logprobs))
            observation, reward, done = environments[i].step(speaker.text(tokens))
            rewards[i] += reward
            if not done:
                ids = speaker.observation(observation)
                episodes[i].append(("environment", ids, []))
                running.append(i)
    return episodes, rewards


def action_mask(episodes: list) -> Tensor:
    """Which tokens the policy wrote: N episodes → (N, T) bool, T of the longest one.

    True on the tokens of the policy's turns, the EOS that ends a turn included; False
    on all that the environment wrote, the question first of all, and on the padding
    to the right.
    """
    wrote = [
        [author == "policy" for author, tokens, _ in turns for _ in tokens]
        for turns in episodes
    ]
    mask = torch.zeros(len(wrote), max(map(len, wrote), default=0), dtype=torch.bool)
    for row, flags in zip(mask, wrote, strict=True):
        row[: len(flags)] = torch.tensor(flags, dtype=torch.bool)
    return mask


def broken_prefix(renderings: list[list[int]]) -> int | None:
    """The first rendering that does not begin with the one before it; None if all do.

    `renderings[k]` are the token ids of one conversation after k + 1 messages, as a
    chat template writes them. A template keeps prefixes if each rendering begins with
    all of the one before it, unchanged. Returned is the index of the first that does
    not: of the message whose arrival changed what stood there already, or cut it short.
    """
    for k in range(1, len(renderings)):
        before = renderings[k - 1]
        if renderings[k][: len(before)] != before:
            return k
    return None


def reverse_kl_advantages(
    student_logprobs: Tensor, teacher_logprobs: Tensor, mask: Tensor, gamma: float = 0.0
) -> Tensor:
    """How much better the teacher likes each token: (N, T) three times → (N, T).

    log π_teacher − log π_student of the token, plus γ times what the next one has, and
    so on to the end of the row. Where the mask is 0, whatever stands there, a token
    adds nothing and gets 0, but is a step of γ like any other. With γ = 0 a token
    answers for itself; γ = 1 gives the policy gradient of −KL(student‖teacher) between
    whole episodes. A constant, through which no gradient flows.
    Source: Agarwal et al. 2024, "On-Policy Distillation of Language Models", with the
    reverse KL; Lu 2025, "On-Policy Distillation", for γ = 0.
    """
    gaps = (teacher_logprobs - student_logprobs).detach()
    return returns_to_go(gaps, mask, gamma)


def reverse_kl_loss(logits: Tensor, teacher_logits: Tensor, mask: Tensor) -> Tensor:
    """KL(student‖teacher) of the next word, in nats: mean over the mask's tokens.

    (N, T, V), (N, T, V), (N, T) → scalar, 0 where the mask is empty. The divergence at
    each place is the exact one over the whole vocabulary; which token was drawn there
    plays no part. A word to which the student gives probability 0 adds 0. What stands
    where the mask is 0 adds nothing. Gradient flows through `logits` alone; on average
    over what the student writes, it is that of `reverse_kl_advantages` with γ = 0.
    Source: Agarwal et al. 2024, "On-Policy Distillation of Language Models".
    """
    return masked_mean(kl_divergence(logits, teacher_logits.detach()), mask)


def top_k_kl_loss(
    logits: Tensor, teacher_logits: Tensor, mask: Tensor, k: int
) -> Tensor:
    """`reverse_kl_loss` of the teacher's k likeliest words, and of all others as one.

    (N, T, V), (N, T, V), (N, T), 1 ≤ k < V → scalar, nats. At each place the k words
    to which the teacher gives most keep their probabilities, and the others count as
    one more word, which has the sum of theirs: so both models have a distribution over
    k + 1 words. Their divergence is at most that of the whole vocabulary. The mean is
    over the mask's tokens. Gradient flows through `logits` alone.
    """
    top = teacher_logits.topk(k).indices

    def grouped(scores: Tensor) -> Tensor:
        others = scores.scatter(-1, top, -torch.inf).logsumexp(-1, keepdim=True)
        return torch.cat([scores.gather(-1, top), others], -1)

    return reverse_kl_loss(grouped(logits), grouped(teacher_logits), mask)


def realigned(values: Tensor, mask: Tensor, target: Tensor) -> Tensor:
    """The values of the tokens that a policy wrote, where these stand in another batch.

    (N, S), (N, S), (N, T) → (N, T). Both batches hold the same N episodes, read after
    different questions, so that the policy's tokens stand in other columns. `mask` has
    a 1 where they are in `values`, `target` where they are to be: row by row, the first
    of one is the first of the other, and so on. All else is 0. Gradient flows through
    `values`. Raises ValueError where a row has not as many of them in the one as in the
    other.
    """
    if not torch.equal(mask.bool().sum(1), target.bool().sum(1)):
        raise ValueError("each row must have as many tokens in both masks")
    moved = values.new_zeros(target.shape)
    moved[target.bool()] = values[mask.bool()]
    return moved
