"""Gives a module of the product, which is imported already, a mutation; the files of the checkout stay as they are."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

from tests.mutants.operators import mutated_tree

if TYPE_CHECKING:
    from collections.abc import Iterator


def install(path: str, number: int) -> None:
    """Let the functions of the module behave as its mutation has them, wherever they have been imported.

    Code and defaults are replaced, because other modules hold the functions and classes themselves. A default of a
    dataclass is one of its ``__init__``. Raises ``AssertionError`` for a mutation that changes neither.
    """
    name = path.removesuffix(".py").replace("/", ".")
    mutated = ModuleType(name)
    exec(compile(mutated_tree(Path(path).read_text(), number), path, "exec", dont_inherit=True), mutated.__dict__)
    new = dict(_functions(mutated))
    changed = False
    for qualified_name, function in _functions(importlib.import_module(name)):
        replacement = new[qualified_name]
        if function.__code__ != replacement.__code__:
            function.__code__ = replacement.__code__
            changed = True
        if function.__defaults__ != replacement.__defaults__:
            function.__defaults__ = replacement.__defaults__
            changed = True
    assert changed, f"mutation {number} of {path} changes no function"


def forget_tests() -> None:
    """Let modules of tests be imported again: functions of the product as it was have made their data."""
    for name in [name for name in sys.modules if name.rpartition(".")[2].startswith("test_")]:
        del sys.modules[name]


def _functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """The functions that the module and its classes define, by their qualified names."""
    classes = [item for item in vars(module).values() if inspect.isclass(item) and item.__module__ == module.__name__]
    for owner in (module, *classes):
        for item in vars(owner).values():
            function = item.fget if isinstance(item, property) else item
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                yield function.__qualname__, function
