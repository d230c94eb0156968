"""Episodes of several turns, played side by side."""

from collections.abc import Callable, Iterator

import torch

from rlcourse.algorithms.environments import rollout_env
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.episodes import ScriptedSpeaker
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.specs import Spec

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


def _context(turns):
    return [token for _, ids, _ in turns for token in ids]


def _variant(
    begin: Callable = lambda s, e: ("environment", s.prompt(e.reset()), []),
    context: Callable = _context,
    written: Callable = lambda s, tokens, logprobs: ("policy", tokens, logprobs),
    heard: Callable = lambda s, tokens, words: ("environment", s.observation(words), []),
    told: Callable = lambda s, tokens: s.text(tokens),
    add: Callable = lambda total, reward: total + reward,
    keeps_last: bool = False,
    budget: Callable = lambda n: n,
    place: Callable = lambda k, i: i,
    goes_on: Callable = lambda done: not done,
):
    """`rollout_env` with one of its parts replaced."""

    def play(speaker, environments, max_turns):
        episodes = [[begin(speaker, e)] for e in environments]
        rewards, running = [0.0] * len(environments), list(range(len(environments)))
        for _ in range(budget(max_turns)):
            if not running:
                break
            turns = speaker.write([context(episodes[i]) for i in running])
            still = []
            for k, (i, (tokens, logprobs)) in enumerate(zip(running, turns, strict=True)):
                episodes[i].append(written(speaker, tokens, logprobs))
                environment = environments[place(k, i)]
                observation, reward, done = environment.step(told(speaker, tokens))
                rewards[i] = add(rewards[i], reward)
                turn = heard(speaker, tokens, observation) if not done or keeps_last else None
                if turn is not None:
                    episodes[i].append(turn)
                if goes_on(done):
                    still.append(i)
            running = still
        return episodes, torch.tensor(rewards)

    return play


def _tokenized_again(speaker, tokens, logprobs):
    return "policy", _again(tokens), logprobs


def _again(ids):
    speaker = ScriptedSpeaker()
    eos = [token for token in ids[-1:] if not speaker.text([token])]
    return [*speaker.encode(speaker.text(ids)), *eos]


def _one_at_a_time(speaker, environments, max_turns):
    found = [rollout_env(speaker, [e], max_turns) for e in environments]
    return [e for episodes, _ in found for e in episodes], torch.cat([r for _, r in found])


def _mean_reward(speaker, environments, max_turns):
    episodes, rewards = rollout_env(speaker, environments, max_turns)
    turns = torch.tensor([sum(a == "policy" for a, _, _ in e) for e in episodes])
    return episodes, rewards / turns


def _reset_each_time(speaker, environments, max_turns):
    class Forgetful:
        def __init__(self, environment):
            self.environment = environment
            self.reset = environment.reset

        def step(self, text):
            self.environment.reset()
            return self.environment.step(text)

    return rollout_env(speaker, [Forgetful(e) for e in environments], max_turns)


