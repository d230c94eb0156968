"""Which tokens of an episode are the policy's own."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.environments import action_mask
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch

EOS = 2


def _turn(draw: CaseSampler, author: str, length: int):
    """Random ids; the policy's end in EOS."""
    ids = (draw.integers(length, high=20) + 3).tolist()
    if author == "environment":
        return author, ids, []
    return author, [*ids[:-1], EOS], (-draw.uniform(length)).tolist()


def _episode(draw: CaseSampler, authors: str, longest: int = 4):
    names = {"e": "environment", "p": "policy"}
    return [_turn(draw, names[a], draw.size(1, longest)) for a in authors]


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, *episodes) -> Case:
        return Case(label, {"episodes": list(episodes)})

    asks = ("environment", [11, 12, 13], [])
    calls = ("policy", [7, 8, EOS], [-0.5, -0.1, -0.2])
    says = ("environment", [14, 15], [])
    answers = ("policy", [9, EOS], [-0.3, -0.1])
    yield case("worked: a call and an answer", [asks, calls, says, answers])
    yield case("worked: two episodes", [asks, calls, says, answers], [asks, answers])
    yield case("one turn", _episode(draw, "ep"))
    yield case("two calls", _episode(draw, "epepep"), _episode(draw, "epep"))
    yield case("the longest comes last", _episode(draw, "ep", 3), _episode(draw, "epepepep"))
    yield case("cut off while the environment spoke", _episode(draw, "epe"), _episode(draw, "ep"))
    yield case("the environment speaks twice", _episode(draw, "eepeep"), _episode(draw, "ep"))
    yield case("the policy speaks twice", _episode(draw, "eppep"), _episode(draw, "epp"))
    yield case("the policy begins", _episode(draw, "pep"), _episode(draw, "pepep"))
    no_eos = ("policy", [7, 8, 9], [-0.5, -0.1, -0.2])
    yield case("a turn without EOS", [asks, no_eos, says, answers], [asks, calls])
    ended = ("environment", [11, EOS, 13], [])
    yield case("an EOS that the environment wrote", [ended, calls, ended, answers], [asks, answers])
    silent = ("environment", [], [])
    yield case("nothing observed", [asks, calls, silent, answers], [asks, answers])
    yield case("nobody has spoken yet", _episode(draw, "e"), _episode(draw, "e"))
    shape = ["ep" * draw.integer(1, 4) for _ in range(draw.size(4, 6))]
    yield case("many episodes", *(_episode(draw, authors) for authors in shape))


def line_by_line(episodes):
    whose = [[author == "policy" for author, _, _ in turns] for turns in episodes]
    flags = [
        [mine for mine, (_, ids, _) in zip(row, turns, strict=True) for t in range(len(ids))]
        for row, turns in zip(whose, episodes, strict=True)
    ]
    width = max(map(len, flags))
    padded = [row + [False] * (width - len(row)) for row in flags]
    mask = torch.tensor(padded, dtype=torch.bool).reshape(len(padded), width)
    return mask


def only(turns, place):
    """Flags of the turns: that of the policy's first, slice(1), or of its last, slice(-1, None)."""
    mine = [k for k, (author, _, _) in enumerate(turns) if author == "policy"]
    return [k in mine[place] for k in range(len(turns))]


def until_eos(row, turns):
    ids = [token for _, tokens, _ in turns for token in tokens]
    end = ids.index(EOS) + 1 if EOS in ids else len(ids)
    return row[:end] + [False] * (len(row) - end)


def by_concatenation(episodes):
    rows = [
        torch.cat([torch.full((len(ids),), author == "policy") for author, ids, _ in turns])
        for turns in episodes
    ]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=False)


def by_places(episodes):
    lengths = [sum(len(ids) for _, ids, _ in turns) for turns in episodes]
    mask = torch.zeros(len(episodes), max(lengths), dtype=torch.bool)
    for n, turns in enumerate(episodes):
        start = 0
        for author, ids, _ in turns:
            end = start + len(ids)
            if author == "policy":
                mask[n, start:end] = True
            start = end
    return mask


_edit = Sketch(line_by_line, only, until_eos).edit
_AUTHOR = 'author == "policy"'
_TURNS = '[author == "policy" for author, _, _ in turns]'
_PADDED = "row + [False] * (width - len(row))"


