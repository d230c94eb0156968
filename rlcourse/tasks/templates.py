"""The stories that word problems are made of.

A template names the numbers it draws (`few`, `some` or `many`: ranges that the level sets), the
steps that solve it, and at least one wording. In the steps, `a` to `d` are the numbers in order and
`s1`, `s2` the results so far; the last step is the answer.
"""

from dataclasses import dataclass

NAMES = {
    **dict.fromkeys(("Ben", "James", "Leo", "Omar", "Sam", "Tom"), ("He", "he")),
    **dict.fromkeys(("Anna", "Eva", "Kim", "Lily", "Mia", "Zoe"), ("She", "she")),
}
THINGS = (
    "apples", "books", "cards", "coins", "cookies", "eggs",
    "flowers", "marbles", "pens", "shells", "stamps", "stickers",
)  # fmt: skip
CONTAINERS = ("bags", "baskets", "boxes", "packs")


@dataclass(frozen=True)
class Template:
    """A story with places for numbers, people and things, and the steps that solve it."""

    name: str
    numbers: str  # one of few, some, many for each of a, b, c, d
    steps: str  # "a * b; s1 - c"
    texts: tuple[str, ...]

    @property
    def length(self) -> int:
        """How many steps the solution takes."""
        return self.steps.count(";") + 1


def _template(name: str, numbers: str, steps: str, *texts: str) -> Template:
    return Template(name, numbers, steps, texts)


