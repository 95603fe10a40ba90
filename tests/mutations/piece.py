"""A piece of code, as an expression or some statements, and what in the source is the same.

1. Layout and comments do not matter.
2. The name of a local variable or a parameter, and a name with an underscore in front, stands for
   any such name: one name of the piece for one name of the source, and the reverse. All other
   names and all constants have to be the same.
3. `...` stands for any expression; where it is a statement, for all statements in its place.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Set
from copy import deepcopy
from typing import Any

Piece = ast.expr | list[ast.stmt]


def parsed(code: str) -> Piece:
    """Return the piece of code in *code*: an expression, or any number of statements."""
    statements = ast.parse(textwrap.dedent(code)).body
    if len(statements) == 1 and isinstance(statements[0], ast.Expr):
        return statements[0].value
    return statements


def is_private(name: str) -> bool:
    """Tell whether a name has an underscore in front, and no meaning to Python."""
    return name.startswith("_") and not name.endswith("__")


def is_block(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], ast.stmt)


def _is_any(node: Any) -> bool:
    value = node.value if isinstance(node, ast.Expr) else node
    return isinstance(value, ast.Constant) and value.value is ...


class Matching:
    """A comparison of a piece with code; its names are *called* so there, each `...` *skipped*."""

    def __init__(self, local: Set[str], fixed: Set[str]) -> None:
        self.called: dict[str, str] = {}
        self.skipped: list[list[ast.AST]] = []
        self._back: dict[str, str] = {}
        self._local = local
        self._fixed = fixed

    def same(self, old: Any, found: Any) -> bool:
        """Tell whether the code says what the piece says."""
        if _is_any(old) and isinstance(found, ast.stmt if isinstance(old, ast.Expr) else ast.expr):
            self.skipped.append([found])
            return True
        if type(old) is not type(found):
            return False
        if isinstance(old, list):
            return self._same_list(old, found)
        if not isinstance(old, ast.AST):
            return bool(old == found)
        return all(
            self._same_name(old, value, getattr(found, field))
            if isinstance(value, str) and not isinstance(old, ast.Constant | ast.keyword)
            else self.same(value, getattr(found, field))
            for field, value in ast.iter_fields(old)
            if field not in ("ctx", "kind", "type_comment")
        )

    def rewritten(self, new: Piece) -> str:
        """Return the code of *new* with the names and the skipped code of the source."""
        rewriting = _Rewriting(self.called, self.skipped)
        if isinstance(new, ast.expr):
            return f"({ast.unparse(rewriting.visit(deepcopy(new)))})"
        body = deepcopy(new) or [ast.Pass()]
        return ast.unparse(rewriting.visit(ast.Module(body, type_ignores=[])))

    def _same_list(self, old: list[Any], found: list[Any]) -> bool:
        begin = next((at for at, node in enumerate(old) if _is_any(node)), None)
        if begin is None or not is_block(old):
            return len(old) == len(found) and all(map(self.same, old, found))
        end = len(found) - len(old) + begin + 1
        if begin > end or not all(map(self.same, old[:begin], found)):
            return False
        self.skipped.append(found[begin:end])
        return all(map(self.same, old[begin + 1 :], found[end:]))

    def _same_name(self, node: ast.AST, old: str, found: object) -> bool:
        if not isinstance(found, str):
            return False
        may_differ = is_private(old) and is_private(found)
        if found in self._local and not isinstance(node, ast.Attribute):
            may_differ |= old not in self._fixed and not old[0].isupper()
        if not may_differ:
            return old == found
        there, back = self.called.setdefault(old, found), self._back.setdefault(found, old)
        return there == found and back == old


class _Rewriting(ast.NodeTransformer):
    """A piece under the names of its place, with what each `...` has skipped there."""

    def __init__(self, called: dict[str, str], skipped: list[list[ast.AST]]) -> None:
        self._called = called
        self._skipped = iter(skipped)

    def visit(self, node: ast.AST) -> Any:
        if _is_any(node):
            skipped = next(self._skipped)
            return skipped if isinstance(node, ast.Expr) else skipped[0]
        if not isinstance(node, ast.Constant | ast.keyword):
            for field, name in ast.iter_fields(node):
                public = isinstance(node, ast.Attribute) and not is_private(str(name))
                if isinstance(name, str) and not public:
                    setattr(node, field, self._called.get(name, name))
        return super().generic_visit(node)
