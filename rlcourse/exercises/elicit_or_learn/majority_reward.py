"""A reward that asks the group, not the truth."""

from collections import Counter
from collections.abc import Iterator

import torch

from rlcourse.algorithms.elicit_or_learn import majority_reward
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
    a, b, c, d = (str(draw.integer(*r)) for r in ((31, 59), (71, 99), (11, 29), (101, 140)))

    def case(label: str, answers: list, group_size: int) -> Case:
        return Case(label, {"answers": answers, "group_size": group_size})

    yield case("worked: 14, 18, 14, none", ["14", "18", "14", None], 4)
    yield case("two groups, two winners", [a, a, b, b, b, a], 3)
    yield case("three groups", [a, b, a, b, c, c, d, a, d], 3)
    yield case("more groups than completions", [a, a, b, c, c, c, d, d], 2)
    yield case("one group wins the whole batch", [a, a, a, a, b, c, b, d], 4)
    yield case("neighbors in other groups", [a, b, b, a, b, a, c, c], 4)
    yield case("nobody answers", [None, None, None, a, b, b], 3)
    yield case("None is the commonest", [None, None, None, a, a, None, b, None], 4)
    yield case("None comes first", [None, None, a, b, None, c, c, c], 4)
    yield case("a tie", [b, a, a, b, c, c, d, d], 4)
    yield case("a tie, the smaller first", [a, b, b, a], 4)
    yield case("all different", [b, a, c, d, a, b], 3)
    yield case("fewer than half agree", [a, c, b, c, d, "7", a, b, c, d, d, "5"], 6)
    yield case("all agree", [a, a, a, b, b, b], 3)
    yield case("groups of one", [a, None, b], 1)
    size = draw.size(5, 6)
    drawn = draw.integers(3 * size, high=4).tolist()
    answers = [None if v == 3 else str(10 + v) for v in drawn]
    yield case("a larger batch", answers, size)
    yield case("as many groups as completions", [a, b, b, c, c, a, d, a, d], 3)


def lonely(votes):
    return min(votes, key=votes.count)


def last_of_a_tie(votes):
    return max(reversed(votes), key=votes.count)


def smallest_of_a_tie(votes):
    return max(sorted(votes), key=votes.count)


def over_half(votes, size):
    best = max(votes, key=votes.count)
    return best if 2 * votes.count(best) > size else ""


def tied(votes):
    return {v for v in votes if votes.count(v) == max(map(votes.count, votes))}


def line_by_line(answers, group_size):
    starts = range(0, len(answers), group_size)
    groups = [answers[i : i + group_size] for i in starts]
    votes = [[a for a in group if a is not None] for group in groups]
    winners = [max(v, key=v.count) if v else "" for v in votes]
    rows = [[float(a == w) for a in g] for g, w in zip(groups, winners, strict=True)]
    rewards = [r for row in rows for r in row]
    return torch.tensor(rewards)


def by_index(answers, group_size):
    rewards = torch.zeros(len(answers))
    for i, answer in enumerate(answers):
        group = answers[i - i % group_size :][:group_size]
        counts = Counter(a for a in group if a is not None)
        if answer is not None:
            rewards[i] = float(answer == counts.most_common(1)[0][0])
    return rewards


def by_tensor(answers, group_size):
    """Pairwise agreement, summed; of equal sums the first column wins."""
    names = {a: i for i, a in enumerate(dict.fromkeys(answers)) if a is not None}
    ids = torch.tensor([names.get(a, -1) for a in answers]).reshape(-1, group_size)
    same = (ids[:, :, None] == ids[:, None, :]) & (ids >= 0)[:, :, None]
    first = same.sum(2).argmax(1, keepdim=True)
    return ((ids == ids.gather(1, first)) & (ids >= 0)).float().flatten()


_edit = Sketch(line_by_line, lonely, last_of_a_tie, smallest_of_a_tie, over_half, tied).edit
_WINNER = 'max(v, key=v.count) if v else ""'