TEMPLATES = (
    # One step.
    _template(
        "together", "many some", "a + b",
        "{name} has {a} {things}. {other} has {b} {things}. "
        "How many {things} do they have together?",
        "{name} finds {a} {things} and {other} finds {b}. How many {things} do they find in total?",
    ),
    _template(
        "given_away", "many some", "a - b",
        "{name} has {a} {things}. {He} gives {b} {things} to {other}. "
        "How many {things} does {name} have left?",
        "{name} had {a} {things} but lost {b} of them. How many {things} are left?",
    ),
    _template(
        "rows", "few few", "a * b",
        "There are {a} {boxes} with {b} {things} in each. How many {things} are there?",
        "{name} fills {a} {boxes} and puts {b} {things} in each. "
        "How many {things} does {he} need?",
    ),
    _template(
        "shared", "many few", "a / b",
        "{name} shares {a} {things} equally among {b} friends. "
        "How many {things} does each friend get?",
        "{name} puts {a} {things} equally into {b} {boxes}. How many {things} are in each?",
    ),
    _template(
        "price", "few few", "a * b",
        "{name} buys {a} {things} for ${b} each. How much does {he} pay?",
        "{name} sells {a} {things} for ${b} each. How much money does {he} get?",
    ),
    _template(
        "gets_more", "many some", "a + b",
        "{name} has {a} {things}. {other} gives {name} {b} more. "
        "How many {things} does {name} have now?",
        "{name} has {a} {things} and finds {b} more. How many {things} does {he} have now?",
    ),
    _template(
        "spends", "many some", "a - b",
        "{name} earns ${a} and spends ${b}. How much money does {he} have left?",
        "{name} has ${a}. {He} spends ${b}. How much money does {he} have now?",
    ),
    # Two steps.
    _template(
        "eaten", "few few some", "a * b; s1 - c",
        "{name} has {a} {boxes} of {b} apples. {He} eats {c}. How many apples are left?",
        "{name} has {a} {boxes} of {b} {things}. {He} gives away {c} of them. "
        "How many {things} are left?",
        "There are {a} {boxes} with {b} {things} in each. {name} takes {c} {things}. "
        "How many {things} are left?",
    ),
    _template(
        "more_than", "some some", "a + b; a + s1",
        "{name} has {a} {things}. {other} has {b} more than {name}. "
        "How many {things} do they have together?",
    ),
    _template(
        "fewer_than", "many some", "a - b; a + s1",
        "{name} has {a} {things}. {other} has {b} fewer than {name}. "
        "How many {things} do they have together?",
        "{name} finds {a} {things} and {other} finds {b} fewer. "
        "How many {things} do they find in total?",
    ),
    _template(
        "times_as_many", "some few", "a * b; a + s1",
        "{name} has {a} {things}. {other} has {b} times as many. "
        "How many {things} do they have together?",
    ),
    _template(
        "shopping", "few few some", "a * b; s1 + c",
        "{name} buys {a} {things} for ${b} each and a bike for ${c}. "
        "How much does {he} pay in total?",
        "{name} sells {a} {things} for ${b} each and a lamp for ${c}. "
        "How much money does {he} get in total?",
    ),
    _template(
        "change", "many few few", "b * c; a - s1",
        "{name} has ${a}. {He} buys {b} {things} for ${c} each. "
        "How much money does {he} have left?",
    ),
    _template(
        "find_and_pack", "many some few", "a + b; s1 / c",
        "{name} has {a} {things} and finds {b} more. {He} puts them equally into {c} {boxes}. "
        "How many {things} are in each?",
    ),
    _template(
        "lose_and_share", "many some few", "a - b; s1 / c",
        "{name} has {a} {things}. {He} loses {b} and shares the rest equally among {c} friends. "
        "How many {things} does each friend get?",
    ),
    _template(
        "every_day", "few few few", "a + b; s1 * c",
        "{name} reads {a} pages in the morning and {b} pages in the evening. "
        "How many pages does {he} read in {c} days?",
    ),
    _template(
        "wages", "few few some", "a * b; s1 - c",
        "{name} earns ${a} an hour and works {b} hours. Then {he} spends ${c}. "
        "How much money does {he} have left?",
    ),
    _template(
        "share_and_add", "many few some", "a / b; s1 + c",
        "{name} shares {a} {things} equally among {b} friends. Each friend already had {c}. "
        "How many {things} does each friend have now?",
    ),
    _template(
        "boxes_and_more", "few few some", "a * b; s1 + c",
        "{name} has {a} {boxes} of {b} {things} and finds {c} more. "
        "How many {things} does {he} have now?",
        "{name} earns ${a} an hour and works {b} hours. Then {he} finds ${c} more. "
        "How much money does {he} have now?",
    ),
    _template(
        "lose_and_find", "many some some", "a - b; s1 + c",
        "{name} has {a} {things}. {He} gives {b} {things} to {other} and finds {c} more. "
        "How many {things} does {name} have now?",
        "{name} has ${a}. {He} spends ${b} and finds ${c} more. How much money does {he} have now?",
    ),
    _template(
        "boxes_shared", "few few few", "a * b; s1 / c",
        "{name} has {a} {boxes} of {b} {things}. {He} shares them equally among {c} friends. "
        "How many {things} does each friend get?",
    ),
    # Three steps.
    _template(
        "two_kinds", "few few few few", "a * b; c * d; s1 + s2",
        "{name} buys {a} {things} for ${b} each and {c} lamps for ${d} each. "
        "How much does {he} pay in total?",
        "There are {a} {boxes} with {b} {things} in each and {c} jars with {d} {things} in each. "
        "How many {things} are there in total?",
    ),
    _template(
        "give_and_get", "few few some some", "a * b; s1 - c; s2 + d",
        "{name} has {a} {boxes} of {b} {things}. {He} gives {c} {things} to {other} and "
        "finds {d} more. "
        "How many {things} does {name} have now?",
    ),
    _template(
        "sell_and_pack", "few few some few", "a * b; s1 - c; s2 / d",
        "{name} has {a} {boxes} of {b} {things}. {He} sells {c} and shares the rest equally "
        "among {d} friends. How many {things} does each friend get?",
        "{name} earns ${a} an hour and works {b} hours. {He} spends ${c} and shares the rest "
        "equally among {d} friends. How much money does each friend get?",
    ),
    _template(
        "find_give_and_share", "many some some few", "a + b; s1 - c; s2 / d",
        "{name} has {a} {things} and finds {b} more. {He} gives {c} {things} to {other} and shares "
        "the rest equally among {d} friends. How many {things} does each friend get?",
    ),
    _template(
        "long_book", "few few few many", "a + b; s1 * c; d - s2",
        "{name} reads {a} pages in the morning and {b} pages in the evening for {c} days. "
        "The book has {d} pages. How many pages are left?",
    ),
    _template(
        "pool_and_share", "some some few", "a + b; a + s1; s2 / c",
        "{name} has {a} {things}. {other} has {b} more than {name}. "
        "They share all of them equally among {c} friends. "
        "How many {things} does each friend get?",
    ),
    _template(
        "times_and_give", "some few some", "a * b; a + s1; s2 - c",
        "{name} has {a} {things}. {other} has {b} times as many. Together they give away {c}. "
        "How many {things} are left?",
    ),
    _template(
        "wages_and_change", "few few few few", "a * b; c * d; s1 - s2",
        "{name} earns ${a} an hour and works {b} hours. Then {he} buys {c} {things} for ${d} each. "
        "How much money does {he} have left?",
    ),
)  # fmt: skip
