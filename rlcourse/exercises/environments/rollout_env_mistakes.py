"""Ways to play episodes wrong: what is read, what is kept, who is done, how often who is asked."""

import torch

from rlcourse.algorithms.environments import rollout_env
from rlcourse.checks.episodes import ScriptedSpeaker
from rlcourse.checks.exercise import Mistake
from rlcourse.checks.sketch import Sketch


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


_sketch = Sketch(line_by_line, again, turns_of, turns_in)


def _edit(*texts):
    """A plain function: environments remember, so that no line can be run once for two edits."""
    return _sketch.edit("one place", *texts).function


_READ = "for _, ids, _ in episodes[i] for t in ids"
_OVER = "continue"
_HEARD = '("environment", heard, [])'
_NOTED = f"episodes[i].append({_HEARD})"


def _written(kept):
    return _edit('"policy", tokens, logprobs', f'"policy", {kept}')


MISTAKES = (
    Mistake(
        "turns that were made into text and tokenized again",
        _written("again(tokens), logprobs"),
        "The same words can be other tokens: then the log-probs belong to tokens that nobody "
        "drew. Keep the ids that `write` returned.",
    ),
    Mistake(
        "contexts made of text that is tokenized again",
        _edit(
            _READ,
            "for a, ids, _ in episodes[i] for t in (again(ids) if a == 'policy' else ids)",
        ),
        "What the policy reads must be the ids that it wrote, or it continues a text that is "
        "not the one that is scored.",
    ),
    Mistake(
        "episodes that go on after their end",
        _edit(_OVER, f"still.append(i)\n                {_OVER}"),
        "`done` says that the episode is over: it leaves the list of those that run.",
    ),
    Mistake(
        "episodes that end after one turn",
        _edit("still.append(i)", "pass"),
        "Until `done`, or `max_turns`, the policy writes another turn.",
    ),
    Mistake(
        "contexts without what the environment said",
        _edit(
            _READ,
            "for a, ids, _ in [episodes[i][0], *turns_of('policy', episodes[i])] for t in ids",
        ),
        "The policy has to read the answer to its call.",
    ),
    Mistake(
        "contexts without the policy's own earlier turns",
        _edit(
            _READ,
            "for _, ids, _ in turns_of('environment', episodes[i]) for t in ids",
        ),
        "The policy has to see what it asked, not only what was answered.",
    ),
    Mistake(
        "contexts without the question",
        _edit(
            _READ,
            "for _, ids, _ in (episodes[i][1:] or episodes[i]) for t in ids",
        ),
        "The model keeps nothing from turn to turn: each context is the whole episode so far.",
    ),
    Mistake(
        "contexts of the last turn alone",
        _edit(_READ, "for t in episodes[i][-1][1]"),
        "The model keeps nothing from turn to turn: each context is the whole episode so far.",
    ),
    Mistake(
        "observations that are not written down",
        _edit(_NOTED, "pass"),
        "What the environment said is part of the episode: a turn of its own.",
    ),
    Mistake(
        "observations as bare words, without the template around them",
        _edit("speaker.observation", "speaker.encode"),
        "`speaker.observation` puts around the words what the model expects around a message.",
    ),
    Mistake(
        "observations set as a new question",
        _edit("speaker.observation", "speaker.prompt"),
        "What stands around a later message is not what stands around the first: "
        "`speaker.observation`.",
    ),
    Mistake(
        "observations under the policy's name",
        _edit('"environment", heard', '"policy", heard'),
        "The environment wrote them: whoever reads the episode must see that.",
    ),
    Mistake(
        "the policy's turns under the environment's name",
        _edit('"policy"', '"environment"'),
        'What `speaker.write` returns is the policy\'s: "policy".',
    ),
    Mistake(
        "zeros for the log-probs of what the environment wrote",
        _edit("heard, []", "heard, [0.0] * len(heard)"),
        "Nobody drew these tokens, so they have no log-probs: an empty list.",
    ),
    Mistake(
        "turns without their log-probs",
        _written("tokens, []"),
        "The log-probs at which tokens were drawn are known now and never again: keep them.",
    ),
    Mistake(
        "turns without their last token",
        _written("tokens[:-1], logprobs[:-1]"),
        "To end a turn is a decision, too: the EOS stays.",
    ),
    Mistake(
        "what was observed at the end, kept",
        _edit(
            _OVER,
            "pass",
            "still.append(i)",
            "still += [] if done else [i]",
        ),
        "After the end nobody reads it: it would only be padding to a later loss.",
    ),
    Mistake(
        "what was observed after the last turn allowed, left out",
        _edit(
            "for _ in range(",
            "for turn in range(",
            _NOTED,
            f"episodes[i] += [] if turn == max_turns - 1 else [{_HEARD}]",
        ),
        "An episode that is cut off is not done: what was observed belongs to it, as the "
        "state in which it was left.",
    ),
    Mistake(
        "a question that grows, since its list is the context, too",
        _edit(
            f"[t {_READ}]",
            "episodes[i][0][1]",
            "words, reward",
            "episodes[i][0][1].extend(tokens)\n            words, reward",
            _NOTED,
            f"{_NOTED}\n            episodes[i][0][1].extend(heard)",
        ),
        "`+=` and `extend` change the list that the episode's first turn holds as well: build "
        "each context anew.",
    ),
    Mistake(
        "the last reward alone",
        _edit("+= reward", "= reward"),
        "Every step may have its reward: add them up.",
    ),
    Mistake(
        "the first reward alone",
        _edit("+= reward", "= rewards[i] or reward"),
        "Every step may have its reward: add them up.",
    ),
    Mistake(
        "rewards without that of the step that ends the episode",
        _edit("+= reward", "+= 0 if done else reward"),
        "The last step has its reward, too, and often it is the only one: add it before you "
        "leave the episode.",
    ),
    Mistake(
        "the mean of the rewards",
        _edit(
            "return episodes, rewards",
            "return episodes, rewards / turns_in(episodes)",
        ),
        "An episode's reward is the sum: a longer one is not worth less for its length.",
    ),
    Mistake(
        "the environments counted from the running ones",
        _edit("environments[i].step", "environments[k].step"),
        "When an episode is done the others move up in the list that `write` sees: keep each "
        "one's own number.",
    ),
    Mistake(
        "a list of running episodes that is changed while it is walked",
        _edit(
            "still = []",
            "still = running",
            _OVER,
            f"running.remove(i)\n                {_OVER}",
            "still.append(i)",
            "pass",
        ),
        "After a removal the loop skips the next one and pairs the rest with turns of others: "
        "collect those that go on in a new list.",
    ),
    Mistake(
        "an end for all as soon as one is done",
        _edit("running = still", "running = still if len(still) == len(running) else []"),
        "The others play on: `done` is said of one episode.",
    ),
    Mistake(
        "ids told to the environment in place of words",
        _edit("speaker.text(tokens)", "tokens"),
        "An environment reads text: `speaker.text(tokens)`.",
    ),
    Mistake(
        "one turn too many",
        _edit("range(max_turns)", "range(max_turns + 1)"),
        "`max_turns` turns of the policy, no more.",
    ),
    Mistake(
        "one turn too few",
        _edit("range(max_turns)", "range(max_turns - 1)"),
        "`max_turns` turns of the policy may be written.",
    ),
    Mistake(
        "no limit on turns",
        _edit("range(max_turns)", "range(50)"),
        "A policy may never come to an end: stop after `max_turns`.",
    ),
    Mistake(
        "one episode after the other",
        one_at_a_time,
        "`write` takes all contexts at once, and a model writes 64 turns in little more time "
        "than one.",
    ),
    Mistake(
        "a call of `write` for each episode",
        _edit("speaker.write(contexts)", "[speaker.write([c])[0] for c in contexts]"),
        "`write` takes all contexts at once, and a model writes 64 turns in little more time "
        "than one.",
    ),
    Mistake(
        "environments that are reset before every turn",
        _edit("words, reward", "environments[i].reset()\n            words, reward"),
        "`reset` begins an episode: once, before the first turn.",
    ),
    Mistake(
        "a speaker that is asked when all are done",
        _edit("break", "speaker.write([])\n            break"),
        "Stop when no episode runs: `write` of nothing is an error of most models.",
    ),
)
