"""Episodes of several turns, played side by side."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.environments import rollout_env
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.specs import Spec
from rlcourse.exercises.environments.rollout_env_mistakes import MISTAKES, line_by_line

WORDS = ("ab", "cd", "abcd", "fgh", "eca", "gh", "bad", "efgh")


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, lengths: list[int], max_turns: int, cut=False, last_only=False) -> Case:
        words = [WORDS[draw.integer(0, len(WORDS) - 1)] for _ in lengths]
        rewards = []
        for length in lengths:
            drawn = draw.rewards(length).mul(8).round().div(8).tolist()
            rewards.append([0.0] * (length - 1) + [1.0] if last_only else drawn)
        script = {"words": words, "lengths": lengths, "rewards": rewards}
        return Case(
            label,
            {
                "speaker": Spec("scripted_speaker", {"seed": draw.integer(0, 9999), "cut": cut}),
                "environments": Spec("scripted_environments", script),
                "max_turns": max_turns,
            },
        )

    yield case("one episode of one turn", [1], 4, last_only=True)
    yield case("one episode of two turns", [2], 4, last_only=True)
    yield case("one episode of three turns", [3], 5)
    yield case("three episodes of equal length", [2, 2, 2], 4)
    yield case("the first is done first", [1, 3, 2], 5)
    yield case("the last is done first", [3, 2, 1], 5)
    yield case("the one in the middle is done first", [3, 1, 3], 5)
    yield case("as many turns as allowed", [3, 3], 3)
    yield case("cut off by max_turns", [4, 2, 5], 3)
    yield case("one turn allowed", [2, 1], 1)
    yield case("two turns allowed", [4, 3, 2], 2)
    yield case("turns without EOS", [3, 2, 4], 6, cut=True)
    lengths = [draw.integer(1, 4) for _ in range(draw.size(4, 6))]
    yield case("many episodes", lengths, draw.integer(3, 5), cut=True)


def by_flags(speaker, environments, max_turns):
    """With a flag for each episode in place of a list of those that run."""
    contexts, episodes = [], []
    for environment in environments:
        ids = speaker.prompt(environment.reset())
        contexts.append(list(ids))
        episodes.append([("environment", ids, [])])
    done, total = [False] * len(environments), [0.0] * len(environments)
    turn = 0
    while turn < max_turns and not all(done):
        rows = [n for n, over in enumerate(done) if not over]
        replies = speaker.write([contexts[n] for n in rows])
        for n, (ids, logprobs) in zip(rows, replies, strict=True):
            contexts[n] += ids
            episodes[n].append(("policy", ids, logprobs))
            words, reward, done[n] = environments[n].step(speaker.text(ids))
            total[n] += reward
            if not done[n]:
                seen = speaker.observation(words)
                contexts[n] += seen
                episodes[n].append(("environment", seen, []))
        turn += 1
    return episodes, torch.tensor(total)


def by_records(speaker, environments, max_turns):
    """With a record for each episode."""
    records = []
    for environment in environments:
        turns = [("environment", speaker.prompt(environment.reset()), [])]
        records.append({"environment": environment, "turns": turns, "reward": 0.0, "open": True})
    for _ in range(max_turns):
        active = [record for record in records if record["open"]]
        if not active:
            break
        replies = speaker.write(
            [[t for _, ids, _ in record["turns"] for t in ids] for record in active]
        )
        for record, reply in zip(active, replies, strict=True):
            record["turns"].append(("policy", *reply))
            answer = record["environment"].step(speaker.text(reply[0]))
            record["reward"] += answer[1]
            record["open"] = not answer[2]
            if record["open"]:
                record["turns"].append(("environment", speaker.observation(answer[0]), []))
    return [r["turns"] for r in records], torch.tensor([r["reward"] for r in records])


EXERCISE = Exercise(
    reference=rollout_env,
    lesson="14_environments",
    section="Turns",
    points=5,
    difficulty=4,
    minutes=18,
    cases=_cases,
    mistakes=MISTAKES,
    alternatives=(line_by_line, by_flags, by_records),
    hints=(
        "Play one episode on paper first: question, turn, observation, turn. What does the policy "
        "read before its second turn? Then let several run side by side, of which some end early.",
        "Keep `running`, the numbers of the episodes that are not done. In each round: contexts of "
        "these, one call of `write`, then for each its turn, its step, its reward and, if it is "
        "not done, what was observed.",
        '    episodes = [[("environment", speaker.prompt(e.reset()), [])] for e in environments]\n'
        "    rewards = torch.zeros(len(environments))\n"
        "    running = list(range(len(environments)))\n"
        "    for _ in range(max_turns):\n"
        "        if not running:\n"
        "            break\n"
        "        contexts = [[t for _, ids, _ in episodes[i] for t in ids] for i in running]\n"
        "        written = zip(running, speaker.write(contexts))\n"
        "        running = []\n"
        "        for i, (tokens, logprobs) in written:\n"
        "            ...\n"
        "    return episodes, rewards",
    ),
)
