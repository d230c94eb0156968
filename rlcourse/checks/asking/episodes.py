"""A speaker and environments that follow a script, for exercises on episodes of several turns.

Both remember what they were asked. A token is a piece of one or two characters, and the speaker
writes some words in other pieces than its own `encode` would: a function that tokenizes the text
again gets other ids, and the next turn, which depends on every id so far, shows it.
"""

from typing import Any

PIECES = ("<o>", "<eos>", "<q>", "<a>", *"abcdefgh", "ab", "cd", "ef", "gh", "ac", "eg")
IDS = {piece: i for i, piece in enumerate(PIECES)}
OBSERVED, EOS, QUESTION, ANSWER = range(4)
# Turns in the pieces that the speaker draws: some are not what `encode` makes of their text.
TURNS = (
    ("a", "b"), ("ab",), ("c", "d", "e"), ("ef", "a"), ("g", "h"), ("cd", "b"),
    ("e", "f", "ab"), ("h",), ("ac", "d"), ("g",), ("a", "cd"), ("eg", "h"),
)  # fmt: skip


class ScriptedSpeaker:
    """Writes, after each context, a turn that depends on every id in it and on their places.

    With `cut` every third turn is cut off: it has no EOS.
    """

    def __init__(self, seed: int = 0, cut: bool = False):
        self.seed, self.cut = seed, cut
        self.contexts: list[list[list[int]]] = []

    def encode(self, text: str) -> list[int]:
        """The longest pieces first."""
        ids = []
        while text:
            length = 2 if text[:2] in IDS else 1
            ids.append(IDS.get(text[:length], 0))
            text = text[length:]
        return ids

    def prompt(self, words: str) -> list[int]:
        return [QUESTION, *self.encode(words), ANSWER]

    def observation(self, words: str) -> list[int]:
        return [OBSERVED, *self.encode(words), ANSWER]

    def text(self, tokens: list[int]) -> str:
        return "".join(PIECES[token] for token in tokens if token > ANSWER)

    def write(self, contexts: list[list[int]]) -> list[tuple[list[int], list[float]]]:
        self.contexts.append([list(context) for context in contexts])
        return [self._turn(context) for context in contexts]

    def _turn(self, context: list[int]) -> tuple[list[int], list[float]]:
        number = self.seed
        for token in context:
            number = (31 * number + token + 7) % 100_003
        tokens = [IDS[piece] for piece in TURNS[number % len(TURNS)]]
        if not (self.cut and number % 3 == 0):
            tokens.append(EOS)
        return tokens, [-((number + 17 * t) % 89 + 1) / 40 for t in range(len(tokens))]

    def after(self) -> dict[str, Any]:
        return {"contexts": self.contexts}


class ScriptedEnvironment:
    """Says back what it was told and is done after `length` turns; it forgets nothing.

    `rewards` are those of its turns. After the end it continues, at a price that shows.
    """

    def __init__(self, words: str, length: int, rewards: list[float]):
        self.words, self.length, self.rewards = words, length, rewards
        self.told: list[str] = []

    def reset(self) -> str:
        self.told.append("reset")
        return self.words

    def step(self, text: str) -> tuple[str, float, bool]:
        self.told.append(text)
        turn = sum(told != "reset" for told in self.told)
        if turn > self.length:
            return "h", -7.0, True
        return f"{text[::-1]}g", self.rewards[turn - 1], turn == self.length


def in_pieces(tokens: list[int]) -> str:
    """The tokens as a reader can tell them apart: "<q> ab <a> c d <eos>"."""
    known = len(PIECES)
    return " ".join(PIECES[t] if isinstance(t, int) and 0 <= t < known else repr(t) for t in tokens)


def scripted_speaker(built, **options) -> ScriptedSpeaker:
    """A fresh one."""
    return ScriptedSpeaker(**options)


def scripted_environments(built, words, lengths, rewards) -> list[ScriptedEnvironment]:
    """One for each of the lists' entries."""
    return [ScriptedEnvironment(*each) for each in zip(words, lengths, rewards, strict=True)]


def told(environments: list[ScriptedEnvironment]) -> dict[str, Any]:
    """What each environment was given, `reset` included."""
    return {f"[{i}].told": environment.told for i, environment in enumerate(environments)}
