"""Episodes of several turns, played side by side."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.environments import rollout_env
from rlcourse.checks.asking.episodes import ScriptedSpeaker
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, Spec

WORDS = ("ab", "cd", "abcd", "fgh", "eca", "gh", "bad", "efgh")


def cases(draw: CaseSampler) -> Iterator[Case]:
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


def line_by_line(speaker, environments, max_turns):
    episodes = [[("environment", speaker.prompt(e.reset()), [])] for e in environments]
    rewards = torch.zeros(len(environments))
    running = list(range(len(environments)))
    for _ in range(max_turns):
        if not running:
            break
        contexts = [[t for _, ids, _ in episodes[i] for t in ids] for i in running]
        turns = speaker.write(contexts)
        still = []
        for k, (i, (tokens, logprobs)) in enumerate(zip(running, turns)):  # noqa: B007, B905
            episodes[i].append(("policy", tokens, logprobs))
            words, reward, done = environments[i].step(speaker.text(tokens))
            rewards[i] += reward
            if done:
                continue
            heard = speaker.observation(words)
            episodes[i].append(("environment", heard, []))
            still.append(i)
        running = still
    return episodes, rewards


def again(ids):
    speaker = ScriptedSpeaker()
    eos = [token for token in ids[-1:] if not speaker.text([token])]
    return [*speaker.encode(speaker.text(ids)), *eos]


def turns_of(author, turns):
    return [turn for turn in turns if turn[0] == author]


def turns_in(episodes):
    return torch.tensor([len(turns_of("policy", turns)) for turns in episodes])


def one_at_a_time(speaker, environments, max_turns):
    found = [rollout_env(speaker, [e], max_turns) for e in environments]
    return [e for episodes, _ in found for e in episodes], torch.cat([r for _, r in found])


sketch = Sketch(line_by_line, again, turns_of, turns_in)
alternatives = (by_flags,)
