"""What a small change to a right answer amounts to, in words that do not give the answer away.

A change is a node of a syntax tree and its replacement. The words complete "The same
numbers come out if …"; terms are told by the arguments that they are made of.
"""

import ast
from collections.abc import Callable, Iterator

NOUNS = {
    "abs": "an absolute value", "all": "`all`", "amax": "the largest", "amin": "the smallest",
    "any": "`any`", "argmax": "the place of the largest", "argmin": "the place of the smallest",
    "ceil": "rounding up", "cumprod": "a running product", "cumsum": "a running sum",
    "exp": "an exponential", "expm1": "an exponential minus 1", "find": "the first place",
    "floor": "rounding down", "log": "a logarithm", "log_softmax": "a log-softmax",
    "logsigmoid": "the logarithm of a sigmoid", "lower": "lower case",
    "lstrip": "a strip on the left",
    "match": "a match at the beginning", "max": "the largest", "maximum": "the larger of two",
    "mean": "a mean", "median": "a median", "min": "the smallest", "minimum": "the smaller of two",
    "prod": "a product", "repeat": "`repeat`", "repeat_interleave": "`repeat_interleave`",
    "rfind": "the last place", "rsplit": "a split from the right", "rsqrt": "a reciprocal root",
    "search": "a search", "sigmoid": "a sigmoid", "softmax": "a softmax", "split": "a split",
    "sqrt": "a square root", "square": "a square", "std": "a standard deviation",
    "strip": "a strip on both sides", "sum": "a sum", "upper": "upper case", "var": "a variance",
}  # fmt: skip
LEFT_OUT = {
    "abs": "no absolute value is taken of {}", "bool": "{} is not converted to bool",
    "clamp": "{} is not clamped", "detach": "{} is not detached",
    "exp": "no exponential is taken of {}", "flatten": "{} is not flattened",
    "flip": "{} is not reversed", "log": "no logarithm is taken of {}",
    "log_softmax": "no log-softmax is taken of {}", "masked_fill": "{} is not masked",
    "mean": "no mean is taken of {}", "reshape": "{} is not reshaped",
    "sigmoid": "no sigmoid is taken of {}", "sign": "{} itself is used in place of its sign",
    "softmax": "no softmax is taken of {}", "sqrt": "no root is taken of {}",
    "square": "no square is taken of {}", "strip": "{} is not stripped",
    "sum": "no sum is taken of {}", "view": "{} is not reshaped",
}  # fmt: skip
# They make a tensor: left out, nothing would be there.
MAKING = {
    "arange",
    "empty",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
}
SIGNS = {
    ast.Add: "a plus", ast.Sub: "a minus", ast.Mult: "a multiplication", ast.Div: "a division",
    ast.Pow: "a power", ast.BitAnd: "`and`", ast.BitOr: "`or`", ast.FloorDiv: "an integer division",
    ast.Mod: "a remainder", ast.MatMult: "a matrix product",
}  # fmt: skip
BEYOND_EQUAL = {(ast.Lt, ast.LtE), (ast.Gt, ast.GtE)}
SHORT = 3  # characters of a text that may be shown


class Terms:
    """The terms of a function, told by the arguments that they are computed from."""

    def __init__(self, tree: ast.FunctionDef):
        arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
        self.parameters = [argument.arg for argument in arguments]
        self._from = {name: {name} for name in self.parameters}
        for _ in range(2):  # what is assigned further down in a loop is used above, too
            for targets, value in _assignments(tree):
                for name in targets:
                    self._from[name] = self._from.get(name, set()) | self.sources(value)

    def sources(self, node: ast.AST) -> set[str]:
        """The parameters that a term depends on."""
        names = (n.id for n in ast.walk(node) if isinstance(n, ast.Name))
        return set().union(*(self._from.get(name, set()) for name in names))

    def say(self, node: ast.AST) -> str:
        """The term, as far as it can be told."""
        if isinstance(node, ast.Constant):
            return shown(node.value)
        if isinstance(node, ast.Name) and node.id in self.parameters:
            return f"`{node.id}`"
        sources = self.sources(node)
        found = [name for name in self.parameters if name in sources]
        if not 0 < len(found) < 3:
            return "a term"
        return f"a term from {' and '.join(f'`{name}`' for name in found)}"

    def on(self, node: ast.AST) -> str:
        """ ", of a term from `x`", or nothing where that says nothing."""
        said = self.say(node)
        return "" if said == "a term" else f", of {said}"


