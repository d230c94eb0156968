"""Errors of torch and Python in a course's words: what has happened, and what to do."""

import re

from rlcourse.checks.asking.calling import Failure

TRANSLATED = (
    (
        r"derivative for (aten::)?floor_divide",
        "`//` rounds, and no gradient passes through it: divide with `/`",
    ),
    (
        r"derivative for (?:aten::)?(?P<what>\w+)",
        "no gradient passes through `{what}`: compute this from operations that have one",
    ),
    (
        r"backward through the graph a second time",
        "`backward` has gone through this graph once already, which frees it: compute the loss "
        "anew before each `backward`, and call none where the loss is to be returned",
    ),
    (
        r"element 0 of tensors does not require grad",
        "`backward` is called on a tensor without a graph: something on the way from the "
        "parameters is detached, made a number, or was stored when sampling",
    ),
    (
        r"Can't call numpy\(\) on Tensor that requires grad",
        "numpy knows no gradient: stay with torch's own functions",
    ),
    (
        r"Boolean value of Tensor with more than one value",
        "`if`, `and`, `or` and `not` take one truth value, and this tensor holds several: use "
        "`torch.where`, `&`, `|` or `~`, or ask for `.any()` or `.all()`",
    ),
    (
        r"leaf Variable that requires grad .*in-place",
        "a parameter is changed in place while its gradient is recorded: do it under "
        "`torch.no_grad()`",
    ),
    (
        r"modified by an inplace operation",
        "a tensor that the gradient needs was changed in place (`+=`, `x[…] = …`, `clamp_`): make "
        "a new one",
    ),
    (
        r"size of tensor a \((?P<a>\d+)\) must match the size of tensor b \((?P<b>\d+)\)",
        "{a} entries meet {b} along one dimension: compare the shapes of the two tensors",
    ),
)
BREAKPOINTS = ("BreakpointLeftIn", "BdbQuit")


def as_seen(error: Failure) -> str:
    """What a call did in place of returning: it raised this, or it did not finish.

    A limit, or the end of its process, is not the function's own exception: it has no line there.
    """
    if error.type == "TookTooLong" or (error.type == "TimeoutError" and not error.line):
        return "it did not end in time"
    if error.type == "NoAnswer" and not error.line:
        return "its process ended before it had answered"
    return f"it raises {error.type}"


def in_words(error: Failure) -> str:
    """What happened, without a point at the end; empty where Python's own words are as good."""
    if error.type in BREAKPOINTS:
        return "a breakpoint is left in, and nobody can answer it while a check runs: take it out"
    for pattern, words in TRANSLATED:
        if found := re.search(pattern, error.message):
            return words.format(**found.groupdict())
    return ""
