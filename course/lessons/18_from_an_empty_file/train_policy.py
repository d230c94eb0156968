from functools import cache

from rlcourse.checks.judging.contest import Contest, World
from rlcourse.policy.undecided import undecided
from rlcourse.tasks import extract_answer
from rlcourse.tasks.dialects import Dialect, dialect, known_beforehand

PUBLIC = 2  # the dialect of variant 0, which everybody may study
MOST_KNOWN = 0.5  # a variant on which more can be had without training is passed over


@cache
def world(variant):
    """The dialect of a variant: the first, from its number on, that cannot be known beforehand."""
    studied = [Dialect.of(PUBLIC)] if variant else []
    for seed in range(1_000 * variant, 1_000 * variant + 1_000):
        task = dialect(seed, train_size=1_000)
        if known_beforehand(task.evaluation, *studied) <= MOST_KNOWN:
            break
    told = [{p.question: p.answer for p in part} for part in (task.train, task.evaluation)]
    return World(*told, floor=MOST_KNOWN)


def right(completion, answer):
    return extract_answer(completion) == extract_answer(answer)


contest = Contest(
    world=world,
    right=right,
    policy=undecided,
    completions=6_144,
    seconds=90,
    levels=((0.60, 0.7), (0.65, 1.0)),
)
cases, alternatives = contest.cases, ()


# Trainers with one thing wrong; a twelfth of the budget shows it.


def short(policy, questions, weigh, steps):
    for step in range(steps):
        answers = policy.answer(questions[64 * step : 64 * step + 64])
        (-(weigh(answers.rewards) * policy.logprobs(answers).sum(dim=1)).mean()).backward()
        policy.step(3e-4)


def turned(policy, questions, completions, seed):
    short(policy, questions, lambda rewards: -rewards, min(8, completions // 64))


def unchanged(policy, questions, completions, seed):
    answers = policy.answer(questions[:64])
    (-(answers.rewards * policy.logprobs(answers).sum(dim=1)).mean()).backward()


def greedy_spender(policy, questions, completions, seed):
    for _ in range(completions // 256 + 1):
        policy.answer(questions[:1], 256)


def broken(policy, questions, completions, seed):
    short(policy, questions, lambda rewards: rewards / 0.0, 1)
