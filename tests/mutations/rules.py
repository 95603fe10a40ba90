"""Mutants by rule: every small change that the rules make to a file of Python.

1. A comparison becomes its neighbour or its contrary; `and` becomes `or`, and the reverse.
2. A whole number grows by one; True becomes False, and the reverse.
3. A condition is negated: of an `if`, a `while`, a choice, a comprehension or an assertion.
4. A sum becomes a difference, and the like.
5. A statement is dropped: a call, an assignment to an attribute or an item, a `raise`, a `del`.
6. A `return` of anything but False returns nothing.
7. The first two arguments of a call change places, where their order matters.
8. Code that only names types, documents or logs is left alone: no test is to see it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.mutations.place import Module

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "//",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
_LOGS = {"debug", "info", "warning", "error", "exception", "critical"}


class Mutant(NamedTuple):
    """The bytes from *begin* to *end* of a file become *new*; *rule* says what that does."""

    path: str
    line: int
    begin: int
    end: int
    new: str
    rule: str

    def applied(self, source: bytes) -> bytes:
        """Return the whole file, broken. All that follows keeps its line."""
        fewer = source[self.begin : self.end].count(b"\n") - self.new.count("\n")
        return source[: self.begin] + self.new.encode() + b"\n" * fewer + source[self.end :]

    def told(self, source: bytes) -> str:
        """Return a line for people: where, by which rule, and what becomes of what in its line."""
        first = source.rfind(b"\n", 0, self.begin) + 1
        last = source.find(b"\n", self.end) % (len(source) + 1)
        before, old, after = (
            source[begin:end].decode()
            for begin, end in ((first, self.begin), (self.begin, self.end), (self.end, last))
        )
        text = f"{before} [{old.strip()} -> {self.new.strip()}] {after}"
        return f"{self.path}:{self.line}: {self.rule}: {' '.join(text.split())}"


def mutants(module: Module) -> list[Mutant]:
    """Return all mutants of a file, in the order of their places."""
    found = {*_Rules(module).visited(module.tree)}
    return sorted(found, key=lambda mutant: (mutant.begin, mutant.end, mutant.new))


def is_real(mutant: Mutant, module: Module) -> bool:
    """Return whether a mutant of a file can be parsed, and differs from the file."""
    try:
        tree = ast.parse(mutant.applied(module.source))
    except SyntaxError:
        return False
    return ast.dump(tree) != _dumped(module.tree)


@cache
def _dumped(tree: ast.Module) -> str:
    return ast.dump(tree)


class _Rules:
    """What the rules make of each node of one file."""

    def __init__(self, module: Module) -> None:
        self._path, self._source = module.path, module.source
        self._lines = [0]
        for line in module.source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def visited(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants of a node and of all below it."""
        if _is_left_alone(node):
            return
        yield from self._of(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.visited(child)

    def _of(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                yield self._between(left, right, _COMPARISONS[type(operator)], "comparison")
            case ast.BoolOp(op=operator, values=[first, second, *_]):
                word = "or" if isinstance(operator, ast.And) else "and"
                yield self._between(first, second, word, "and/or")
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                yield self._between(left, right, _OPERATORS[type(operator)], "operator")
            case ast.Constant(value=bool(value)):
                yield self._in_place(node, repr(not value), "constant")
            case ast.Constant(value=int(value)):
                yield self._in_place(node, repr(value + 1), "constant by one")
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield self._negated(test)
            case ast.comprehension(ifs=[test, *_]):
                yield self._negated(test)
            case ast.Return(value=ast.expr() as value) if not _is_nothing(value):
                yield self._in_place(node, "return None", "returns nothing")
            case ast.Expr(value=ast.Call() | ast.Await() | ast.YieldFrom()) | ast.Raise():
                yield self._in_place(node, "pass", "dropped statement")
            case ast.Delete() | ast.AugAssign():
                yield self._in_place(node, "pass", "dropped statement")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
                yield self._in_place(node, "pass", "dropped statement")
            case _:
                pass
        if isinstance(node, ast.Call) and len(node.args) > 1 and not _is_symmetric(node.func):
            first, second = node.args[:2]
            if not any(isinstance(one, ast.Starred) for one in (first, second)):
                begin, end = self._span(first)[0], self._span(second)[1]
                new = f"{self._text(second)}, {self._text(first)}"
                yield Mutant(self._path, node.lineno, begin, end, new, "swapped arguments")

    def _between(self, left: ast.expr, right: ast.expr, new: str, rule: str) -> Mutant:
        """Replace the operator, and leave the brackets around its two sides."""
        begin, end = self._span(left)[1], self._span(right)[0]
        old = self._source[begin:end].decode()
        closing = len(old) - len(old.lstrip(" \n\t)"))
        opening = len(old) - len(old.rstrip(" \n\t("))
        rest = f"{old[:closing] or ' '}{new}{old[len(old) - opening :] or ' '}"
        return Mutant(self._path, left.lineno, begin, end, rest, rule)

    def _in_place(self, node: ast.expr | ast.stmt, new: str, rule: str) -> Mutant:
        return Mutant(self._path, node.lineno, *self._span(node), new, rule)

    def _negated(self, test: ast.expr) -> Mutant:
        return self._in_place(test, f"(not ({self._text(test)}))", "negated condition")

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        begin = self._lines[node.lineno - 1] + node.col_offset
        end = self._lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return begin, end

    def _text(self, node: ast.expr) -> str:
        return self._source[slice(*self._span(node))].decode()


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name in _LOGS
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__" | "TYPE_CHECKING")]):
            return True
        case ast.Call(func=ast.Name(id="TypeVar" | "NewType" | "ParamSpec" | "cast")):
            return True
        case _:
            return False


def _is_symmetric(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id in ("min", "max")


def _is_nothing(value: ast.expr) -> bool:
    # False is as good as None to almost all who call, and another rule turns it into True.
    return isinstance(value, ast.Constant) and value.value in (None, False)