def _assignments(tree: ast.AST) -> Iterator[tuple[list[str], ast.AST]]:
    """(names, value) of everything that gives names a value."""
    targets: list
    value: ast.AST
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AugAssign | ast.NamedExpr):
            targets, value = [node.target], node.value
        elif isinstance(node, ast.For | ast.comprehension):
            targets, value = [node.target], node.iter
        else:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr not in ("append", "extend"):
                continue
            targets, value = [node.func.value], ast.Tuple(node.args, ast.Load())
        yield [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)], value


def shown(value) -> str:
    """A constant, unless it is a string that would give the answer away."""
    if isinstance(value, str):
        return f"`{value!r}`" if len(value) <= SHORT else "a text"
    return f"{value:g}" if isinstance(value, float) else str(value)


def in_words(old: ast.AST, new: ast.AST, parent: ast.AST | None, terms: Terms) -> str | None:
    """What the change amounts to; None if no sentence would help."""
    for kind, say in SAYING.items():
        if isinstance(old, kind):
            return say(old, new, parent, terms)
    return None


def _binary(old, new, parent, terms) -> str | None:
    left, right, name = terms.say(old.left), terms.say(old.right), type(old.op)
    if new is old.left or new is old.right:
        return _one_side(old, new is old.left, left, right)
    if not isinstance(new, ast.BinOp):
        return None
    if type(new.op) is name:
        return {
            ast.Sub: "a difference is taken the other way around",
            ast.Div: "a quotient is upside down",
            ast.Pow: "base and exponent are exchanged",
            ast.MatMult: "the factors of a matrix product are exchanged",
        }[name] + terms.on(old)
    before = "" if right == "a term" else f", before {right}"
    return f"{SIGNS[type(new.op)]} is used in place of {SIGNS[name]}{before}"


def _one_side(old: ast.BinOp, kept_left: bool, left: str, right: str) -> str:
    other = right if kept_left else left
    if isinstance(old.op, ast.Add):
        return f"{other} is left out of a sum"
    if isinstance(old.op, ast.Mult):
        return f"the factor {other} is left out" if other != "a term" else "a factor is left out"
    if isinstance(old.op, ast.BitAnd | ast.BitOr):
        return f"one of two conditions is left out, {other}"
    if kept_left:
        return {
            ast.Sub: f"{right} is not subtracted",
            ast.Div: f"the division by {right} is left out",
            ast.Pow: "a square is left out"
            if right == "2"
            else f"the exponent {right} is left out",
            ast.FloorDiv: f"the integer division by {right} is left out",
            ast.Mod: f"the remainder by {right} is not taken",
        }.get(type(old.op), f"only the first factor is left of {SIGNS[type(old.op)]}")
    return {
        ast.Sub: f"only what is subtracted, {right}, is left of a difference",
        ast.Div: f"only the divisor, {right}, is left of a quotient",
        ast.Pow: f"only the exponent, {right}, is left of a power",
    }.get(type(old.op), f"only the second term is left of {SIGNS[type(old.op)]}")


def _unary(old, new, parent, terms) -> str:
    if isinstance(old.op, ast.USub):
        return f"a minus sign is missing{terms.on(old.operand).replace(', of', ', before')}"
    return f"a condition is negated{terms.on(old.operand)}"


def _bool(old, new, parent, terms) -> str:
    if isinstance(new, ast.BoolOp):
        words = ("`and`", "`or`") if isinstance(new.op, ast.And) else ("`or`", "`and`")
        return f"{words[0]} is used in place of {words[1]} between conditions{terms.on(old)}"
    return f"only one of several conditions is left{terms.on(new)}"


def _compare(old, new, parent, terms) -> str:
    before, after = type(old.ops[0]), type(new.ops[0])
    with_ = terms.say(old.comparators[0])
    with_ = terms.on(old.left).replace(", of", " of") if with_ == "a term" else f" with {with_}"
    if (before, after) in BEYOND_EQUAL:
        return f"a comparison{with_} includes equality"
    if (after, before) in BEYOND_EQUAL:
        return f"a comparison{with_} excludes equality"
    return f"a comparison{with_} is reversed"


def _constant(old, new, parent, terms) -> str | None:
    before, after = old.value, new.value
    if isinstance(before, str):
        return _text(before, after)
    change = f"{shown(after)} in place of {shown(before)}"
    if isinstance(parent, ast.keyword):
        return f"`{parent.arg}` is {change}"
    if isinstance(parent, ast.Subscript | ast.Slice):
        return f"an index or the end of a slice is {change}"
    return f"a constant is {change}"


def _text(before: str, after: str) -> str:
    if not after:
        return (
            f"the text {shown(before)} is left empty"
            if len(before) <= SHORT
            else "a text is left empty"
        )
    lost = before[0] if before.endswith(after) else before[-1]
    end = "first" if before.endswith(after) else "last"
    return f"`{lost}`, the {end} character of a text, is missing"


