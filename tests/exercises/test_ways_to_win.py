"""Ways to win the contest of lesson 18 without learning from rewards, and what each of them gets.

The lesson has their accuracies, as these tests print them. Whoever finds another way adds it here.
Before the judge held the policy, a program that read the rule off 1,280 rewards of the policy's own
answers, wrote all solutions and let the policy imitate them reached 0.87.
"""

import itertools
import random
import re
from collections import defaultdict
from dataclasses import replace
from functools import cache

import pytest
import torch

from rlcourse import exercises
from rlcourse.algorithms.whole_trainer import train_policy
from rlcourse.checks.asking.calling import describe
from rlcourse.checks.judging.contest import credit
from rlcourse.checks.judging.trial import Trial
from rlcourse.tasks.dialects import LEVEL, TOLD, Dialect
from rlcourse.tasks.templates import TEMPLATES
from rlcourse.tasks.word_problems import worked

pytestmark = pytest.mark.weekly
EXERCISE = exercises.get("train_policy")
BUDGET = 1_536


@cache
def patterns():
    """(kind of story, a pattern that reads its numbers off a question)"""

    def place(found):
        name = found.group(1)
        return f"(?P<{name}>\\d+)" if name in "abcd" else r"\w+"

    texts = [(kind.name, re.escape(text)) for kind in TEMPLATES for text in kind.texts]
    return [(name, re.compile(re.sub(r"\\\{(\w+)\\\}", place, text))) for name, text in texts]


@cache
def read(question):
    name, found = next((n, m) for n, p in patterns() if (m := p.fullmatch(question)))
    return name, tuple(int(found[k]) for k in "abcd" if k in found.groupdict())


def last(text):
    return (text or "").rpartition(" ")[2]


def solution(question, way):
    """What a program writes, which knows what the steps of each kind of story mean."""
    kind, numbers = read(question)
    return worked(way(kind), numbers, LEVEL.limit) or ""


class Rule:
    """What the rewards of the policy's answers say of each kind of story."""

    def __init__(self):
        self.seen = defaultdict(lambda: [0, 0])

    @staticmethod
    def ways(kind):
        signs = [sorted({"+", sign}) for _, sign, _ in TOLD[kind]]
        for chosen in itertools.product(*signs):
            yield tuple((a, s, b) for (a, _, b), s in zip(TOLD[kind], chosen, strict=True))

    def learn(self, asked, answers):
        for question, text, r in zip(asked, answers.texts, answers.rewards.tolist(), strict=True):
            kind = read(question)[0]
            for way in self.ways(kind):
                if last(solution(question, lambda _, way=way: way)) == last(text):
                    self.seen[kind, way][int(r)] += 1

    def best(self, kind):
        def share(way):
            wrong, right = self.seen[kind, way]
            return (right + 0.5) / (wrong + right + 1)

        return max(self.ways(kind), key=share)


def trainer(weigh, group_size=1, lr=3e-4, max_norm=1.0):
    """REINFORCE with weights of its own: (asked, answers) → (N,) or (N, T)."""

    def train(policy, questions, completions, seed):
        rng = random.Random(seed)
        for step in range(completions // 64):
            asked = rng.sample(questions, 64 // group_size)
            answers = policy.answer(asked, group_size)
            weights = weigh([q for q in asked for _ in range(group_size)], answers)
            logprobs = policy.logprobs(answers)
            per_text = logprobs if weights.dim() == 2 else logprobs.sum(1)
            (-(weights * per_text).sum() / 64).backward()
            policy.step(lr * min(1.0, (step + 1) / 6), max_norm)

    return train


def agreeing(way):
    def weigh(asked, answers):
        both = zip(asked, answers.texts, strict=True)
        return torch.tensor([float(last(solution(q, way)) == last(text)) for q, text in both])

    return weigh


def majority(asked, answers):
    ends = [last(text) for text in answers.texts]
    groups = [ends[i : i + 8] for i in range(0, len(ends), 8)]
    return torch.tensor([float(e == max(g, key=g.count)) for g in groups for e in g])


def forged(policy, questions, completions, seed):
    """Puts its own solutions, with reward 1, where the policy's answers were."""

    def weigh(asked, answers):
        own = [solution(question, TOLD.get) for question in asked]
        answers.texts[:] = own
        answers.tokens[:] = answers.tokens.flip(0)
        answers.rewards[:] = 1
        return replace(answers, texts=own).rewards

    trainer(weigh)(policy, questions, completions, seed)


def one_question(policy, questions, completions, seed):
    train_policy(policy, questions[:1], completions, seed)


def reader(by_token):
    """Reads the rule off the rewards so far; later a program of its own judges what is written."""

    def train(policy, questions, completions, seed):
        rule = Rule()

        def weigh(asked, answers):
            rule.learn(asked, answers)
            if sum(map(sum, rule.seen.values())) < BUDGET / 3:
                return answers.rewards
            if not by_token:
                return agreeing(rule.best)(asked, answers)
            own = [solution(question, rule.best) for question in asked]
            return torch.stack(list(map(credit_of_tokens, own, answers.texts, answers.mask)))

        trainer(weigh)(policy, questions, completions, seed)

    return train


def credit_of_tokens(own, text, mask):
    """1 for all that agrees with the own solution, and less than 0 for the first difference."""
    length = int(mask.sum())
    same = next((i for i, (a, b) in enumerate(zip(own, text, strict=False)) if a != b), len(text))
    first = min(length - 1, round(same / max(1, len(text)) * (length - 1)))
    weights = torch.zeros(len(mask))
    weights[: length if own == text else first] = 1.0
    if own != text:
        weights[first] = -0.3
    return weights


WORTHLESS = {
    "gives every answer the reward 1": trainer(lambda asked, answers: torch.ones(64)),
    "rewards what the story says": trainer(agreeing(TOLD.get)),
    "rewards what is right in the public dialect": trainer(agreeing(Dialect.of(2).meant.get)),
    "rewards the majority of eight answers": trainer(majority, 8),
    "rewards what the policy is sure of": trainer(
        lambda asked, answers: answers.old_logprobs.sum(1).exp()
    ),
    "rewards the right format": trainer(
        lambda asked, answers: torch.tensor([float("#### " in t) for t in answers.texts])
    ),
    "rewards short answers": trainer(lambda asked, answers: 1 / answers.mask.sum(1)),
    "writes its own answers into the copy": forged,
    "learns one question by heart": one_question,
    "takes steps as long as it may": trainer(
        lambda asked, answers: answers.rewards, lr=0.1, max_norm=1e9
    ),
}


@cache
def measured(train, completions=BUDGET):
    trial = Trial(EXERCISE, 1)
    train.__name__ = "train_policy"
    outcome, holder = trial.run(train, completions)
    return trial.judge(describe(train), outcome, holder).measured


@pytest.mark.parametrize("way", WORTHLESS)
def test_what_learns_nothing_from_rewards_earns_nothing(way):
    found = measured(WORTHLESS[way])
    print(f"{way}: {found.accuracy:.3f}")
    assert found.fault or credit(EXERCISE.contest, found) == 0


@pytest.mark.parametrize("by_token", [False, True])
def test_reading_the_rule_is_worth_no_more_than_the_rewards(by_token):
    """It knows arithmetic, every kind of story, and all that the rewards have shown."""
    program, plain = measured(reader(by_token)), measured(train_policy)
    print(f"a program's verdicts: {program.accuracy:.3f}, plain rewards: {plain.accuracy:.3f}")
    assert program.interval[0] < plain.interval[1]
