"""Imports one module of the product with a mutation; the files of the checkout stay as they are."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import TYPE_CHECKING

from tests.mutants.operators import mutated_tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, number: int) -> None:
        super().__init__(name, path)
        self._number = number

    def get_code(self, fullname: str) -> CodeType:
        """Compiled from the source, and never from the cache of compiled modules."""
        path = self.get_filename(fullname)
        source = self.get_data(path).decode()
        return compile(mutated_tree(source, self._number), path, "exec", dont_inherit=True)


class MutatingFinder(MetaPathFinder):
    """Finds the mutated module before the usual finders do."""

    def __init__(self, module: str, number: int) -> None:
        self._module, self._number = module, number

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, self._number)
        return spec


def install(module: str, number: int) -> None:
    """Import ``module`` with its mutation from now on; it must not have been imported before."""
    assert module not in sys.modules, f"{module} was imported before it was mutated"
    sys.meta_path.insert(0, MutatingFinder(module, number))