def name_of(function: ast.expr) -> str:
    """What is called."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "it")


def _call(old, new, parent, terms) -> str | None:
    called, on = name_of(old.func), _subject(old)
    if on is not None and new is on and len(old.args) - (on in old.args) == 0:
        return _left_out(called, new, terms)
    kept = new is on or any(new is argument for argument in old.args)
    other = isinstance(new, ast.Call) and not kept
    if other and len(new.args) == len(old.args) and len(new.keywords) < len(old.keywords):
        lost = {k.arg for k in old.keywords} - {k.arg for k in new.keywords}
        return f"`{called}` is called without its {' and '.join(f'`{n}`' for n in sorted(lost))}"
    if called in MAKING:
        return None
    if other and len(new.args) == len(old.args):
        if (now := name_of(new.func)) != called:
            of = terms.on(on) if on else ""
            return f"{NOUNS.get(now, now)} is used in place of {NOUNS.get(called, called)}{of}"
        return f"two arguments of `{called}` are exchanged"
    if other and name_of(new.func) == called:
        return f"`{called}` is called without one of its arguments"
    if len(old.args) > 1 and any(new is argument for argument in old.args):
        only = terms.say(new)
        return f"only one of the terms of `{called}` is left" + (
            "" if only == "a term" else f", {only}"
        )
    return _left_out(called, new, terms)


def _left_out(called: str, new: ast.AST, terms: Terms) -> str | None:
    if called in MAKING:
        return None  # the tensor itself would be missing
    if called in LEFT_OUT:
        return LEFT_OUT[called].format(terms.say(new))
    return f"a step such as `{called}` is left out{terms.on(new)}"


def _subject(call: ast.Call) -> ast.AST | None:
    """What the call works on."""
    if isinstance(call.func, ast.Attribute):
        receiver = call.func.value
        if not (isinstance(receiver, ast.Name) and receiver.id in ("torch", "F", "math", "re")):
            return receiver
    return call.args[0] if call.args else None


def _choice(old, new, parent, terms) -> str:
    if isinstance(new, ast.IfExp):
        return f"a choice is reversed{terms.on(old.test)}"
    return f"a choice is always decided the same way{terms.on(old.test)}"


def _subscript(old, new, parent, terms) -> str:
    if isinstance(new, ast.Subscript):
        return f"rows and columns of an index are exchanged{terms.on(old.value)}"
    return f"an index or a slice is left out{terms.on(old.value)}"


def _name(old, new, parent, terms) -> str | None:
    before, after = terms.say(old), terms.say(new)
    if before == after:
        return None
    return f"{after} is used in place of {before}"


def _if(old, new, parent, terms) -> str:
    always = isinstance(new.test, ast.Constant) and new.test.value
    return f"a condition is {'always' if always else 'never'} true{terms.on(old.test)}"


def _assigned(old, new, parent, terms) -> str | None:
    if isinstance(new, ast.AugAssign):
        return (
            f"{SIGNS[type(new.op)]} is used in place of {SIGNS[type(old.op)]}, in a running total"
        )
    if isinstance(old, ast.AugAssign):
        return f"a running total leaves something out{terms.on(old.value)}"
    if isinstance(old.value, ast.Call) and name_of(old.value.func) in MAKING:
        return None
    step = (
        f"a step such as `{name_of(old.value.func)}`"
        if isinstance(old.value, ast.Call)
        else "a step"
    )
    return f"{step} is left out{terms.on(old.value)}"


def _effect(old, new, parent, terms) -> str | None:
    if isinstance(old.value, ast.Call):
        return f"a step such as `{name_of(old.value.func)}` is left out"
    return None


def _defaults(old, new, parent, terms) -> str | None:
    names = [argument.arg for argument in old.args][-len(old.defaults) :]
    for name, before, after in zip(names, old.defaults, new.defaults, strict=True):
        if ast.dump(before) != ast.dump(after) and isinstance(after, ast.Constant):
            return f"`{name}` is {shown(after.value)} where it is not given"
    return None


SAYING: dict[type | tuple[type, ...], Callable[..., str | None]] = {
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _bool,
    ast.Compare: _compare,
    ast.Constant: _constant,
    ast.Call: _call,
    ast.IfExp: _choice,
    ast.Subscript: _subscript,
    ast.Name: _name,
    ast.If: _if,
    (ast.Assign, ast.AugAssign): _assigned,
    (ast.Raise, ast.Assert): lambda *_: "no error is raised",
    ast.Expr: _effect,
    ast.arguments: _defaults,
}
