"""The mutations of a module: each changes one node of its syntax tree."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
LOG_NAMES = frozenset({"logger", "log", "count", "count_bytes"})
"""Calls of these only tell people something."""


@dataclass(frozen=True)
class Mutant:
    """One mutation of one module."""

    path: str
    """Of the module's file, relative to the checkout."""
    number: int
    """From 0, in the order of the source."""
    function: str
    change: str
    """Old and new code of the node."""

    @property
    def name(self) -> str:
        """The same as long as the function's code is the same, wherever it is in the file."""
        return f"{self.path} {self.function}: {self.change}"


def mutants(path: str, source: str) -> list[Mutant]:
    """All mutations of a module. The number of equal ones of a function follows their change."""
    found: list[Mutant] = []
    for number, (function, old, new) in enumerate(_changes(ast.parse(source))):
        change = _describe(old, new)
        equal = sum(item.function == function and item.change.partition(" #")[0] == change for item in found)
        found.append(Mutant(path, number, function, f"{change} #{equal + 1}" if equal else change))
    return found


def mutated_tree(source: str, number: int) -> ast.Module:
    """The syntax tree of the module with one mutation."""
    tree = ast.parse(source)
    for index, (_, old, new) in enumerate(_changes(tree)):
        if index == number:
            mutated = cast("ast.Module", _Replacing(old, new).visit(tree))
            return ast.fix_missing_locations(mutated)
    raise IndexError(f"the module has no mutation {number}")


class _Replacing(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST | None) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST | None:  # type: ignore[override]
        if node is not self._old:
            return self.generic_visit(node)
        return self._new


Change = tuple[str, ast.AST, "ast.AST | None"]


def _changes(tree: ast.Module) -> Iterator[Change]:
    """Function, old node, new node (None: it is removed) of each mutation."""
    yield from _changes_within(tree, "")


def _changes_within(node: ast.AST, function: str) -> Iterator[Change]:
    for child in _children(node):
        if _is_left_alone(child):
            continue
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from _changes_within(child, f"{function}.{child.name}".lstrip("."))
            continue
        if function:
            yield from ((function, old, new) for old, new in _changes_of(child))
        yield from _changes_within(child, function)


def _children(node: ast.AST) -> Iterable[ast.AST]:
    """Those with behaviour: neither decorators nor annotations."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.body
    if isinstance(node, ast.AnnAssign):
        return [] if node.value is None else [node.value]
    return ast.iter_child_nodes(node)


def _is_left_alone(node: ast.AST) -> bool:
    """Imports for types, texts for people, annotations, and the ``strict`` of ``zip``, which only asserts."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.JoinedStr | ast.arguments | ast.Raise | ast.Import | ast.ImportFrom | ast.expr_context):
        return True
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return True
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or (isinstance(node.value, ast.Call) and _is_log(node.value))
    return False


def _is_log(call: ast.Call) -> bool:
    names = {item.id for item in ast.walk(call.func) if isinstance(item, ast.Name)}
    names |= {item.attr for item in ast.walk(call.func) if isinstance(item, ast.Attribute)}
    return not LOG_NAMES.isdisjoint(names)


def _changes_of(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        changed = copy.copy(node)
        changed.ops = [COMPARISONS[type(node.ops[0])]()]
        yield node, changed
    elif isinstance(node, ast.BoolOp):
        for position in range(len(node.values)):
            rest = [value for index, value in enumerate(node.values) if index != position]
            yield node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, node.operand
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield node, ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
    elif isinstance(node, ast.List | ast.Tuple) and isinstance(node.ctx, ast.Load):
        yield from _without_one(node)
    elif isinstance(node, ast.Dict):
        for position in range(len(node.keys)):
            keys, values = list(node.keys), list(node.values)
            del keys[position], values[position]
            yield node, ast.Dict(keys, values)
    elif isinstance(node, ast.If | ast.While):
        yield node.test, ast.Constant(value=False)
    elif (
        isinstance(node, ast.Expr | ast.AugAssign)
        or _is_assignment_to_an_item(node)
        or isinstance(node, ast.Continue | ast.Break)
    ):
        yield node, ast.Pass()


def _without_one(node: ast.List | ast.Tuple) -> Iterator[tuple[ast.AST, ast.AST]]:
    """A list or tuple of several values, which is not a list of names to unpack to, without each of them."""
    if isinstance(node, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in node.elts):
        return
    for position in range(len(node.elts)):
        rest = [item for index, item in enumerate(node.elts) if index != position]
        yield node, ast.List(rest, ast.Load()) if isinstance(node, ast.List) else ast.Tuple(rest, ast.Load())


def _constants(node: ast.Constant) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(node.value, bool):
        yield node, ast.Constant(value=not node.value)
    elif isinstance(node.value, int):
        yield node, ast.Constant(value=node.value + 1)


def _is_assignment_to_an_item(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)


def _describe(old: ast.AST, new: ast.AST | None) -> str:
    if isinstance(old, ast.List | ast.Tuple | ast.Dict | ast.BoolOp) and type(new) is type(old):
        removed = [part for part in _parts(old) if part not in _parts(new)]
        return f"without {', '.join(removed)}"
    return f"{_text(old)} -> {_text(new)}"


def _parts(node: ast.AST | None) -> list[str]:
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [f"{'**' if key is None else _text(key) + ': '}{_text(value)}" for key, value in pairs]
    assert isinstance(node, ast.List | ast.Tuple | ast.BoolOp)
    return [_text(item) for item in (node.values if isinstance(node, ast.BoolOp) else node.elts)]


def _text(node: ast.AST | None) -> str:
    return "nothing" if node is None or isinstance(node, ast.Pass) else " ".join(ast.unparse(node).split())
