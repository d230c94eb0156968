"""Where a chat template rewrites what a policy has read already."""

from collections.abc import Iterator

from rlcourse.checks.declaring import Case, CaseSampler, Sketch


def _grown(draw: CaseSampler, messages: int) -> list[list[int]]:
    """A conversation whose template keeps prefixes; no token occurs twice in it."""
    ids = [*range(1, 101)]
    for i in range(len(ids) - 1, 0, -1):
        j = draw.integer(0, i)
        ids[i], ids[j] = ids[j], ids[i]
    ends, found = 0, []
    for _ in range(messages):
        ends += draw.integer(2, 4)
        found.append(ids[:ends])
    return found


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, renderings: list[list[int]]) -> Case:
        return Case(label, {"renderings": renderings})

    def broken(at: int, how, messages: int = 5) -> list[list[int]]:
        """Renderings whose beginnings change from message `at` on."""
        found = _grown(draw, messages)
        return found[:at] + [how(ids) for ids in found[at:]]

    yield case("worked: a thought is removed", [[5, 1, 9], [5, 1, 9, 6], [5, 9, 6, 7]])
    yield case("every prefix is kept", _grown(draw, draw.size(4, 6)))
    yield case("two messages, kept", _grown(draw, 2))
    yield case("one message", _grown(draw, 1))
    yield case("nothing was said yet", [])
    for at in (1, 2, 3, 4):
        yield case(f"a token is replaced at {at}", broken(at, lambda ids: [ids[0], 200, *ids[2:]]))
    yield case("a token is removed", broken(3, lambda ids: ids[:1] + ids[2:]))
    yield case("two messages, broken", broken(1, lambda ids: [200, *ids[1:]], 2))
    for at in (1, 2, 4):
        yield case(f"something is put in front at {at}", broken(at, lambda ids: [200, *ids]))
        crossed = broken(at, lambda ids: [ids[1], ids[0], *ids[2:]])
        yield case(f"two tokens change places at {at}", crossed)
    last = _grown(draw, 4)
    new = 10 * last[1][-1] + 5  # which begins with the same digit
    yield case("the last token alone", [*last[:2], [*last[1][:-1], new, *last[2][len(last[1]) :]]])
    kept = _grown(draw, 4)
    yield case(
        "broken, and then kept", [kept[0], [200, *kept[1]], [200, *kept[2]], [200, *kept[3]]]
    )
    for first, then in ((1, 2), (2, 3), (1, 4), (2, 4)):
        twice = _grown(draw, 5)
        twice[first:] = [[200, *ids[1:]] for ids in twice[first:]]
        twice[then:] = [[300, *ids[1:]] for ids in twice[then:]]
        yield case(f"broken twice, at {first} and at {then}", twice)
    for at in (1, 2, 3):
        short = _grown(draw, 4)
        less = [*short[:at], short[at - 1][:-1], *short[at:]]
        yield case(f"cut short at {at}, and otherwise the same", less)
    ends = _grown(draw, 4)
    yield case("cut short at the end", [*ends, ends[-1][:-2]])
    yield case("cut short by much", [*ends, ends[0]])
    short = _grown(draw, 3)
    yield case("nothing is added", [short[0], short[0], short[1]])
    yield case("an empty rendering at first", [[], *short])


def line_by_line(renderings):
    broken = []
    for k in range(1, len(renderings)):
        before, now = renderings[k - 1], renderings[k]
        same = now[: len(before)] == before
        if not same:
            broken.append(k)
    return broken[0] if broken else None


def within(before, now):
    places = range(len(now) - len(before) + 1)
    return any(now[i : i + len(before)] == before for i in places)


def token_by_token(renderings):
    for k, now in enumerate(renderings):
        before = renderings[k - 1] if k else []
        if len(now) < len(before):
            return k
        for a, b in zip(before, now, strict=False):
            if a != b:
                return k
    return None


sketch = Sketch(line_by_line, within)
alternatives = (token_by_token,)