def _asked_when_all_are_done(speaker, environments, max_turns):
    episodes, rewards = rollout_env(speaker, environments, max_turns)
    if len(speaker.contexts) < max_turns:
        speaker.write([])
    return episodes, rewards


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
        replies = speaker.write([_context(record["turns"]) for record in active])
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
    mistakes=(
        Mistake(
            "turns that were made into text and tokenized again",
            _variant(written=_tokenized_again),
            "The same words can be other tokens: then the log-probs belong to tokens that nobody "
            "drew. Keep the ids that `write` returned.",
        ),
        Mistake(
            "contexts made of text that is tokenized again",
            _variant(
                context=lambda turns: [
                    token
                    for author, ids, logprobs in turns
                    for token in (_again(ids) if author == "policy" else ids)
                ]
            ),
            "What the policy reads must be the ids that it wrote, or it continues a text that is "
            "not the one that is scored.",
        ),
        Mistake(
            "episodes that go on after their end",
            _variant(goes_on=lambda done: True),
            "`done` says that the episode is over: it leaves the list of those that run.",
        ),
        Mistake(
            "episodes that end after one turn",
            _variant(goes_on=lambda done: False),
            "Until `done`, or `max_turns`, the policy writes another turn.",
        ),
        Mistake(
            "contexts without what the environment said",
            _variant(
                context=lambda turns: [
                    token
                    for k, (a, ids, _) in enumerate(turns)
                    if a == "policy" or k == 0
                    for token in ids
                ]
            ),
            "The policy has to read the answer to its call.",
        ),
        Mistake(
            "contexts without the policy's own earlier turns",
            _variant(
                context=lambda turns: [t for a, ids, _ in turns if a != "policy" for t in ids]
            ),
            "The policy has to see what it asked, not only what was answered.",
        ),
        Mistake(
            "contexts without the question",
            _variant(context=lambda turns: _context(turns[1:] or turns)),
            "The model keeps nothing from turn to turn: each context is the whole episode so far.",
        ),
        Mistake(
            "contexts of the last turn alone",
            _variant(context=lambda turns: list(turns[-1][1])),
            "The model keeps nothing from turn to turn: each context is the whole episode so far.",
        ),
        Mistake(
            "observations that are not written down",
            _variant(heard=lambda s, tokens, words: None),
            "What the environment said is part of the episode: a turn of its own.",
        ),
        Mistake(
            "observations as bare words, without the template around them",
            _variant(heard=lambda s, tokens, words: ("environment", s.encode(words), [])),
            "`speaker.observation` puts around the words what the model expects around a message.",
        ),
        Mistake(
            "observations under the policy's name",
            _variant(heard=lambda s, tokens, words: ("policy", s.observation(words), [])),
            "The environment wrote them: whoever reads the episode must see that.",
        ),
        Mistake(
            "the policy's turns under the environment's name",
            _variant(written=lambda s, tokens, logprobs: ("environment", tokens, logprobs)),
            'What `speaker.write` returns is the policy\'s: "policy".',
        ),
        Mistake(
            "zeros for the log-probs of what the environment wrote",
            _variant(
                heard=lambda s, tokens, words: (
                    "environment",
                    s.observation(words),
                    [0.0] * len(s.observation(words)),
                )
            ),
            "Nobody drew these tokens, so they have no log-probs: an empty list.",
        ),
        Mistake(
            "turns without their log-probs",
            _variant(written=lambda s, tokens, logprobs: ("policy", tokens, [])),
            "The log-probs at which tokens were drawn are known now and never again: keep them.",
        ),
        Mistake(
            "turns without their last token",
            _variant(written=lambda s, tokens, logprobs: ("policy", tokens[:-1], logprobs[:-1])),
            "To end a turn is a decision, too: the EOS stays.",
        ),
        Mistake(
            "what was observed at the end, kept",
            _variant(keeps_last=True),
            "After the end nobody reads it: it would only be padding to a later loss.",
        ),
        Mistake(
            "the last reward alone",
            _variant(add=lambda total, reward: reward),
            "Every step may have its reward: add them up.",
        ),
        Mistake(
            "the first reward alone",
            _variant(add=lambda total, reward: total or reward),
            "Every step may have its reward: add them up.",
        ),
        Mistake(
            "the mean of the rewards",
            _mean_reward,
            "An episode's reward is the sum: a longer one is not worth less for its length.",
        ),
        Mistake(
            "the environments counted from the running ones",
            _variant(place=lambda k, i: k),
            "When an episode is done the others move up in the list that `write` sees: keep each "
            "one's own number.",
        ),
        Mistake(
            "one turn too many",
            _variant(budget=lambda n: n + 1),
            "`max_turns` turns of the policy, no more.",
        ),
        Mistake(
            "one turn too few",
            _variant(budget=lambda n: n - 1),
            "`max_turns` turns of the policy may be written.",
        ),
        Mistake(
            "no limit on turns",
            _variant(budget=lambda n: 50),
            "A policy may never come to an end: stop after `max_turns`.",
        ),
        Mistake(
            "one episode after the other",
            _one_at_a_time,
            "`write` takes all contexts at once, and a model writes 64 turns in little more time "
            "than one.",
        ),
        Mistake(
            "environments that are reset before every turn",
            _reset_each_time,
            "`reset` begins an episode: once, before the first turn.",
        ),
        Mistake(
            "a speaker that is asked when all are done",
            _asked_when_all_are_done,
            "Stop when no episode runs: `write` of nothing is an error of most models.",
        ),
    ),
    alternatives=(by_flags, by_records),
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
