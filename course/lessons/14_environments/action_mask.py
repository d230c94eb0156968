"""Which tokens of an episode are the policy's own."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Sketch

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


def cases(draw: CaseSampler) -> Iterator[Case]:
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


sketch = Sketch(line_by_line, only, until_eos)
alternatives = (by_concatenation,)
