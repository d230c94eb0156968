"""Proof that a name says what an answer does, no more and no less.

A *paraphrase* of a mistake has its effect in other words, and gets its name. A *neighbor* looks
like it and has another effect, and does not. Pages declare some of both. The rest is made up: of
every mistake whose source can be read, one paraphrase (operands exchanged, quotients as products,
comparisons turned around) and a neighbor, which is a small random change to it. Whatever name such
a change gets must explain most of what it does on cases that the check has not seen. (Not all of
it: a change can bring a second fault, which the first one hides.)
"""

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from rlcourse.checks.asking.calling import call_all, describe, one_thread
from rlcourse.checks.exercise import Mistake
from rlcourse.checks.judging.exam import Exam, judge
from rlcourse.checks.judging.failed import FailedCheck
from rlcourse.checks.judging.naming import Named, Trial, attempts, find_mistake
from rlcourse.checks.judging.sketch import Edit
from rlcourse.checks.proving.mutants import compiled, mutants
from rlcourse.checks.proving.mutation_testing import bounded_memory

NEIGHBORS = 1  # made up for each mistake and drawing of the cases
MOST = 0.75  # of the failing cases of a drawing
TURNED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
FRESH = (271, 272)  # seeds of drawings that the check has not seen


@dataclass(frozen=True)
class Tried:
    """A function held against the name of a mistake: whether that is right, and what it got."""

    kind: str  # paraphrase, neighbor
    function: str
    ok: bool
    verdict: str


def try_neighbors(exam: Exam, seed: int) -> Iterator[Tried]:
    """Everything that is declared or made up for the mistakes of an exercise."""
    court = _Court(exam)
    with one_thread(), bounded_memory():
        for mistake in exam.exercise.mistakes:
            yield from court.declared(mistake)
            yield from court.made_up(mistake, seed)


class _Court:
    def __init__(self, exam: Exam):
        self.exam = exam
        self.fresh = [Exam(exam.exercise, seed, hidden=bool(seed % 2)) for seed in FRESH]
        self.repeat = exam.exercise.observe is not None

    def declared(self, mistake: Mistake) -> Iterator[Tried]:
        for kind, functions in (
            ("paraphrase", mistake.paraphrases),
            ("neighbor", mistake.neighbors),
        ):
            for fn in functions:
                name = self._name_of(fn)
                ok = (name == mistake.name) == (kind == "paraphrase")
                said = f"it is called “{name}”" if name else "it gets no name"
                yield Tried(kind, f"{mistake.name}: {_title(fn)}", ok, said)

    def made_up(self, mistake: Mistake, seed: int) -> Iterator[Tried]:
        source = source_of(mistake.implementation)
        if source is None:
            return
        tree, namespace = source
        home = SimpleNamespace(__globals__=namespace)
        if again := self._paraphrase(mistake, tree, home):
            name = self._name_of(again)
            yield Tried("paraphrase", mistake.name, name == mistake.name, f"{name}")
        for mutant in mutants(home, NEIGHBORS, f"{seed} {mistake.name}", tree):  # type: ignore[arg-type]
            false = self._false_name(mutant.function)
            said = f"{false}; changed: {mutant.diff}"
            yield Tried("neighbor", mistake.name, false is None, said)

    def _paraphrase(self, mistake: Mistake, tree: ast.FunctionDef, home: Any) -> Callable | None:
        """The mistake in other words, where those have the same effect on all cases."""
        changed = ast.fix_missing_locations(InOtherWords().visit(copy.deepcopy(tree)))
        if ast.unparse(changed) == ast.unparse(tree) or not (fn := compiled(changed, home)):
            return None
        outcomes = call_all(fn, self.exam.cases, self.repeat)
        same = all(
            not judge(self.exam.exercise, case, self.exam.outcome_of(mistake, i, self.repeat), o)
            for i, (case, o) in enumerate(zip(self.exam.cases, outcomes, strict=True))
        )
        return fn if same else None

    def _examined(self, exam: Exam, fn: Callable) -> FailedCheck:
        return exam.examine(describe(fn), call_all(fn, exam.cases, self.repeat))

    def _name_of(self, fn: Callable) -> str | None:
        return self.exam.judge(describe(fn), call_all(fn, self.exam.cases)).mistake

    def _false_name(self, fn: Callable) -> str | None:
        """A name that the function gets and that other cases belie; names of several are proved
        by ``--pairs``."""
        failed = self._examined(self.exam, fn)
        if not failed.failing or not self._is_like_one(failed):
            return None
        named = find_mistake(self.exam, failed)
        if named is None or all(self._explains_most(named, exam, fn) for exam in self.fresh):
            return None
        return named.mistake.name

    def _explains_most(self, named: Named, exam: Exam, fn: Callable) -> bool:
        failed = self._examined(exam, fn)
        trials = [Trial(exam, failed, a) for a in attempts(failed) if a.is_like(named.attempt)]
        return not failed.failing or any(
            sum(trial.reproduces(named.mistake, i) for i in trial.attempt.failing)
            >= MOST * len(trial.attempt.failing)
            for trial in trials
        )

    def _is_like_one(self, failed: FailedCheck) -> bool:
        """Whether any single mistake explains it, which is soon known."""
        return any(
            Trial(self.exam, failed, attempt).explains(mistake)
            for attempt in attempts(failed)
            for mistake in self.exam.exercise.mistakes
        )


def source_of(fn: Callable) -> tuple[ast.FunctionDef, dict[str, Any]] | None:
    """The definition of a mistake, and the names that it can read; None where there is none.

    Edits of a sketch and lambdas of a page know their text.
    """
    plain = getattr(fn, "function", fn)
    if not inspect.isfunction(plain):
        return None
    try:
        text = getattr(fn, "text", None) or textwrap.dedent(inspect.getsource(plain))
        (node,) = ast.parse(text).body
    except (OSError, SyntaxError, ValueError):
        return None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Lambda):
        body: list[ast.stmt] = [ast.Return(node.value.body)]
        node = ast.FunctionDef("answer", node.value.args, body, [], None, None)
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return None
    if ast.get_docstring(node):
        node.body = node.body[1:]
    for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        argument.annotation = None
    node.returns = None
    namespace = {**plain.__globals__, **inspect.getclosurevars(plain).nonlocals}
    return ast.fix_missing_locations(node), namespace


class InOtherWords(ast.NodeTransformer):
    """Operands exchanged, differences as sums, quotients as products, comparisons turned around."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        left, right = node.left, node.right
        if isinstance(node.op, ast.Mult):
            return ast.BinOp(right, ast.Mult(), left)
        if isinstance(node.op, ast.Sub):
            return ast.BinOp(left, ast.Add(), ast.UnaryOp(ast.USub(), right))
        if isinstance(node.op, ast.Div):
            return ast.BinOp(left, ast.Mult(), ast.BinOp(ast.Constant(1), ast.Div(), right))
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        turned = TURNED.get(type(node.ops[0]))
        if len(node.ops) > 1 or turned is None:
            return node
        return ast.Compare(node.comparators[0], [turned()], [node.left])

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)


def _title(fn: Callable) -> str:
    if isinstance(fn, Edit):
        return " and ".join(f"`{new}`" for _, _, new in fn.spans)
    return fn.__name__