EXERCISE = Exercise(
    reference=majority_reward,
    lesson="13_elicit_or_learn",
    section="Rewards that know nothing",
    points=3,
    difficulty=2,
    minutes=10,
    cases=_cases,
    mistakes=(
        Mistake(
            "the majority of the whole batch",
            _edit(
                "the group", "answers[i : i + group_size]", "answers[:]", "in starts]", "in [0]]"
            ),
            "Another question has another answer: the vote is within a group.",
        ),
        Mistake(
            "groups whose members are spread over the batch",
            _edit(
                "the group",
                "answers[i : i + group_size]",
                "answers[i // group_size :: len(starts)]",
            ),
            "A question's completions stand next to each other: `answers[i : i + group_size]`.",
        ),
        Mistake(
            "groups whose number is `group_size`",
            _edit(
                "the group",
                "answers[i : i + group_size]",
                "answers[i // group_size * (n := max(1, len(answers) // group_size)) :][:n]",
                "in starts]",
                "in range(0, group_size * -(-len(answers) // max(1, len(answers) // group_size)), "
                "group_size)]",
            ),
            "`group_size` is how many completions a question has, not how many questions there "
            "are.",
        ),
        Mistake(
            "a vote in which None counts",
            _edit("who votes", "[a for a in group if a is not None]", "list(group)"),
            "A completion without an answer abstains; were it to win, silence would be trained.",
        ),
        Mistake(
            "a vote that None can win, so that nobody earns anything",
            _edit(
                "who votes",
                "[a for a in group if a is not None]",
                "list(group)",
                "float(a == w)",
                "float(a == w and a is not None)",
            ),
            "A completion without an answer has no vote either: the commonest *answer* wins, "
            "however many give none.",
            telling=2,
        ),
        Mistake(
            "a reward for saying nothing where nobody says anything",
            _edit("where nobody votes", 'if v else ""', "if v else None"),
            "`majority_vote` gives None where nobody votes, and None == None: ask that there is "
            "an answer, too.",
            telling=1,
        ),
        Mistake(
            "a winner only where more than half of the group agrees",
            _edit("the winner", _WINNER, 'over_half(v, group_size) if v else ""'),
            "The commonest answer wins, however few agree.",
        ),
        Mistake(
            "a winner only where more than half of the votes agree",
            _edit("the winner", _WINNER, 'over_half(v, len(v)) if v else ""'),
            "The commonest answer wins, however few agree.",
        ),
        Mistake(
            "the last of the answers that are tied",
            _edit("the winner", "max(v, key=v.count)", "last_of_a_tie(v)"),
            "Of equally common answers the one given first wins, as in `majority_vote`.",
        ),
        Mistake(
            "the smallest of the answers that are tied",
            _edit("the winner", "max(v, key=v.count)", "smallest_of_a_tie(v)"),
            "Of equally common answers the one given first wins, as in `majority_vote`.",
            telling=1,
        ),
        Mistake(
            "a reward for each of the answers that are tied",
            _edit("the winner", _WINNER, "tied(v)", "float(a == w)", "float(a in w)"),
            "A group has one winner: of equally common answers the one given first.",
        ),
        Mistake(
            "the rarest answer",
            _edit("the winner", "max(v, key=v.count)", "lonely(v)"),
            "The answer that *most* completions give.",
        ),
        Mistake(
            "the first answer of the group",
            _edit("the winner", "max(v, key=v.count)", "v[0]"),
            "One voice is no vote: count equal answers.",
        ),
        Mistake(
            "the share of the group that agrees with a completion",
            _edit("the reward", "float(a == w)", "g.count(a) / len(g) * (a is not None)"),
            "1 for whoever says what the majority says, 0 for all others.",
        ),
        Mistake(
            "−1 for the others",
            _edit("the reward", "float(a == w)", "2.0 * (a == w) - 1"),
            "A reward of 0 and 1, like that for a right answer: only then are the two runs alike "
            "in all but the truth.",
        ),
        Mistake(
            "a reward for the minority",
            _edit("the reward", "float(a == w)", "float(a != w)"),
            "1 where the answer *is* the winner.",
        ),
        Mistake(
            "one reward a group",
            _edit("the shape", "[r for row in rows for r in row]", "[max(row) for row in rows]"),
            "One reward for each completion, (N,).",
        ),
        Mistake(
            "a reward for the first that agrees alone",
            _edit(
                "the reward",
                "[float(a == w) for a in g]",
                "[float(a == w and j == g.index(a)) for j, a in enumerate(g)]",
            ),
            "Whoever says what the majority says is rewarded, the second as well as the first.",
        ),
    ),
    alternatives=(line_by_line, by_index, by_tensor),
    hints=(
        "You have the vote from lesson 11. Who votes with whom, and who earns what?",
        "Walk over the starts of the groups, `range(0, len(answers), group_size)`; let each group "
        "vote; then give 1 to the members whose answer is the winner. None is never a winner.",
        "With the reference's steps:\n\n"
        "    rewards = []\n"
        "    for start in range(0, len(answers), group_size):\n"
        "        group = answers[start : ...]\n"
        "        winner = majority_vote(...)\n"
        "        rewards += [float(a is not None and ...) for a in group]\n"
        "    return torch.tensor(rewards)",
    ),
)
