"""Numbers as lines of text that are good to read."""

from collections.abc import Sequence

from rlcourse.evaluation.scores import Evaluation, Interval
from rlcourse.words import counted


def evaluation_table(evaluation: Evaluation) -> str:
    """Every mean with its interval: strict next to lenient, greedy next to sampled."""
    e = evaluation
    rows: list[list] = [
        ["", "greedy", "samples"],
        ["accuracy", e.accuracy, e.sampled_accuracy],
        ["accuracy, read leniently", e.lenient_accuracy, e.sampled_lenient_accuracy],
        ["the rule reads a number", e.format_rate, e.sampled_format_rate],
        ["format reward", e.format_reward, e.sampled_format_reward],
        [],
        ["", "pass@k", "majority vote of k"],
        *([f"k = {k}", e.pass_at[k], e.majority_at[k]] for k in e.pass_at),
        [],
        ["", "tokens of a sample", "cut off at max_tokens"],
        ["all", tokens(e.length), e.truncated],
        ["right ones", tokens(e.length_right)],
        ["wrong ones", tokens(e.length_wrong)],
    ]
    if e.format_reward is None:
        rows = [row for row in rows if row[:1] != ["format reward"]]
    if not e.samples:
        greedy = [row[:2] for row in rows[: rows.index([])]]
        rows = [*greedy, [], ["tokens", tokens(e.length)], ["cut off at max_tokens", e.truncated]]
    speed = f", {e.tokens / e.seconds:,.0f} a second" if e.seconds else ""
    drawn = f"{counted(e.samples, 'sample')} each at temperature {e.temperature:g}"
    drawn = drawn if e.samples else "one greedy completion each"
    return (
        f"{e.problems:,} problems, {drawn}; "
        f"means over problems [95 % interval]\n\n{aligned(rows)}\n\n"
        f"{e.tokens:,} tokens written in {e.seconds:,.1f} s{speed}"
    )


def tokens(interval: Interval | None) -> str:
    """An interval of lengths, which need no third decimal."""
    if interval is None:
        return "–"
    return f"{interval.value:.1f} [{interval.low:.1f}, {interval.high:.1f}]"


def aligned(rows: Sequence[Sequence[object]]) -> str:
    """Rows of cells as lines, each column as wide as its widest cell."""
    texts = [[str(cell) for cell in row] for row in rows]
    columns = range(max(map(len, texts)))
    widths = [max(len(row[i]) for row in texts if i < len(row)) for i in columns]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in texts)
    return "\n".join(lines)