EXERCISE = Exercise(
    reference=action_mask,
    lesson="14_environments",
    section="Who wrote this token?",
    points=3,
    difficulty=2,
    minutes=8,
    cases=_cases,
    mistakes=(
        Mistake(
            "the mask of what the environment wrote",
            _edit("whose turns", "==", "!="),
            'True is for what is learned from: `author == "policy"`.',
        ),
        Mistake(
            "everything after the question, observations included",
            _edit("whose turns", _TURNS, "[k > 0 for k in range(len(turns))]"),
            "The policy did not write what a tool answered: it would learn to speak in its place.",
        ),
        Mistake(
            "every real token, the question included",
            _edit("whose turns", _AUTHOR, "True"),
            "Only turns of the policy are actions; all else it has read.",
        ),
        Mistake(
            "the last turn of the policy alone",
            _edit("whose turns", _TURNS, "only(turns, slice(-1, None))"),
            "A call is as much a decision as the answer is: every turn of the policy counts.",
        ),
        Mistake(
            "the first turn of the policy alone",
            _edit("whose turns", _TURNS, "only(turns, slice(1))"),
            "An episode has several turns of the policy, and every one counts.",
        ),
        Mistake(
            "every second turn, whoever wrote it",
            _edit("whose turns", _TURNS, "[k % 2 == 1 for k in range(len(turns))]"),
            "An environment may speak twice, or the policy: ask the turn for its author.",
        ),
        Mistake(
            "turns without their EOS",
            _edit("the tokens of a turn", "[mine for", "[mine and ids[t] != EOS for"),
            "To end a turn, and so to call the tool, is a decision like any other.",
        ),
        Mistake(
            "turns without their last token, whatever it is",
            _edit("the tokens of a turn", "[mine for", "[mine and t < len(ids) - 1 for"),
            "The last token of a turn, usually its EOS, is the policy's as well.",
        ),
        Mistake(
            "turns without their first token",
            _edit("the tokens of a turn", "[mine for", "[mine and t > 0 for"),
            "The first token of a turn is drawn like the others: the environment's last token is "
            "what it was drawn after.",
        ),
        Mistake(
            "`completion_mask`'s idea: nothing after the first EOS",
            _edit("the end of an episode", "in flags]", "in map(until_eos, flags, episodes)]"),
            "An EOS ends a turn here, not the episode.",
        ),
        Mistake(
            "a mask that comes one token late",
            _edit("the place", "return mask", "return mask.roll(1, 1)"),
            "The mask lies on the tokens themselves: position t is for token t.",
        ),
        Mistake(
            "a mask that comes one token early",
            _edit("the place", "return mask", "return mask.roll(-1, 1)"),
            "The mask lies on the tokens, not on the logits before them: position t is for token "
            "t.",
        ),
        Mistake(
            "one entry for each turn",
            _edit("the tokens of a turn", "range(len(ids))", "[0]"),
            "A loss sums over tokens: repeat the flag for each token of the turn.",
        ),
        Mistake(
            "rows that end together: padding on the left",
            _edit("the padding", _PADDED, "[False] * (width - len(row)) + row"),
            "Rows begin together here, and shorter ones are padded on the right.",
        ),
        Mistake(
            "padding as if the policy had written it",
            _edit("the padding", "[False]", "[True]"),
            "Nobody wrote the padding: False.",
        ),
        Mistake(
            "numbers in place of truth values",
            _edit("the dtype", "torch.bool", "torch.float32"),
            "A mask of bool is asked for: `dtype=torch.bool`.",
        ),
    ),
    alternatives=(line_by_line, by_concatenation, by_places),
    hints=(
        "A turn tells you who wrote it and how many tokens it has. That is all you need.",
        'For each episode a list with one flag per token, `author == "policy"`, repeated for '
        "each token of the turn; then fill up with False to the longest.",
        "    wrote = [\n"
        "        [... for author, tokens, _ in turns for _ in tokens]\n"
        "        for turns in episodes\n"
        "    ]\n"
        "    mask = torch.zeros(len(wrote), max(map(len, wrote)), dtype=torch.bool)\n"
        "    for row, flags in zip(mask, wrote, strict=True):\n"
        "        row[: len(flags)] = ...\n"
        "    return mask",
    ),
)
